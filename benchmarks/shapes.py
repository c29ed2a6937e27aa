"""Shapes and data of the measured steps, the same for every candidate."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

FEATURES, OUTPUTS = 1, 10


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes for which a step is measured.

    Attributes:
        units: Number of units.
        steps: Number of time steps.
        batch: Batch size.
        jit_compile: Whether XLA compiles the step.
        features: Number of inputs per time step. Default: 1.
    """

    units: int
    steps: int
    batch: int
    jit_compile: bool
    features: int = FEATURES


Steps = tuple[Callable[[], Any], Callable[[], Any] | None]


def data(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Draws inputs and targets."""
    random = np.random.default_rng(0)
    x = random.random((shape.batch, shape.steps, shape.features), "float32")
    return x, random.random((shape.batch, OUTPUTS), "float32")
