"""The examples as modules, to test their functions without another process."""

import importlib.util
import sys
from pathlib import Path
from unittest import mock

FOLDER = Path(__file__).resolve().parents[2] / "examples"


def load_example(name):
    spec = importlib.util.spec_from_file_location(
        f"example_{name}", FOLDER / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_example(name, *arguments):
    """Runs an example as its command line does."""
    with mock.patch.object(sys, "argv", [f"{name}.py", *map(str, arguments)]):
        load_example(name).main()
