"""The lengths of the short-time Fourier transform, of arrays and of layers."""

from keras_ortho.checks import is_integer

FRAME_LENGTH = 256
HOP_LENGTH = 128


def check_lengths(frame_length: int, hop_length: int) -> None:
    """Checks the lengths of a transform."""
    for name, length in (("frame_length", frame_length), ("hop_length", hop_length)):
        if not is_integer(length):
            raise ValueError(f"`{name}` must be an integer. Received: {length!r}")
    if frame_length < 2 or frame_length % 2:
        raise ValueError(
            f"`frame_length` must be even and positive. Received: {frame_length}"
        )
    if hop_length < 1 or frame_length % hop_length:
        raise ValueError(
            f"`hop_length` must divide `frame_length` ({frame_length}). "
            f"Received: {hop_length}"
        )


def check_inverse_lengths(frame_length: int, hop_length: int) -> None:
    """Checks the lengths of an inverse transform."""
    check_lengths(frame_length, hop_length)
    if hop_length == frame_length:
        raise ValueError(
            f"`hop_length` must be less than `frame_length` ({frame_length}): the "
            "window is zero where a frame begins, so that frames must overlap. "
            f"Received: {hop_length}"
        )
