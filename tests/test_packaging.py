"""The installed package: what it holds, imports, names and requires."""

import configparser
import functools
import importlib
import importlib.metadata
import os
import pkgutil
import re
import shutil
import zipfile

import keras
import pytest

import keras_ortho
from keras_ortho.extras import require
from keras_ortho.losses import ValidFrameMSE
from keras_ortho.metrics import ErrorRate
from keras_ortho.optimizers import RMSpropTF1
from tests.modules import ROOT, run_python

FOLDERS = ("keras_ortho", "data_prep", "experiments", "examples", "benchmarks")
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", "utf-8")
EXTRAS = SETUP["options.extras_require"]
CALL = re.compile(r'\brequire\(\s*"([\w.]+)"(?:,\s*extra="(\w+)")?')
# Calls of `extras.require`: a module, and the extra that an error would name.
REQUIRED = {
    call
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if path.name != "extras.py"
    for call in CALL.findall(path.read_text("utf-8"))
}

# Trains where the modules of the first argument are not installed, and imports all of
# the package where, once Keras has loaded what it likes, those of the second are not.
ALONE = """
import importlib, pkgutil, sys

def hide(names):
    names = {*names.split(",")}
    for name in [n for n in sys.modules if n.partition(".")[0] in names]:
        del sys.modules[name]
    class Absent:
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] in names:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Absent)

hide(sys.argv[1])
import keras
model = keras.Sequential([keras.layers.Dense(1)])
hide(sys.argv[2])
import keras_ortho
late = {"audio", "diagnostics", "metrics", "tasks", "training"}
assert not {f"keras_ortho.{name}" for name in late} & {*sys.modules}
model = keras.Sequential([keras.Input((3, 2)), keras_ortho.ScoRNN(4)])
model.compile("sgd", "mse")
model.fit(keras.ops.ones((2, 3, 2)), keras.ops.ones((2, 4)), verbose=0)
for module in pkgutil.walk_packages(
    keras_ortho.__path__, "keras_ortho.", onerror=lambda name: None
):
    package, _, name = module.name.rpartition(".")
    # A builder of tensorflow-datasets is a subclass of a class of its.
    if package != "keras_ortho.backend" and "tfds" not in module.name:
        importlib.import_module(module.name)
print(keras.backend.backend())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "others"), [("jax", "tensorflow,torch"), ("tensorflow", "jax,torch")]
)
def test_each_backend_is_enough_without_any_extra(backend, others):
    optional = {module.partition(".")[0] for module, extra in REQUIRED if extra}
    # JAX itself needs SciPy.
    optional -= {"tensorflow", "jax", *["scipy"] * (backend == "jax")}
    environment = os.environ | {"KERAS_BACKEND": backend}
    arguments = others, ",".join(optional)
    assert run_python("-c", ALONE, *arguments, env=environment).split() == [backend]


@pytest.mark.backends
def test_models_are_loaded_after_the_import_alone(tmp_path):
    recurrent = keras_ortho.ScoRNN(4, return_sequences=True)
    layers = [recurrent, keras_ortho.SVDDense(4, reflections=2), keras_ortho.ModReLU()]
    model = keras.Sequential([keras.Input((3, 2)), *layers])
    model.compile(RMSpropTF1(), ValidFrameMSE(), metrics=[ErrorRate()])
    model.save(path := str(tmp_path / "model.keras"))
    code = f"""
import keras_ortho, keras
model = keras.saving.load_model({path!r})
metric, = model.get_compile_config()["metrics"]
metric = keras.saving.deserialize_keras_object(metric)
for part in (*model.layers, model.optimizer, model.loss, metric):
    print(type(part).__name__)
"""
    classes = ["ScoRNN", "SVDDense", "ModReLU", "RMSpropTF1", "ValidFrameMSE"]
    assert run_python("-c", code).split() == [*classes, "ErrorRate"]


def test_every_public_name_is_there():
    assert dir(keras_ortho) == sorted(keras_ortho.__all__)
    modules = pkgutil.walk_packages(keras_ortho.__path__, "keras_ortho.")
    for name in ("keras_ortho", *(m.name for m in modules if m.ispkg)):
        package = importlib.import_module(name)
        for public in getattr(package, "__all__", []):
            assert hasattr(package, public), f"{name}.{public}"
    with pytest.raises(AttributeError, match="'keras_ortho' has no attribute 'ScoRN'"):
        _ = keras_ortho.ScoRN


def test_version_and_date_stand_everywhere_the_same():
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    version, date = re.search(r"^## (\S+) \((\S+)\)$", changes, re.MULTILINE).groups()
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert version == keras_ortho.__version__
    assert f"\nversion: {version}\ndate-released: {date}\n" in citation


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
    files = {"keras_ortho/py.typed", "keras_ortho/data_prep/demo_corpus/english.toml"}
    for folder, start in (("keras_ortho", ""), ("data_prep", "keras_ortho/")):
        paths = (ROOT / folder).rglob("*.py")
        files |= {f"{start}{path.relative_to(ROOT).as_posix()}" for path in paths}
    assert files <= set(zipfile.ZipFile(wheel).namelist())


brought_by = functools.cache(importlib.metadata.packages_distributions)


@pytest.mark.parametrize(("module", "extra"), sorted(REQUIRED))
def test_the_extra_that_an_error_names_brings_the_module(module, extra):
    text = EXTRAS[extra] if extra else SETUP["options"]["install_requires"]
    top = module.partition(".")[0]
    required = re.findall(r"^[\w.-]+", text, re.MULTILINE)
    brought, required = (
        {re.sub("[-_.]+", "-", name) for name in names}
        for names in (brought_by().get(top, [top]), required)
    )
    assert brought & required


def test_a_missing_module_names_its_extra(tmp_path, monkeypatch):
    with pytest.raises(ImportError, match=r'pip install "keras-ortho\[speech\]"'):
        require("no_such_module.submodule", extra="speech")
    with pytest.raises(ImportError, match="`pip install no_such_module`"):
        require("no_such_module")
    # One that is installed, but needs another that is not, says so.
    (tmp_path / "broken_module.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="^No module named 'no_such_module'$"):
        require("broken_module", extra="speech")
