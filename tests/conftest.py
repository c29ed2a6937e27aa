"""Fixtures that several test modules share."""

import os
from pathlib import Path

import pytest

# Keras computes in float32 all the same, but float64 must be there to test with.
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    import keras  # After the settings above.

    if keras.backend.backend() == "jax":
        for item in items:
            if item.get_closest_marker("slow_on_jax"):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data that `KERAS_ORTHO_DATA` names."""
    folder = os.environ.get("KERAS_ORTHO_DATA")
    if not folder:
        pytest.skip("KERAS_ORTHO_DATA is unset: it names the folder of real data")
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(
            f"KERAS_ORTHO_DATA must name a folder. Received: {folder!r}"
        )
    return path


@pytest.fixture
def disk(monkeypatch) -> list[tuple[str, ...]]:
    """What is flushed to the disk and renamed, in order: the last names of paths."""
    events: list[tuple[str, ...]] = []
    fsync, replace = os.fsync, os.replace

    def name(path):
        return os.path.basename(os.fspath(path))

    def noted_fsync(file):
        events.append(("fsync", name(os.readlink(f"/proc/self/fd/{file}"))))
        fsync(file)

    def noted_replace(source, target):
        events.append(("replace", name(source), name(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    return events
