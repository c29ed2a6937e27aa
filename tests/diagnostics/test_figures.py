import warnings

import numpy as np
import pytest
from keras import layers

from keras_ortho import diagnostics

MAP = np.tri(12) * np.exp(-np.arange(12.0))
VALUES = np.exp(1j * np.arange(5))
PLANE = layers.SimpleRNN(2)
PLANE.build((None, None, 1))
MANY = {str(i): {10: VALUES, 20: i * VALUES} for i in range(12)}

CURVES = {"mine": [3.0, 2.0], "others": [4.0, 3.0]}
BANDS = {"others": ([3.5, 2.5], [5.0, 4.0])}

DRAWINGS = [
    ("curves", CURVES, {"emphasized": "mine", "bands": BANDS, "log": True}),
    ("curves", CURVES, {"x": {n: [4, 8] for n in CURVES}, "baselines": {"a": 9.0}}),
    ("gradient_norms", {"a": 10.0 ** -np.arange(9), "b": np.zeros(9)}, {}),
    ("gradient_norms", {"a": [0.0, 0.0]}, {}),
    ("heat_map", {"a": MAP, "b": MAP[:3, :3]}, {}),
    ("heat_map", {"a": np.zeros((2, 2))}, {"log": True}),
    ("eigenvalues", {"a": VALUES, "b": VALUES[:1]}, {}),
    ("eigenvalue_moduli", MANY, {}),
    ("trajectories", {"one": PLANE, "two": PLANE}, {"num_steps": 5}),
    ("spectrograms", {"a": np.arange(40.0).reshape(8, 5)}, {}),
]


@pytest.mark.parametrize(("figure", "shown", "given"), DRAWINGS)
def test_drawings(figure, shown, given, tmp_path):
    path = tmp_path / "new" / "figure.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(diagnostics, f"plot_{figure}")(path, shown, **given)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5000
    assert [p.name for p in path.parent.iterdir()] == ["figure.png"]
