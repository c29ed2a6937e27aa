"""Exports every layer in every format, and measures the files and a frozen step.

Each layer, followed by a dense one, is exported as a model of whole sequences of any
size and as one of a step. LiteRT, which has no lists of tensors, gets a sequence model
of one sequence of eight steps. The first table has the largest difference of each file
from the model, relative to the largest output, and its size. The second has the time of
a call of one frame, over that of `SimpleRNN` with as many real state entries. Run it as
`python benchmarks/deployment.py`, with TensorFlow and the extra `export`.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import exported_files
import keras
import numpy as np
import tensorflow as tf
from exported_files import UNROLLED
from measuring import LAYERS, OUT, in_turns, make_layer, report

from keras_ortho import freeze, initial_states, step_model

UNITS, FEATURES, BATCH, STEPS, FRAME = 16, 3, 2, 70, 40
LITERT = {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]}
# By the ending of a file.
FORMATS: dict[str, dict[str, Any]] = {
    "saved_model": {"format": "tf_saved_model"},
    "onnx": {"format": "onnx"},
    "tflite": {"format": "litert", "target_spec": LITERT},
}
TITLES = {"saved_model": "SavedModel", "onnx": "ONNX", "tflite": "LiteRT built-ins"}


def network(name: str, steps: int | None, batch: int | None, **changed: Any) -> Any:
    """Makes a model with a layer, of which some arguments are changed."""
    layer = make_layer(name, UNITS)
    config = {**layer.get_config(), "return_sequences": True, **changed}
    return keras.Sequential(
        [
            keras.Input((steps, FEATURES), batch),
            type(layer).from_config(config),
            keras.layers.Dense(2),
        ]
    )


def export(names: list[str], folder: Path) -> dict[str, float | str]:
    """Exports the layers; returns the difference of each file, or why there is none."""
    random = np.random.default_rng(0)
    x = random.normal(size=(BATCH, STEPS, FEATURES)).astype("float32")
    data, failed = {"x": x}, {}
    for name in names:
        model = network(name, None, None)
        for variable in model.trainable_variables:
            if variable.name in ("kernel", "bias"):  # Others than zeros.
                variable.assign_add(0.1 * random.normal(size=variable.shape))
        data[f"{name}_outputs"] = model.predict(x, verbose=0)
        frozen = freeze(model)
        for number, state in enumerate(initial_states(frozen, BATCH)):
            data[f"{name}_state_{number}"] = np.asarray(state)
        unrolled = network(name, UNROLLED, 1, unroll=True)
        unrolled.set_weights(model.get_weights())
        for ending, arguments in FORMATS.items():
            what = {"step": step_model(frozen), "sequence": frozen}
            if ending == "tflite":
                what["unrolled"] = freeze(unrolled)
                del what["sequence"]
            for kind, each in what.items():
                file = f"{name}-{kind}.{ending}"
                try:
                    each.export(str(folder / file), verbose=False, **arguments)
                except Exception as error:
                    failed[file] = f"{type(error).__name__}: {error}".splitlines()[0]
    np.savez(folder / "data.npz", **data)  # type: ignore[arg-type]
    subprocess.run([sys.executable, exported_files.__file__, folder], check=True)
    return json.loads((folder / "results.json").read_text()) | failed


def kilobytes(path: Path) -> str:
    """Formats the size of a file or folder."""
    files = (file for file in [path, *path.rglob("*")] if file.is_file())
    return f"{sum(file.stat().st_size for file in files) / 1e3:.0f}"


def table(names: list[str], folder: Path) -> None:
    """Reports on the files of the layers."""
    found = export(names, folder)
    columns = [
        (ending, kind)
        for ending in FORMATS
        for kind in ("unrolled" if ending == "tflite" else "sequence", "step")
    ]
    rows = []
    for name in names:
        files = [f"{name}-{kind}.{ending}" for ending, kind in columns]
        values = (found[file] for file in files)
        errors = (v if isinstance(v, str) else f"{v:.1e}" for v in values)
        sizes = (kilobytes(folder / file) for file in files)
        rows.append([f"`{LAYERS[name]}`", *errors, *sizes])
    titles = [f"{TITLES[ending]}, {kind}" for ending, kind in columns]
    titles = [f"n = {UNITS}", *titles, *(f"{title}, kB" for title in titles)]
    report(folder / "export.md", titles, rows)


def call(layer: keras.layers.Layer, frozen: bool) -> Callable[[], None]:
    """Makes a compiled call of one frame, from the states of the previous one."""
    model = keras.Sequential([keras.Input((None, FRAME), batch_size=1), layer])
    model = freeze(model) if frozen else model
    step = step_model(model)
    run = tf.function(lambda *given: step(given, training=False), reduce_retracing=True)
    x = tf.ones((1, FRAME))
    states = [tf.constant(state) for state in initial_states(model, 1)]

    def one() -> None:
        nonlocal states
        _, *states = run(x, *states)

    one()
    one()
    return one


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    add("--state", type=int, default=512, help="of the frozen step (512)")
    add("--repeats", type=int, default=300, help="of each call (300)")
    add("--out", type=Path, default=OUT / "deployment")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(0)
    table(options.only, options.out)
    rows = []
    for name in options.only:
        row = [f"`{LAYERS[name]}`"]
        for frozen in (False, True):
            # Only two calls take turns: after one that factorizes a matrix, the next
            # finds the caches of the processor without its own data.
            calls = {"own": call(make_layer(name, options.state), frozen)}
            calls["SimpleRNN"] = call(make_layer("SimpleRNN", options.state), False)
            seconds = in_turns(calls, options.repeats)
            row.append(f"{seconds['own'] / seconds['SimpleRNN']:.2f}")
        rows.append(row)
    titles = [f"n = {options.state}, one frame", "not frozen", "frozen"]
    report(options.out / "frozen.md", titles, rows)


if __name__ == "__main__":
    main()
