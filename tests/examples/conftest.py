import pytest

from tests.examples.modules import load_example


@pytest.fixture(scope="session")
def deep_mlp():
    return load_example("deep_mlp")


@pytest.fixture(scope="session")
def bnp():
    return load_example("bnp")
