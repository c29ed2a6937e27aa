from collections import Counter
from pathlib import Path

import pytest

from tests.modules import ROOT, load_file

plant_faults = load_file("scripts/plant_faults.py")


def fault(tmp_path, old="1 + 1", new="1 - 1"):
    (tmp_path / "sums.py").write_text("def two():\n    return 1 + 1\n")
    (tmp_path / "test_sums.py").write_text(
        "from sums import two\n\n\ndef test_two():\n    assert two() == 2\n"
    )
    return plant_faults.Fault("a sum", "sums.py", old, new, ("test_sums.py",))


def run(tmp_path):
    return plant_faults.run_tests(tmp_path, ["test_sums.py"], "tensorflow", 60)


def test_a_fault_is_found_and_undone(tmp_path):
    before = fault(tmp_path).plant(tmp_path)
    assert run(tmp_path) == plant_faults.FAILED
    (tmp_path / "sums.py").write_text(before)
    assert run(tmp_path) == plant_faults.PASSED


def test_a_fault_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"stand once in sums.py. Received: 0 times"):
        fault(tmp_path, old="1 + 2").plant(tmp_path)


def test_tests_that_cannot_run_are_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="pytest could not run"):
        run(tmp_path)


def test_a_link_is_copied_as_one(tmp_path):
    """Without it the package would be imported from the tree that is not broken."""
    link = Path("keras_ortho", "data_prep")
    if not (ROOT / link).is_symlink():
        pytest.skip("a release has a folder in place of the link")
    plant_faults.copy_tree(tmp_path)
    assert (tmp_path / link).readlink() == (ROOT / link).readlink()


def test_every_fault_of_the_table_can_be_planted():
    faults = plant_faults.read_faults()
    assert len(faults) >= 50
    assert max(Counter(fault.name for fault in faults).values()) == 1
    for each in faults:
        assert (ROOT / each.file).read_text().count(each.old) == 1, each.name
        assert each.new != each.old
        assert all((ROOT / tests).exists() for tests in each.tests), each.name
