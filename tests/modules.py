"""Python that belongs to no package, as modules and in processes of its own."""

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def load_file(path):
    """Loads a file of Python, such as `"scripts/plant_faults.py"`, as a module."""
    name = f"file_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # A dataclass looks itself up there.
    spec.loader.exec_module(module)
    return module


def run_python(*arguments, **options):
    """Runs Python in a process of its own, which must end well; returns its output.

    Args:
        *arguments: Those of Python: a script and its own, or `"-c"` and code.
        **options: Those of `subprocess.run`, such as `cwd` and `env`.
    """
    command = [sys.executable, *map(str, arguments)]
    options |= {"capture_output": True, "text": True, "check": False}
    done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
