"""The examples, run as their command lines do."""

import subprocess
import sys
from unittest import mock

from tests.modules import ROOT, load_file


def load_example(name):
    return load_file(f"examples/{name}.py")


def run_example(name, *arguments):
    """Runs an example in this process."""
    with mock.patch.object(sys, "argv", [f"{name}.py", *map(str, arguments)]):
        load_example(name).main()


def start_example(name, *arguments):
    """Runs an example in a process of its own, and gives its outputs."""
    command = [sys.executable, f"{ROOT}/examples/{name}.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)
