"""Runs the files of `export_table.py`, without this package.

Reads a task, JSON on its standard input: `"folder"`, where they are. Prints, after the
word `RESULT`, by the name of each file, the largest difference of its outputs to the
model's, over the largest output, or the error.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Of the largest output, in float32.
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
    """Loads a file as a function of arrays, and gives a list of arrays."""
    if path.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(path)
        names = [entry.name for entry in session.get_inputs()]
        return lambda *given: session.run(None, dict(zip(names, given, strict=True)))
    if path.suffix == ".tflite":
        from ai_edge_litert.interpreter import Interpreter

        run = Interpreter(str(path)).get_signature_runner()
        # `x` before `state_0`, `state_1`, ...; of a sequence there is one input.
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
    """Feeds a step with its own states."""
    outputs = []
    for frame in x.swapaxes(0, 1):
        output, *states = run(frame, *states)
        outputs.append(output)
    return np.stack(outputs, axis=1)


def whole(
    run: Callable[..., list[np.ndarray]], x: np.ndarray, wanted: np.ndarray
) -> tuple[Any, Any]:
    """Gives all sequences to a model, and a part of one to it again, where it may."""
    try:
        (part,) = run(x[:1, :8])
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"a sequence of another length: {error}") from error
    if np.abs(part - wanted[:1, :8]).max() > TOLERANCE * np.abs(wanted).max():
        raise ValueError("another result for a sequence of another length")
    try:
        (outputs,) = run(x)
    except (ValueError, RuntimeError):  # Of the shape that it was made for.
        return part, wanted[:1, :8]
    return outputs, wanted


if __name__ == "__main__":
    main()
