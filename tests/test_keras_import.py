"""When the action is done, with packages in place of Keras and TensorFlow."""

import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[1] / "keras_ortho" / "keras_import.py"
PACKAGES = {
    "keras/__init__.py": "import time, tensorflow; time.sleep(0.4); whole = True",
    "keras/saving.py": "",
    "tensorflow.py": "import keras; whole = True",
}
# The module alone, as importing the package would wait for Keras, too.
START = """
import importlib.util, sys, threading, time
spec = importlib.util.spec_from_file_location("keras_import", {file!r})
keras_import = importlib.util.module_from_spec(spec)
spec.loader.exec_module(keras_import)

def action():
    print("done", sys.modules["keras"].whole, sys.modules["tensorflow"].whole)

before = list(sys.meta_path)
keras_import.after_keras(action)
"""


def run(folder, code):
    """The lines that code prints where the packages are."""
    for name, text in PACKAGES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", START.format(file=str(FILE)) + code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "statement",
    ["import keras", "import keras.saving", "import tensorflow", "import json, keras"],
)
def test_done_once_when_nothing_is_half_loaded(tmp_path, statement):
    code = f"{statement}\nprint('after')\nimport keras, tensorflow"
    code += "\nassert sys.meta_path == before"
    assert run(tmp_path, code) == ["done True True", "after"]


def test_asking_whether_keras_is_there_is_no_import(tmp_path):
    code = "importlib.util.find_spec('keras'); print('asked'); import keras"
    assert run(tmp_path, code) == ["asked", "done True True"]


def test_done_at_once_where_keras_is_loaded(tmp_path):
    code = "import keras\nkeras_import.after_keras(lambda: print('again'))"
    assert run(tmp_path, code) == ["done True True", "again"]


def test_keras_that_fails_may_be_imported_again(tmp_path):
    code = """
sys.modules["tensorflow"] = None
try:
    import keras
except ImportError:
    print("failed")
del sys.modules["tensorflow"]
import keras
"""
    assert run(tmp_path, code) == ["failed", "done True True"]


def test_two_threads_that_import_at_once(tmp_path):
    code = """
first = threading.Thread(target=lambda: __import__("keras"))
second = threading.Thread(target=lambda: __import__("tensorflow"))
first.start()
time.sleep(0.1)
second.start()
first.join()
second.join()
"""
    assert run(tmp_path, code) == ["done True True"]


def test_error_of_the_action_is_one_of_the_import(tmp_path):
    code = """
def fail():
    raise ImportError("too old")

keras_import.after_keras(fail)
try:
    import keras
except ImportError as error:
    print(error)
"""
    # What was asked for first is done first.
    assert run(tmp_path, code) == ["done True True", "too old"]
