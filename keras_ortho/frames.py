"""The lengths of the short-time Fourier transform, of arrays and of layers."""

from keras_ortho.checks import check, check_count

FRAME_LENGTH = 256
HOP_LENGTH = 128


def check_lengths(frame_length: int, hop_length: int, overlap: bool = False) -> None:
    """Checks the lengths of a transform, whose frames overlap if it has an inverse."""
    check_count("frame_length", frame_length)
    wanted = "be even, and `hop_length` must divide `frame_length`"
    rest = frame_length % 2 or frame_length % check_count("hop_length", hop_length)
    received = f"frame_length={frame_length}, hop_length={hop_length}"
    check(not rest, "frame_length", wanted, received)
    wanted = "be less than `frame_length`: frames must overlap"
    check(hop_length < frame_length or not overlap, "hop_length", wanted, hop_length)
