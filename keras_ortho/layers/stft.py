"""The short-time Fourier transform of the speech pipeline as layers, and back."""

from typing import Any

import keras
from keras import ops

from keras_ortho.audio.stft import (
    FRAME_LENGTH,
    HOP_LENGTH,
    check_inverse_lengths,
    check_lengths,
)
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor


class _Transform(keras.layers.Layer):
    """What both directions share: the lengths, and arithmetic in float32 at least."""

    check = staticmethod(check_lengths)

    def __init__(
        self,
        frame_length: int = FRAME_LENGTH,
        hop_length: int = HOP_LENGTH,
        **kwargs: Any,
    ) -> None:
        self.check(frame_length, hop_length)
        # Half precision has not the digits for a sum over a window.
        super().__init__(autocast=False, **kwargs)
        self.frame_length = frame_length
        self.hop_length = hop_length

    @property
    def transform_dtype(self) -> str:
        """The dtype of the arithmetic, and of what comes out."""
        return wide_dtype(self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer."""
        return super().get_config() | {
            "frame_length": self.frame_length,
            "hop_length": self.hop_length,
        }

    def _lengths(self) -> dict[str, Any]:
        return {
            "sequence_length": self.frame_length,
            "sequence_stride": self.hop_length,
            "fft_length": self.frame_length,
            "window": "hann",
            "center": False,
        }


def _check_waveform(name: str, waveform: Tensor) -> None:
    if len(waveform.shape) != 2:
        raise ValueError(
            f"`{name}` must have the shape (batch, samples). "
            f"Received: {tuple(waveform.shape)}"
        )


@keras.saving.register_keras_serializable(package="keras_ortho")
class STFT(_Transform):
    """Short-time Fourier transform of waveforms, equal to `keras_ortho.audio.stft`.

    The silence on both sides of a waveform, the window and the scale are that
    function's, so a model can read waveforms where the pipeline gave it frames.

    Args:
        frame_length: Even number of samples under the window. Default: 256.
        hop_length: Number of samples from one frame to the next; a divisor of
            `frame_length`. Default: 128.
        **kwargs: Keras's arguments of a layer, such as `name` and `dtype`. The
            transform is in float32, or in float64 where that is the dtype.

    Call arguments:
        waveform: Tensor of shape `(batch, samples)`.

    Output shape:
        `(batch, frames, frame_length // 2 + 1, 2)`, the real and the imaginary parts;
        with the default lengths there are `ceil(samples / 128) + 3` frames.

    Raises:
        ValueError: If a length does not fit; if `waveform` has another shape.

    Example:
    >>> waveform = np.sin(np.arange(1000, dtype="float32"))[None]
    >>> STFT()(waveform).shape
    (1, 11, 129, 2)
    """

    def call(self, waveform: Tensor) -> Tensor:
        """Transforms waveforms; for the arguments see the class."""
        _check_waveform("waveform", waveform)
        waveform = ops.cast(waveform, self.transform_dtype)
        if waveform.shape[0] == 0 and waveform.shape[1] is not None:
            # JAX would lose the other axes.
            return ops.zeros(self.compute_output_spec(waveform).shape, waveform.dtype)
        end = self.frame_length + -ops.shape(waveform)[1] % self.hop_length
        padded = ops.pad(waveform, ((0, 0), (self.frame_length, end)))
        return ops.stack(ops.stft(padded, **self._lengths()), axis=-1)

    def compute_output_spec(self, waveform: keras.KerasTensor) -> keras.KerasTensor:
        """Gives the shape and the dtype of the spectrum."""
        _check_waveform("waveform", waveform)
        batch, samples = waveform.shape
        frames = None
        if samples is not None:
            hops = self.frame_length // self.hop_length
            frames = -(-samples // self.hop_length) + hops + 1
        shape = (batch, frames, self.frame_length // 2 + 1, 2)
        return keras.KerasTensor(shape, self.transform_dtype)


@keras.saving.register_keras_serializable(package="keras_ortho")
class InverseSTFT(_Transform):
    """Inverse of `STFT`, equal to `keras_ortho.audio.istft`.

    Of spectra that no waveform has, such as masked ones, it gives the waveform whose
    transform is nearest in the least-squares sense.

    Args:
        frame_length: As for `STFT`. Default: 256.
        hop_length: As for `STFT`, but less than `frame_length`. Default: 128.
        **kwargs: As for `STFT`.

    Call arguments:
        spectrum: Tensor of shape `(batch, frames, frame_length // 2 + 1, 2)`.
        like: Tensor of shape `(batch, samples)`: the waveforms of which the spectrum
            was taken, for their number of samples. Default: `None`, all whole hops:
            `(frames - 1) * hop_length - frame_length` samples, or none.

    Output shape:
        `(batch, samples)`.

    Raises:
        ValueError: If a length or a shape does not fit, or `like` is known to have more
            samples than there are frames for.

    Example:
    >>> waveform = np.sin(np.arange(1000, dtype="float32"))[None]
    >>> again = InverseSTFT()(STFT()(waveform), waveform)
    >>> bool(np.allclose(again, waveform, atol=1e-5))
    True

    Reference:

    - Griffin and Lim, "Signal Estimation from Modified Short-Time Fourier
      Transform", 1984
    """

    check = staticmethod(check_inverse_lengths)

    def call(self, spectrum: Tensor, like: Tensor | None = None) -> Tensor:
        """Transforms spectra back; for the arguments see the class."""
        self._check_shapes(spectrum, like)
        spectrum = ops.cast(spectrum, self.transform_dtype)
        if 0 in spectrum.shape[:2] and None not in spectrum.shape[:2]:
            shape = self.compute_output_spec(spectrum, like).shape
            return ops.zeros(shape, spectrum.dtype)
        parts = (spectrum[..., 0], spectrum[..., 1])
        padded = ops.istft(parts, **self._lengths())
        if like is None:
            samples = self._whole(ops.shape(spectrum)[1])
        else:
            samples = ops.shape(like)[1]
        return padded[:, self.frame_length : self.frame_length + samples]

    def compute_output_spec(
        self, spectrum: keras.KerasTensor, like: keras.KerasTensor | None = None
    ) -> keras.KerasTensor:
        """Gives the shape and the dtype of the waveforms."""
        self._check_shapes(spectrum, like)
        batch, frames, *_ = spectrum.shape
        samples = None if frames is None else max(0, self._whole(frames))
        if like is not None:
            samples = like.shape[1]
        return keras.KerasTensor((batch, samples), self.transform_dtype)

    def _check_shapes(self, spectrum: Tensor, like: Tensor | None) -> None:
        wanted = (self.frame_length // 2 + 1, 2)
        if len(spectrum.shape) != 4 or tuple(spectrum.shape[2:]) != wanted:
            raise ValueError(
                f"`spectrum` must have the shape (batch, frames, {wanted[0]}, 2). "
                f"Received: {tuple(spectrum.shape)}"
            )
        if like is None:
            return
        _check_waveform("like", like)
        # What is not known yet is `None`, or a symbol where JAX exports.
        (batch, frames, *_), (others, samples) = spectrum.shape, like.shape
        if isinstance(batch, int) and isinstance(others, int) and batch != others:
            raise ValueError(
                f"`like` must have as many waveforms as there are spectra, {batch}. "
                f"Received: {others}"
            )
        if not (isinstance(frames, int) and isinstance(samples, int)):
            return
        longest = max(0, self._whole(frames))
        if samples > longest:
            raise ValueError(
                f"`like` must have at most {longest} samples for {frames} frames. "
                f"Received: {samples}"
            )

    def _whole(self, frames: Any) -> Any:
        return (frames - 1) * self.hop_length - self.frame_length
