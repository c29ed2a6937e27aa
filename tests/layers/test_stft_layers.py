"""The transform as layers: the pipeline's, its inverse, and their gradients."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.audio import istft, stft
from keras_ortho.layers import STFT, InverseSTFT
from tests.gradients import gradients
from tests.saving import reloaded


def waveforms(samples):
    return np.random.default_rng(0).uniform(-1, 1, size=(2, samples))


@pytest.mark.parametrize(("frame", "hop"), [(256, 128), (64, 16)])
@pytest.mark.parametrize("samples", [1000, 1024])
def test_is_the_pipelines(frame, hop, samples):
    lengths = {"frame_length": frame, "hop_length": hop}
    given = {"dtype": "float64"} | ({} if frame == 256 else lengths)
    x = waveforms(samples)
    found = ops.convert_to_numpy(STFT(**given)(x))
    # Any spectrum but for what a real signal's cannot have, which both drop.
    changed = np.random.default_rng(1).normal(size=found.shape)
    changed[:, :, [0, -1], 1] = 0
    back = ops.convert_to_numpy(InverseSTFT(**given)(changed, x))
    for n, waveform in enumerate(x):
        expected = stft(waveform, **lengths)
        assert found[n].shape == (*expected.shape, 2)
        # Theirs is in float32: each value a sum over a window of values up to 1.
        np.testing.assert_allclose(found[n] @ [1, 1j], expected, atol=frame * 2.0**-23)
        expected = istft(changed[n] @ [1, 1j], length=samples, **lengths)
        np.testing.assert_allclose(back[n], expected, atol=50 * 2.0**-23)


@pytest.mark.backends
@pytest.mark.parametrize("samples", [0, 200, 256])
def test_there_and_back(samples):
    x = waveforms(samples)
    again = InverseSTFT(dtype="float64")(STFT(dtype="float64")(x), x)
    np.testing.assert_allclose(again, x, atol=1e-13)


@pytest.mark.backends
@pytest.mark.parametrize(("cls", "shape"), [(STFT, (20,)), (InverseSTFT, (8, 5, 2))])
def test_gradients_are_the_transposed_maps(cls, shape):
    """Of linear maps, whose rows are what they make of unit vectors."""
    layer, random = cls(8, 4, dtype="float64"), np.random.default_rng(0)
    units = np.eye(np.prod(shape)).reshape(-1, *shape)
    matrix = ops.convert_to_numpy(layer(units)).reshape(len(units), -1)
    weights = random.normal(size=matrix.shape[1])

    def weighted(x):
        return ops.sum(ops.reshape(layer(x), (-1,)) * weights)

    (found,) = gradients(weighted, random.normal(size=(1, *shape)))
    np.testing.assert_allclose(found.reshape(-1), matrix @ weights, atol=1e-12)


def test_stays_in_single_precision():
    x, layer = waveforms(500).astype("float32"), STFT(dtype="mixed_float16")
    np.testing.assert_array_equal(layer(x), STFT()(x))
    assert layer(keras.Input((500,))).dtype == "float32"


@pytest.mark.backends
@pytest.mark.parametrize("samples", [333, None])
def test_within_a_model(samples, tmp_path):
    """Shapes are known beforehand, as far as they can be."""
    waveform = keras.Input((samples,))
    spectrum = STFT(64, 16)(waveform)
    again = InverseSTFT(64, 16)(0.5 * spectrum, waveform)
    assert spectrum.shape == (None, samples and 26, 33, 2)
    assert again.shape == (None, samples)
    model = keras.Model(waveform, [again, InverseSTFT(64, 16)(spectrum)])
    x = waveforms(333).astype("float32")
    again, longest = reloaded(model, tmp_path)(x)
    np.testing.assert_allclose(again, x / 2, atol=1e-5)
    np.testing.assert_allclose(longest[:, :333], x, atol=1e-5)
