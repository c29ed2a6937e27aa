"""The speech pipeline's short-time Fourier transform and its inverse, as layers."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_lengths


class _Transform(keras.layers.Layer):
    """Base class of both transforms: lengths, and arithmetic in at least float32."""

    def __init__(
        self,
        frame_length: int = 256,
        hop_length: int = 128,
        **kwargs: Any,
    ) -> None:
        check_lengths(frame_length, hop_length)
        # Half precision has too few digits for a sum over a window.
        super().__init__(autocast=False, **kwargs)
        self.input_spec = keras.InputSpec(ndim=2)
        self.frame_length = frame_length
        self.hop_length = hop_length

    def get_config(self) -> dict[str, Any]:
        lengths = {"frame_length": self.frame_length, "hop_length": self.hop_length}
        return super().get_config() | lengths

    @property
    def _wide_dtype(self) -> str:
        return wide_dtype(self.compute_dtype)

    def _lengths(self) -> dict[str, Any]:
        lengths = dict.fromkeys(("sequence_length", "fft_length"), self.frame_length)
        window = {"window": "hann", "center": False}
        return lengths | window | {"sequence_stride": self.hop_length}


@keras.saving.register_keras_serializable(package="keras_ortho")
class STFT(_Transform):
    """Short-time Fourier transform of waveforms, equal to `keras_ortho.audio.stft`.

    Args:
        frame_length: Even number of samples in each frame. Default: 256.
        hop_length: Number of samples between successive frames, a divisor of
            `frame_length`. Default: 128.
        **kwargs: Base layer keyword arguments, such as `name` and `dtype`. The
            transform runs in float32, or in float64 if that is the dtype.

    Call arguments:
        waveform: Tensor of shape `(batch, samples)`.

    Output shape:
        `(batch, frames, frame_length // 2 + 1, 2)`, the real and the imaginary parts;
        with the default lengths, there are `ceil(samples / 128) + 3` frames.

    Raises:
        ValueError: If a length is invalid, or `waveform` has another shape.

    Example:
    >>> waveform = np.sin(np.arange(1000, dtype="float32"))[None]
    >>> STFT()(waveform).shape
    (1, 11, 129, 2)
    """

    def call(self, waveform: Tensor) -> Tensor:
        """Transforms waveforms."""
        waveform = ops.cast(waveform, self._wide_dtype)
        end = self.frame_length + -ops.shape(waveform)[1] % self.hop_length
        padded = ops.pad(waveform, ((0, 0), (self.frame_length, end)))
        return ops.stack(ops.stft(padded, **self._lengths()), axis=-1)

    def compute_output_spec(self, waveform: keras.KerasTensor) -> keras.KerasTensor:
        """Returns the shape and dtype of the spectrum."""
        batch, samples = waveform.shape
        frames = samples and -(-(samples + self.frame_length) // self.hop_length) + 1
        shape = (batch, frames, self.frame_length // 2 + 1, 2)
        return keras.KerasTensor(shape, self._wide_dtype)


@keras.saving.register_keras_serializable(package="keras_ortho")
class InverseSTFT(_Transform):
    """Inverse of `STFT`, equal to `keras_ortho.audio.istft`.

    Of a spectrum that no waveform has, such as a masked one, it is the waveform whose
    transform is closest in the least-squares sense.

    Args:
        frame_length: As in `STFT`. Default: 256.
        hop_length: As in `STFT`, but less than `frame_length`. Default: 128.
        **kwargs: As in `STFT`.

    Call arguments:
        spectrum: Tensor of shape `(batch, frames, frame_length // 2 + 1, 2)`.
        like: Tensor of shape `(batch, samples)`, used for the number of samples only.
            Default: `None`, for `(frames - 1) * hop_length - frame_length`.

    Output shape:
        `(batch, samples)`.

    Raises:
        ValueError: If a length is invalid, or `spectrum` has another shape.

    Example:
    >>> waveform = np.sin(np.arange(1000, dtype="float32"))[None]
    >>> again = InverseSTFT()(STFT()(waveform), waveform)
    >>> bool(np.allclose(again, waveform, atol=1e-5))
    True

    Reference:
    - Griffin and Lim, "Signal Estimation from Modified Short-Time Fourier
      Transform", 1984
    """

    def __init__(
        self,
        frame_length: int = 256,
        hop_length: int = 128,
        **kwargs: Any,
    ) -> None:
        check_lengths(frame_length, hop_length, overlap=True)
        super().__init__(frame_length, hop_length, **kwargs)
        axes = {2: frame_length // 2 + 1, 3: 2}
        self.input_spec = keras.InputSpec(ndim=4, axes=axes)

    def call(self, spectrum: Tensor, like: Tensor | None = None) -> Tensor:
        """Transforms spectra back."""
        spectrum = ops.cast(spectrum, self._wide_dtype)
        parts = (spectrum[..., 0], spectrum[..., 1])
        padded = ops.istft(parts, **self._lengths())
        if like is None:
            samples = self._longest(ops.shape(spectrum)[1])
        else:
            samples = ops.shape(like)[1]
        return padded[:, self.frame_length : self.frame_length + samples]

    def compute_output_spec(
        self, spectrum: keras.KerasTensor, like: keras.KerasTensor | None = None
    ) -> keras.KerasTensor:
        """Returns the shape and dtype of the waveforms."""
        frames = spectrum.shape[1]
        samples = frames and max(0, self._longest(frames))
        if like is not None:
            samples = like.shape[1]
        return keras.KerasTensor((spectrum.shape[0], samples), self._wide_dtype)

    def _longest(self, frames: Any) -> Any:
        return (frames - 1) * self.hop_length - self.frame_length
