"""What users do, in a process that lacks what Windows lacks."""

import os
import sys

import pytest

from tests.modules import ROOT, run_python


@pytest.mark.backends
@pytest.mark.skipif(
    sys.platform != "linux", reason="hides from Linux what other systems lack"
)
@pytest.mark.parametrize(
    "part", ["layers", pytest.param("speech", marks=pytest.mark.slow)]
)
def test_nothing_that_one_system_lacks(part, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Text files without an encoding have another one there.
    options = ("-X", "warn_default_encoding", "-m", "tests.as_on_windows")
    run_python(*options, part, cwd=tmp_path, env=environment)
