"""Argument types for the command lines of the benchmarks."""

import argparse
import math


def positive_int(text: str) -> int:
    """Parses a positive integer."""
    if text.isdecimal() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a positive integer. Received: {text}")


def positive_float(text: str) -> float:
    """Parses a positive finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if 0 < number < math.inf:
        return number
    raise argparse.ArgumentTypeError(
        f"must be a finite number of more than 0. Received: {text}"
    )
