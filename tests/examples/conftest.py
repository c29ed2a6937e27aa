"""The examples as modules, to test their functions without another process."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(
        f"example_{name}", FOLDER / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def char_ptb():
    return load("char_ptb")


@pytest.fixture(scope="session")
def deep_mlp():
    return load("deep_mlp")


@pytest.fixture(scope="session")
def bnp():
    return load("bnp")
