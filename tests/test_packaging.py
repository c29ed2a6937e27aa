"""The installed package: what it imports, names, requires."""

import ast
import configparser
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import keras_ortho

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [
    path
    for folder in ("keras_ortho", "data_prep", "examples", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
# The extras that hold no requirement of the code's.
TOOLS = {"all", "cuda", "dev"}

# Imports the package and all modules in it where a backend is not installed, and
# prints what came along with it that Keras had not loaded before.
PROBE = """
import importlib, json, pkgutil, sys

class Absent:
    names = set(sys.argv[1].split(","))

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import keras
keras.layers.Dense(1)(keras.ops.ones((1, 1)))
before = set(sys.modules)
import keras_ortho
modules = ["keras_ortho"]
for module in pkgutil.walk_packages(
    keras_ortho.__path__, "keras_ortho.", onerror=lambda name: None
):
    package, _, name = module.name.rpartition(".")
    if package == "keras_ortho.backend" and name in Absent.names:
        continue
    importlib.import_module(module.name)
    modules.append(module.name)
print(json.dumps({
    "backend": keras.backend.backend(),
    "modules": modules,
    "loaded": sorted({name.partition(".")[0] for name in set(sys.modules) - before}),
    "all": sorted({name.partition(".")[0] for name in sys.modules}),
}))
"""
ABSENT = {"jax": "tensorflow,torch", "tensorflow": "jax,jaxlib,torch"}


@pytest.fixture(scope="module", params=sorted(ABSENT))
def imported(request) -> dict:
    """What importing all of the package does, on each backend alone."""
    result = subprocess.run(
        [sys.executable, "-c", PROBE, ABSENT[request.param]],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": request.param},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return {"expected": request.param, **json.loads(result.stdout.splitlines()[-1])}


def requirements() -> dict[str, set[str]]:
    """The distributions that each extra of setup.cfg names; "" is the package."""
    config = configparser.ConfigParser()
    config.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    texts = {"": config["options"]["install_requires"]}
    texts |= dict(config["options.extras_require"])
    return {
        extra: {
            normalized(re.match(r"[\w.-]+", line)[0])
            for line in text.splitlines()
            if line
        }
        for extra, text in texts.items()
    }


def normalized(distribution: str) -> str:
    """A distribution's name as the packaging standards compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def distributions_of(module: str) -> set[str]:
    """The installed distributions that bring a module."""
    names = metadata.packages_distributions().get(module.partition(".")[0], [])
    return {normalized(name) for name in names}


def require_calls() -> list[tuple[str, str, str]]:
    """Where, which module and which extra: each call of `extras.require`."""
    calls = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "require",
                "extras.require",
            ):
                extras = [word.value for word in node.keywords if word.arg == "extra"]
                extra = ast.literal_eval(extras[0]) if extras else None
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                calls.append((where, ast.literal_eval(node.args[0]), extra or ""))
    return calls


def imports() -> set[str]:
    """The modules that `import` statements name, absolute ones only."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(node.module)
    return found


def test_imports_on_each_backend_alone(imported):
    assert imported["backend"] == imported["expected"]
    assert not set(ABSENT[imported["expected"]].split(",")) & set(imported["all"])
    # Each file of the package was among what was imported, on one backend or other.
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "keras_ortho").rglob("*.py")
    }
    others = {f"keras_ortho.backend.{name}" for name in ABSENT}
    assert files - others <= set(imported["modules"])


def test_import_loads_no_extra(imported):
    extras = requirements()
    optional = set().union(
        *(names for extra, names in extras.items() if extra not in TOOLS | {"", "jax"})
    )
    loaded = {
        module: sorted(distributions_of(module) & optional)
        for module in imported["loaded"]
    }
    assert not {module: names for module, names in loaded.items() if names}


def test_all_lists_what_exists():
    packages = ["keras_ortho"]
    packages += [
        module.name
        for module in pkgutil.walk_packages(keras_ortho.__path__, "keras_ortho.")
        if module.ispkg
    ]
    for name in packages:
        package = importlib.import_module(name)
        missing = [
            entry
            for entry in getattr(package, "__all__", [])
            if not hasattr(package, entry)
        ]
        assert not missing, f"{name}.__all__ names {missing}"
    assert "__version__" in keras_ortho.__all__


def test_version_is_that_of_the_metadata():
    try:
        version = metadata.version("keras-ortho")
    except metadata.PackageNotFoundError:
        pytest.skip("keras-ortho is not installed, only on the path")
    assert version == keras_ortho.__version__


def test_ships_its_types():
    assert (Path(keras_ortho.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize(
    ("where", "module", "extra"), require_calls(), ids=lambda value: value or "package"
)
def test_required_module_is_in_the_extra_that_is_named(where, module, extra):
    extras = requirements()
    assert extra in extras, f"{where} names an extra that setup.cfg does not"
    assert distributions_of(module) & extras[extra], (
        f"{where}: {module} is of {distributions_of(module)}, and the extra "
        f"{extra!r} holds {extras[extra]}"
    )


def test_every_requirement_is_used():
    used = imports() | {module for _, module, _ in require_calls()}
    brought = set().union(*(distributions_of(module) for module in used))
    named = set().union(
        *(names for extra, names in requirements().items() if extra not in TOOLS)
    )
    assert named <= brought


def test_all_extra_holds_the_others():
    config = configparser.ConfigParser()
    config.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    listed = re.fullmatch(
        r"keras-ortho\[(.*)\]", config["options.extras_require"]["all"].strip()
    )
    assert set(listed[1].split(",")) == set(requirements()) - TOOLS - {""}
