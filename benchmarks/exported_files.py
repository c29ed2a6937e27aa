"""Runs the files of `deployment.py` in a process without this package.

Its argument is the folder of the files and of `data.npz`. It writes to `results.json`
the largest difference of each file from the model's outputs, relative to the largest
output, or the error message.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

UNROLLED = 8  # steps of the LiteRT models of whole sequences
Run = Callable[..., Any]


def runner(path: Path) -> Run:
    """Loads a file as a function from arrays to a list of arrays."""
    if path.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(path)
        names = [entry.name for entry in session.get_inputs()]
        return lambda *given: session.run(None, dict(zip(names, given, strict=True)))
    if path.suffix == ".tflite":
        from ai_edge_litert.interpreter import Interpreter

        run = Interpreter(str(path)).get_signature_runner()
        # `x` before `state_0`, `state_1`, ...; a sequence model has only one input.
        inputs = sorted(run.get_input_details(), key=lambda n: ("state" in n, n))
        outputs = sorted(run.get_output_details())

        def call(*given: np.ndarray) -> list[np.ndarray]:
            found = run(**dict(zip(inputs, given, strict=True)))
            return [found[name] for name in outputs]

        return call
    import tensorflow as tf

    loaded = tf.saved_model.load(path)

    def serve(*given: np.ndarray) -> list[np.ndarray]:
        tensors = [tf.constant(array) for array in given]
        found = loaded.serve(tensors if len(tensors) > 1 else tensors[0])
        return [tensor.numpy() for tensor in tf.nest.flatten(found)]

    return serve


def difference(run: Run, kind: str, x: np.ndarray, states: Any, wanted: Any) -> float:
    """Runs a file, of one step or of sequences, and compares it with the model."""
    if kind == "step":
        outputs = []
        for frame in x.swapaxes(0, 1):
            output, *states = run(frame, *states)
            outputs.append(output)
        pairs = [(np.stack(outputs, axis=1), wanted)]
    else:  # `x` of several sizes; of one for LiteRT.
        sizes = [(1, UNROLLED)] if kind == "unrolled" else [(1, UNROLLED), x.shape[:2]]
        pairs = [(run(x[:b, :t])[0], wanted[:b, :t]) for b, t in sizes]
    return float(max(abs(a - b).max() for a, b in pairs) / abs(wanted).max())


def main() -> None:
    """Runs the command."""
    folder = Path(sys.argv[1])
    found: dict[str, float | str] = {}
    with np.load(folder / "data.npz") as data:
        for path in sorted(folder.glob("*-*.*")):
            layer, kind = path.stem.rsplit("-", 1)
            states = [data[k] for k in data if k.startswith(f"{layer}_state_")]
            try:
                found[path.name] = difference(
                    runner(path), kind, data["x"], states, data[f"{layer}_outputs"]
                )
            except Exception as error:
                found[path.name] = f"{type(error).__name__}: {error}".splitlines()[0]
    assert "keras_ortho" not in sys.modules  # The files must do without it.
    (folder / "results.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
