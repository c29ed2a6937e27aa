"""Runs the files of `export_table.py` without this package.

Reads a task in JSON from standard input: `"folder"`, the folder of the files. Prints
`RESULT` and, by file name, the largest difference from the model's outputs, relative to
the largest output, or the error message.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Relative to the largest output, in float32.
TOLERANCE = 1e-4


def main() -> None:
    """Runs the command."""
    folder = Path(json.load(sys.stdin)["folder"])
    found: dict[str, float | str] = {}
    with np.load(folder / "data.npz") as data:
        for path in sorted(folder.glob("*-*.*")):
            layer, kind = path.stem.rsplit("-", 1)
            states = [data[k] for k in data if k.startswith(f"{layer}_state_")]
            wanted = data[f"{layer}_{kind}"]
            try:
                run = runner(path)
                if kind == "step":
                    outputs = step_by_step(run, data["x"], states)
                else:
                    outputs, wanted = whole(run, data["x"], wanted)
                error = np.abs(outputs - wanted).max() / np.abs(wanted).max()
                found[path.name] = float(error)
            except Exception as failure:
                found[path.name] = f"{type(failure).__name__}: {failure}"[:300]
    if "keras_ortho" in sys.modules:
        raise RuntimeError("The files must do without it. Received: keras_ortho")
    print("RESULT " + json.dumps(found))


def runner(path: Path) -> Callable[..., list[np.ndarray]]:
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
        inputs = sorted(
            run.get_input_details(), key=lambda name: ("state" in name, name)
        )
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


def step_by_step(
    run: Callable[..., list[np.ndarray]], x: np.ndarray, states: list[np.ndarray]
) -> np.ndarray:
    """Runs a one-step model over sequences, feeding its states back."""
    outputs = []
    for frame in x.swapaxes(0, 1):
        output, *states = run(frame, *states)
        outputs.append(output)
    return np.stack(outputs, axis=1)


def whole(
    run: Callable[..., list[np.ndarray]], x: np.ndarray, wanted: np.ndarray
) -> tuple[Any, Any]:
    """Runs a sequence model on all sequences, and on part of one.

    A model of fixed shape runs only on the part. Returns the outputs, and the expected
    outputs of the same sequences.
    """
    try:
        (part,) = run(x[:1, :8])
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"a sequence of another length: {error}") from error
    if np.abs(part - wanted[:1, :8]).max() > TOLERANCE * np.abs(wanted).max():
        raise ValueError("another result for a sequence of another length")
    try:
        (outputs,) = run(x)
    except (ValueError, RuntimeError):  # The model has a fixed shape.
        return part, wanted[:1, :8]
    return outputs, wanted


if __name__ == "__main__":
    main()
