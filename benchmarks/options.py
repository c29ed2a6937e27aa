"""Types of the options of the benchmarks."""

import argparse
import math


def positive_int(text: str) -> int:
    """Reads a positive whole number.

    Args:
        text: What the command line has.

    Returns:
        The number.

    Raises:
        argparse.ArgumentTypeError: If it is none.
    """
    if text.isdecimal() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a positive integer. Received: {text}")


def positive_float(text: str) -> float:
    """Reads a finite number of more than 0.

    Args:
        text: What the command line has.

    Returns:
        The number.

    Raises:
        argparse.ArgumentTypeError: If it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if 0 < number < math.inf:
        return number
    raise argparse.ArgumentTypeError(
        f"must be a finite number of more than 0. Received: {text}"
    )
