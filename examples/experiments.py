"""Leads the scripts beside it to the package of this name, at the checkout's root.

`python examples/adding.py` looks for modules in this folder, not in the root.
"""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[1] / "experiments")]
