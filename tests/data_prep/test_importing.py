"""What prepares data without writing records loads no machine learning."""

from pathlib import Path

import pytest

from keras_ortho.data_prep.pipeline import prepare
from tests.data_prep.corpora import write_corpus
from tests.modules import run_python

ROOT = Path(__file__).resolve().parents[2]
HEAVY = "print(*{'keras', 'tensorflow', 'jax', 'torch'} & set(sys.modules))"
# All records are there: the corpus is read, divided, hashed and planned, the records
# are checked, the manifest and the report are written.
AGAIN = """
import sys
from pathlib import Path
from keras_ortho.data_prep.features import extract
from keras_ortho.data_prep.pipeline import prepare
corpus, out, path = sys.argv[1:]
assert extract(Path(path).read_bytes(), name=path).log_power.shape[1] == 129
assert prepare(corpus, out, num_shards=dict(train=2, valid=1, test=1)).written == 0
"""
HELP = """
import runpy, sys
try:
    runpy.run_module({module!r}, run_name="__main__")
except SystemExit as ended:
    assert ended.code == 0
"""


def heavy(code, *arguments):
    """Which heavy modules Python code loads in a process of its own."""
    return run_python("-c", code + HEAVY, *arguments, cwd=ROOT).splitlines()[-1]


def test_planning_reading_features_and_manifest(tmp_path):
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    write_corpus(corpus)
    prepare(corpus, out, num_shards={"train": 2, "valid": 1, "test": 1})
    (out / "manifest.json").unlink()
    recording = next(corpus.rglob("*.[wW][aA][vV]"))
    assert heavy(AGAIN, str(corpus), str(out), str(recording)) == ""
    assert (out / "manifest.json").is_file()


@pytest.mark.parametrize("name", ["keras_ortho.data_prep", "data_prep"])
@pytest.mark.parametrize("command", ["", ".demo_corpus"])
def test_help(name, command):
    assert heavy(HELP.format(module=name + command), "--help") == ""
