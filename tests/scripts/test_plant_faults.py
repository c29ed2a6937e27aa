from collections import Counter

import pytest

from tests.modules import ROOT, load_file

plant_faults = load_file("scripts/plant_faults.py")


def test_a_fault_is_found_and_undone(tmp_path):
    (tmp_path / "sums.py").write_text("def two():\n    return 1 + 1\n")
    (tmp_path / "test_sums.py").write_text(
        "from sums import two\n\n\ndef test_two():\n    assert two() == 2\n"
    )

    def run():
        return plant_faults.run_tests(tmp_path, ["test_sums.py"], "tensorflow", 60)

    names = ("a sum", "sums.py", "1 + 1", "1 - 1", ("test_sums.py",))
    before = plant_faults.Fault(*names).plant(tmp_path)
    assert run() == plant_faults.FAILED
    with pytest.raises(ValueError, match=r"stand once in sums.py. Received: 0 times"):
        plant_faults.Fault(*names).plant(tmp_path)
    (tmp_path / "sums.py").write_text(before)
    assert run() == plant_faults.PASSED


def test_every_fault_of_the_table_can_be_planted():
    faults = plant_faults.read_faults()
    assert max(Counter(fault.name for fault in faults).values()) == 1
    for each in faults:
        assert (ROOT / each.file).read_text().count(each.old) == 1, each.name
        assert each.new != each.old
        assert all((ROOT / tests).exists() for tests in each.tests), each.name
