"""Which part of the data a process has, as Keras's distribution says."""

from types import SimpleNamespace

import keras
import pytest

from keras_ortho.distribution import own_share
from keras_ortho.tasks.sharing import Share


@pytest.fixture
def distribution(monkeypatch):
    mesh = SimpleNamespace(axis_names=["data", "model"], shape=(4, 2))
    made = SimpleNamespace(device_mesh=mesh, batch_dim_name="data")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr(keras.distribution, "distribution", lambda: made)
    return made


def test_replicas_are_those_of_the_axis_of_the_batch(distribution):
    assert own_share() == Share(4)


def test_an_axis_that_the_mesh_has_not(distribution):
    distribution.batch_dim_name = "batch"
    with pytest.raises(ValueError, match="of data, model. Received: .*'batch'"):
        own_share()
