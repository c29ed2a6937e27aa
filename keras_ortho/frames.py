"""The lengths of the short-time Fourier transform, of arrays and of layers."""

from keras_ortho.checks import check_count

FRAME_LENGTH = 256
HOP_LENGTH = 128


def check_lengths(frame_length: int, hop_length: int) -> None:
    """Checks the lengths of a transform."""
    check_count("frame_length", frame_length)
    if frame_length % 2 or frame_length % check_count("hop_length", hop_length):
        raise ValueError(
            "`frame_length` must be even, and `hop_length` must divide `frame_length`. "
            f"Received: frame_length={frame_length}, hop_length={hop_length}"
        )


def check_inverse_lengths(frame_length: int, hop_length: int) -> None:
    """Checks the lengths of an inverse transform, in which frames must overlap."""
    check_lengths(frame_length, hop_length)
    if hop_length == frame_length:
        raise ValueError(
            "`hop_length` must be less than `frame_length`: frames must overlap. "
            f"Received: {hop_length}"
        )
