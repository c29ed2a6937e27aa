"""The installed package: what it imports, names, requires."""

import ast
import configparser
import functools
import importlib
import json
import os
import pkgutil
import re
import shutil
import zipfile
from importlib import metadata

import pytest

import keras_ortho
from tests.modules import ROOT, run_python

SOURCES = [
    path
    for folder in ("keras_ortho", "data_prep", "experiments", "examples", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
# The extras that hold no requirement of the code's.
TOOLS = {"all", "cuda", "dev", "docs", "release"}
# What a requirement imports without requiring it.
# The last two by `model.export`, of Keras.
INDIRECT = {"importlib-resources", "onnx", "tf2onnx"}

# Imports all of the package where neither the modules of the first argument nor, once
# Keras has loaded what it likes, those of the second are installed. Prints what it
# imported, and what else was asked for.
PROBE = """
import importlib, json, pkgutil, sys

class Absent:
    def __init__(self, names):
        self.names = set(names.split(","))
        self.asked = []
        for name in list(sys.modules):
            if name.partition(".")[0] in self.names:
                del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            self.asked.append(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

backends = Absent(sys.argv[1])
import keras
keras.layers.Dense(1)(keras.ops.ones((1, 1)))
optional = Absent(sys.argv[2])
import keras_ortho.data_prep
modules = ["keras_ortho", "keras_ortho.data_prep"]
for module in [
    *pkgutil.walk_packages(
        keras_ortho.__path__, "keras_ortho.", onerror=lambda name: None
    ),
    *pkgutil.walk_packages(
        keras_ortho.data_prep.__path__, "keras_ortho.data_prep."
    ),
]:
    package, _, name = module.name.rpartition(".")
    if package == "keras_ortho.backend" and name in backends.names:
        continue
    # A builder of tensorflow-datasets is a subclass of a class of its.
    if package == "keras_ortho.data_prep.tfds_timit":
        continue
    importlib.import_module(module.name)
    modules.append(module.name)
print(json.dumps({
    "backend": keras.backend.backend(), "modules": modules, "asked": optional.asked
}))
"""
ABSENT = {"jax": "tensorflow,torch", "tensorflow": "jax,jaxlib,torch"}


@pytest.fixture(scope="module", params=sorted(ABSENT))
def imported(request) -> dict:
    """What importing all of the package does, on each backend alone."""
    extras = requirements().keys() - TOOLS - {"", "jax"}
    names = set().union(*(distributions(extra) for extra in extras))
    optional = [module for module in brought_by() if distributions_of(module) & names]
    arguments = ["-c", PROBE, ABSENT[request.param], ",".join(optional)]
    environment = os.environ | {"KERAS_BACKEND": request.param}
    printed = run_python(*arguments, cwd=ROOT, env=environment)
    return {"expected": request.param, **json.loads(printed.splitlines()[-1])}


def shipped() -> set[str]:
    """The package's files of Python, as they are called where it is installed."""
    package = (ROOT / "keras_ortho").rglob("*.py")
    data_prep = (ROOT / "data_prep").rglob("*.py")
    return {path.relative_to(ROOT).as_posix() for path in package} | {
        f"keras_ortho/{path.relative_to(ROOT).as_posix()}" for path in data_prep
    }


def requirements() -> dict[str, list[str]]:
    """What each extra of setup.cfg requires; "" is the package itself."""
    config = configparser.ConfigParser()
    config.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    texts = {"": config["options"]["install_requires"]}
    texts |= dict(config["options.extras_require"])
    return {extra: text.split() for extra, text in texts.items()}


def distributions(extra: str) -> set[str]:
    """The distributions that an extra requires."""
    return {normalized(re.match(r"[\w.-]+", line)[0]) for line in requirements()[extra]}


def normalized(distribution: str) -> str:
    """A distribution's name as the packaging standards compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


brought_by = functools.cache(metadata.packages_distributions)


def distributions_of(module: str) -> set[str]:
    """The installed distributions that bring a module; its own name if none does."""
    top = module.partition(".")[0]
    return {normalized(name) for name in brought_by().get(top, [top])}


def require_calls() -> list[tuple[str, str, str]]:
    """The calls of `extras.require` that name a module: where, which, which extra."""
    calls = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name("require") | ast.Attribute(attr="require"),
                    args=[ast.Constant(module)],
                    keywords=words,
                ):
                    extra = next((ast.literal_eval(word.value) for word in words), "")
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    calls.append((where, module, extra))
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


@pytest.mark.slow
def test_imports_on_each_backend_alone(imported):
    assert imported["backend"] == imported["expected"]
    # Each file of the package was among what was imported, on one backend or other.
    files = {
        file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for file in shipped()
    }
    others = {f"keras_ortho.backend.{name}" for name in (*ABSENT, "torch")}
    others.add("keras_ortho.data_prep.tfds_timit.timit")
    assert files - others <= set(imported["modules"])


def test_import_asks_for_no_extra(imported):
    assert imported["asked"] == []


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


def test_commands_exist():
    config = configparser.ConfigParser()
    config.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    lines = config["options.entry_points"]["console_scripts"].split("\n")
    commands = dict(line.split(" = ") for line in lines if line)
    assert "keras-ortho-data" in commands
    for name, target in commands.items():
        assert callable(metadata.EntryPoint(name, target, "console_scripts").load())


def test_version_and_date_stand_everywhere_the_same():
    head = re.search(
        r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    version, date = head.groups()
    assert version == keras_ortho.__version__
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {date}\n" in citation


@pytest.mark.slow
def test_wheel_of_a_zip_has_every_file(tmp_path):
    """Zips hold no links, and Windows makes none of those that a clone has."""
    for folder in ("keras_ortho", "data_prep"):
        shutil.copytree(ROOT / folder, tmp_path / "tree" / folder, symlinks=True)
    for file in ("LICENSE", "README.md", "pyproject.toml", "setup.cfg"):
        shutil.copy(ROOT / file, tmp_path / "tree")
    tree = shutil.make_archive(str(tmp_path / "tree"), "zip", tmp_path, "tree")
    run_python("-m", "pip", "wheel", "--no-deps", "-w", tmp_path, tree)
    (wheel,) = tmp_path.glob("*.whl")
    files = shipped() | {"keras_ortho/py.typed"}
    assert files <= set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.parametrize(
    ("where", "module", "extra"), require_calls(), ids=lambda value: value or "package"
)
def test_required_module_is_in_the_extra_that_is_named(where, module, extra):
    assert extra in requirements(), f"{where} names an extra that setup.cfg does not"
    assert distributions_of(module) & distributions(extra), (
        f"{where}: {module} is of {distributions_of(module)}, and the extra "
        f"{extra!r} requires {distributions(extra)}"
    )


def test_every_requirement_is_used():
    used = imports() | {module for _, module, _ in require_calls()}
    brought = set().union(*(distributions_of(module) for module in used))
    extras = requirements().keys() - TOOLS
    named = set().union(*(distributions(extra) for extra in extras))
    assert named - INDIRECT <= brought


def test_all_extra_holds_the_others():
    (listed,) = requirements()["all"]
    assert listed.startswith("keras-ortho[")
    # PyTorch is large, and only there to be compared with.
    others = requirements().keys() - TOOLS - {"", "torch"}
    assert set(listed[12:-1].split(",")) == others
