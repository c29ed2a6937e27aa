"""Exports every layer in every format, and compares the files with the model.

Each layer, followed by a dense one, is exported as a model of whole sequences of any
size and as one of a step. LiteRT, which has no lists of tensors, gets a sequence model
of one sequence of eight steps. The table has the largest difference of each file from
the model, relative to the largest output. It needs TensorFlow and the extra `export`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from measuring import LAYERS, make_layer, parse, report

from keras_ortho import freeze, initial_states, step_model

UNITS, FEATURES, BATCH, STEPS, UNROLLED = 16, 3, 2, 70, 8
LITERT = {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]}
# By the ending of a file.
FORMATS: dict[str, dict[str, Any]] = {
    "saved_model": {"format": "tf_saved_model"},
    "onnx": {"format": "onnx"},
    "tflite": {"format": "litert", "target_spec": LITERT},
}
FILES = ["sequence.saved_model", "step.saved_model", "sequence.onnx", "step.onnx"]
FILES += ["unrolled.tflite", "step.tflite"]


def network(
    name: str, steps: int | None = None, batch: int | None = None, **changed: Any
) -> Any:
    """Makes a model with a layer, of which some arguments are changed."""
    layer = make_layer(name, UNITS)
    config = {**layer.get_config(), "return_sequences": True, **changed}
    layer = type(layer).from_config(config)
    inputs = keras.Input((steps, FEATURES), batch)
    return keras.Sequential([inputs, layer, keras.layers.Dense(2)])


def runner(path: Path) -> Callable[..., Any]:
    """Loads a file as a function from arrays to a sequence of arrays."""
    if path.suffix == ".saved_model":
        layer = keras.layers.TFSMLayer(path, call_endpoint="serve")

        def call(x: Any, *states: Any) -> list[np.ndarray]:
            found = layer([x, *states] if states else x)
            return [np.asarray(array) for array in keras.tree.flatten(found)]

        return call
    if path.suffix == ".onnx":
        session = onnxruntime.InferenceSession(path)
        names = [entry.name for entry in session.get_inputs()]
        return lambda *given: session.run(None, dict(zip(names, given, strict=True)))
    run = Interpreter(str(path)).get_signature_runner()
    # `x` before `state_0`, `state_1`, ...; a sequence model has only one input.
    names = sorted(run.get_input_details(), key=lambda n: ("state" in n, n))
    return lambda *given: [
        array
        for _, array in sorted(run(**dict(zip(names, given, strict=True))).items())
    ]


def export(name: str, folder: Path) -> list[str]:
    """Exports a layer; returns the difference of each file."""
    random = np.random.default_rng(0)
    x = random.normal(size=(BATCH, STEPS, FEATURES)).astype("float32")
    model, unrolled = network(name), network(name, UNROLLED, 1, unroll=True)
    for variable in model.trainable_variables:
        if variable.name in ("kernel", "bias"):  # Others than zeros.
            variable.assign_add(0.1 * random.normal(size=variable.shape))
    unrolled.set_weights(model.get_weights())
    frozen = freeze(model)
    models = {"sequence": frozen, "step": step_model(frozen)}
    models["unrolled"] = freeze(unrolled)
    wanted = model.predict(x, verbose=0)

    cells = []
    for file in FILES:
        (kind, ending), path = file.split("."), folder / f"{name}-{file}"
        models[kind].export(str(path), verbose=False, **FORMATS[ending])
        run = runner(path)
        if kind == "step":
            states = [np.asarray(state) for state in initial_states(frozen, BATCH)]
            outputs = []
            for frame in x.swapaxes(0, 1):
                output, *states = run(frame, *states)
                outputs.append(output)
            pairs = [(np.stack(outputs, axis=1), wanted)]
        else:  # `x` of several sizes; of one for LiteRT.
            sizes = [(1, UNROLLED), (BATCH, STEPS)][: 1 if kind == "unrolled" else 2]
            pairs = [(run(x[:b, :t])[0], wanted[:b, :t]) for b, t in sizes]
        difference = max(abs(a - b).max() for a, b in pairs) / abs(wanted).max()
        cells.append(f"{difference:.1e}")
    return cells


def main() -> None:
    """Runs the benchmark from the command line."""
    options = parse(__doc__, "deployment", LAYERS)
    options.out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(0)
    rows = [[f"`{LAYERS[name]}`", *export(name, options.out)] for name in options.only]
    report(options.out / "export.md", [f"n = {UNITS}", *FILES], rows)


if __name__ == "__main__":
    main()
