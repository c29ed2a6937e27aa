"""Candidates, precisions and shapes of `gpu.py`, without importing Keras."""

import itertools
from typing import Any

from keras_ortho.architectures import ARCHITECTURES

LAYER_NAMES = tuple(ARCHITECTURES)
CUDNN = ("LSTM, cuDNN", "LSTM, cuDNN, equal parameters")
TORCH = (
    "torch LSTM",
    "torch LSTM, equal parameters",
    "torch RNN",
    "torch RNN, equal parameters",
    "torch RNN, orthogonal",
)
# The baselines of the ratios: Keras's own loop, and cuDNN through JAX and PyTorch.
BASES = ("SimpleRNN", *CUDNN, *TORCH[:4])
NAMES = (
    *LAYER_NAMES,
    "SimpleRNN",
    "SimpleRNN, equal parameters",
    "LSTM",
    "GRU",
    *CUDNN,
    *TORCH,
    "matrix products",
)

# Keras's dtype policy and JAX's precision of float32 products, which on a GPU is
# TensorFloat-32 by default.
PRECISIONS: dict[str, tuple[str, str | None]] = {
    "float32": ("float32", "float32"),
    "tf32": ("float32", "tensorfloat32"),
    "bfloat16": ("mixed_bfloat16", None),
}

Shape = tuple[int, int, int]
UNITS, STEPS = (128, 170, 256, 512, 1_024), (128, 784, 2_000, 10_000)
BATCHES = (16, 64, 128, 512)
CENTER: Shape = (170, 784, 128)
# By form, the shapes for the times and the shapes for the peak memory.
FORMS: dict[str, tuple[list[Shape], list[Shape]]] = {
    "tiny": ([(16, 12, 3)], [(16, 12, 3)]),
    "short": ([CENTER, (512, 784, 128)], [CENTER]),
    "grid": (
        [CENTER, *(s for s in itertools.product(UNITS, STEPS, BATCHES) if s != CENTER)],
        [CENTER, (170, 10_000, 64), (512, 784, 512), (1_024, 2_000, 64)],
    ),
}
# By form and precision, the units, steps and batch of the check: in float32, two
# segments of the recurrence and a remainder; otherwise few steps, for the reason that
# `gpu_check.py` states.
CHECKED: dict[str, dict[str, Shape]] = {
    form: {
        "float32": (n, steps, batch),
        "tf32": (n, 8, batch),
        "bfloat16": (n, 8, batch),
    }
    for form, (n, steps, batch) in {
        "tiny": (16, 70, 16),
        "short": (128, 131, 16),
        "grid": (128, 131, 16),
    }.items()
}
# By form, the candidates to profile.
PROFILED: dict[str, tuple[str, ...]] = {
    "tiny": ("ScoRNN",),
    "short": ("ScoRNN", "GORU", "SimpleRNN", *CUDNN[:1]),
    "grid": (*LAYER_NAMES, "SimpleRNN", "LSTM", "GRU", *CUDNN[:1]),
}


def tasks(form: str, precisions: list[str], names: list[str]) -> list[dict[str, Any]]:
    """Lists the tasks in the order of their measurement."""
    timed, measured = FORMS[form]
    layers = [name for name in names if name in LAYER_NAMES]
    # In one process, PyTorch and JAX would compete for the memory of the device.
    groups = [[n for n in names if n not in TORCH], [n for n in names if n in TORCH]]
    found: list[dict[str, Any]] = []

    def add(kind: str, shape: Shape, precision: str, names: list[str]) -> None:
        sizes = dict(zip(("units", "steps", "batch"), shape, strict=True))
        if names:
            found.append(
                {"kind": kind, "precision": precision, **sizes, "names": names}
            )

    for shape, precision in itertools.product(timed, precisions):
        for group in groups:
            add("time", shape, precision, group)
    for units, precision in itertools.product(
        dict.fromkeys(shape[0] for shape in timed), precisions
    ):
        add("kernel", (units, 0, 0), precision, layers)
    for shape, precision in itertools.product(measured, precisions):
        for name in names:
            add("memory", shape, precision, [name])
    for precision in precisions:
        for name in PROFILED[form]:
            if name in names:
                add("profile", timed[0], precision, [name])
    return found
