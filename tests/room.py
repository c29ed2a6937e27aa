"""How much of its tolerance each assertion of closeness used: `-p tests.room`.

`--room FILE` writes a JSON object from the names of tests to the largest share that an
assertion in them used, of `assert_allclose` with a tolerance and of `assert` with `<=`,
`<` or `pytest.approx`. The latter need `-o enable_assertion_pass_hook=true`.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from _pytest.assertion import rewrite

# Modules whose assertions do not report are cached under the usual name.
rewrite.PYC_TAIL = "-room" + rewrite.PYC_TAIL

NUMBER = r"(?:np\.float\d+\()?(-?\d+(?:\.\d*)?(?:e[-+]?\d+)?)\)?"
# What pytest says of a comparison that holds.
BELOW = re.compile(rf"{NUMBER} <=? {NUMBER}(?:\s|$)")
NEAR = re.compile(rf"{NUMBER} == {NUMBER} ± {NUMBER}(?:\s|$)")


def share_of_allclose(actual, desired, rtol, atol) -> float:
    """The largest `|actual - desired| / (atol + rtol |desired|)`."""
    actual, desired = np.asarray(actual), np.asarray(desired)
    allowed = atol + rtol * np.abs(desired)
    distance = np.abs(actual - desired)
    # Infinities that agree, and what must be equal, have no tolerance to use up.
    used = distance[np.isfinite(distance) & (allowed > 0)]
    allowed = np.broadcast_to(allowed, distance.shape)
    return float((used / allowed[np.isfinite(distance) & (allowed > 0)]).max(initial=0))


def share_of_comparison(explanation: str) -> float | None:
    """The share that a comparison used, where it is one with a tolerance."""
    if match := NEAR.match(explanation):
        actual, expected, tolerance = map(float, match.groups())
        return abs(actual - expected) / tolerance if tolerance > 0 else None
    if match := BELOW.match(explanation):
        value, bound = map(float, match.groups())
        # A bound of order one is no tolerance.
        return value / bound if 0 < bound < 0.1 and value >= 0 else None
    return None


def pytest_addoption(parser):
    parser.addoption("--room", type=Path, help="write the shares of tolerances used")


def pytest_configure(config):
    if config.getoption("room"):
        config.pluginmanager.register(Room(config.getoption("room")))


class Room:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.used: dict[str, float] = {}
        self.test = ""

    def note(self, share: float) -> None:
        self.used[self.test] = max(share, self.used.get(self.test, 0.0))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.test = item.nodeid
        checked = np.testing.assert_allclose

        def assert_allclose(actual, desired, rtol=1e-7, atol=0, **kwargs):
            checked(actual, desired, rtol=rtol, atol=atol, **kwargs)
            self.note(share_of_allclose(actual, desired, rtol, atol))

        np.testing.assert_allclose = assert_allclose
        try:
            return (yield)
        finally:
            np.testing.assert_allclose = checked

    def pytest_assertion_pass(self, expl):
        share = share_of_comparison(expl)
        if share is not None:
            self.note(share)

    def pytest_sessionfinish(self):
        self.path.write_text(json.dumps(self.used))
