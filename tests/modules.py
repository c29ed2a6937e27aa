"""Modules of files that belong to no package: scripts and examples."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


def load_file(path: str) -> ModuleType:
    """Loads a file of Python as a module.

    Args:
        path: The file, within the repository, such as `"scripts/write_stubs.py"`.
    """
    name = f"file_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # A dataclass looks itself up there.
    spec.loader.exec_module(module)
    return module
