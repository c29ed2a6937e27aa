"""A batch cut into pieces, each of which goes through all its steps by itself."""

import os

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.recurrence import find, sequence
from tests.gradients import gradients
from tests.recurrence.plain import plain_recurrence

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="others do not cut a batch"
)

EPS = np.finfo("float64").eps


@pytest.mark.parametrize(
    ("cores", "batch", "entries", "training", "pieces"),
    [
        (2, 8, 32**2, True, 2),
        (2, 7, 2048**2, True, 1),
        (8, 128, 64**2, True, 4),
        (8, 13, 64**2, True, 3),
        (1, 128, 512**2, True, 1),
        (2, None, 32**2, True, 2),
        (2, 0, 256**2, True, 1),
        (2, 32, 128**2, False, 1),
        (2, 128, 128**2, False, 2),
        (8, 3, 2048**2, False, 3),
        (2, None, 128**2, False, 1),
        (2, None, 256**2, False, 2),
    ],
)
def test_large_batches_are_cut(monkeypatch, cores, batch, entries, training, pieces):
    from keras_ortho.backend import tensorflow as backend

    monkeypatch.setattr(backend, "UNKNOWN_BATCH", 64)  # As outside of `make test`.
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    assert sequence.batch_pieces(batch, entries, training) == pieces


@pytest.mark.parametrize(
    "return_sequences", [pytest.param(False, marks=pytest.mark.slow), True]
)
def test_the_pieces_make_the_whole(monkeypatch, return_sequences):
    batch, steps, units = 5, 70, 4
    random = np.random.default_rng(0)
    shapes = (batch, steps, 2), (2, units), (units, units), (units,), (batch, units)
    x, u, w, b, h = (random.normal(size=shape) for shape in shapes)
    tensors = x, u, np.linalg.qr(w)[0], b, h
    mask = random.uniform(size=(batch, steps)) > 0.2

    def run(pieces):
        monkeypatch.setattr(sequence, "batch_pieces", lambda *_: pieces)

        def outputs(*tensors):
            activation = find(keras.activations.tanh, complex_state=False)
            return plain_recurrence(
                *tensors, activation, mask=mask, return_sequences=return_sequences
            )

        found = gradients(lambda *tensors: ops.sum(outputs(*tensors) ** 2), *tensors)
        return ops.convert_to_numpy(outputs(*tensors)), found

    whole, expected = run(1)
    for pieces in (2, 3, 5):
        output, found = run(pieces)
        # Each sequence has the same sums; those over all have another order.
        np.testing.assert_allclose(output, whole, atol=100 * steps * EPS)
        for gradient, wanted in zip(found, expected, strict=True):
            scale = np.abs(wanted).max()
            np.testing.assert_allclose(
                gradient, wanted, atol=100 * batch * steps * EPS * scale
            )
