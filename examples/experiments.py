"""Lets the examples import the package of this name from the root of the checkout.

`python examples/adding.py` looks for modules in this folder, not in the root.
"""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[1] / "experiments")]
