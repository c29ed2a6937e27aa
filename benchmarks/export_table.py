"""Exports every layer in every format and compares the outputs with Keras's.

Each layer, followed by a dense layer, is frozen (`keras_ortho.freeze`) and exported as
a model of whole sequences and as a model of one time step, whose states are fed back.
TensorFlow, ONNX Runtime and LiteRT (built-in operations only) run the files in a
process without this package. The sequence models accept any batch size and any length,
except LiteRT's: it has no lists of tensors, so its model is unrolled over eight time
steps of one sequence (`unroll=True`).

Run it as `python benchmarks/export_table.py [--out out/export]`; it needs the extra
`export`. It writes a table of the largest difference from the model's outputs, relative
to the largest output, or the reason why a result is missing.
"""

import argparse
import importlib.metadata
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from layers import LAYERS, expression, make_layer
from machine import machine, versions
from processes import run
from tqdm import tqdm

from experiments.tables import table
from keras_ortho import freeze, initial_states, step_model
from keras_ortho.files import replacing

UNITS, FEATURES, BATCH, STEPS, UNROLLED = 16, 3, 2, 70, 8
FORMATS: dict[str, dict[str, Any]] = {
    "saved_model": {"format": "tf_saved_model"},
    "onnx": {"format": "onnx"},
    "tflite": {
        "format": "litert",
        "target_spec": {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]},
    },
}
TITLES = {"saved_model": "SavedModel", "onnx": "ONNX", "tflite": "LiteRT built-ins"}


def main() -> None:
    """Runs the command."""
    options = parse()
    keras.utils.set_random_seed(0)
    options.out.mkdir(parents=True, exist_ok=True)
    x = np.random.default_rng(0).normal(size=(BATCH, STEPS, FEATURES))
    data = {"x": x.astype("float32")}
    failed: dict[str, str] = {}
    for name in tqdm(options.only, unit="layer"):
        model = trained(name)
        data[f"{name}_sequence"] = data[f"{name}_step"] = model.predict(
            data["x"], verbose=0
        )
        frozen = freeze(model)
        for number, state in enumerate(initial_states(frozen, BATCH)):
            data[f"{name}_state_{number}"] = state
        unrolled = rebuilt(name, model)
        for suffix, arguments in FORMATS.items():
            sequence = unrolled if suffix == "tflite" else frozen
            for kind, what in (("sequence", sequence), ("step", step_model(frozen))):
                file = f"{name}-{kind}.{suffix}"
                try:
                    what.export(str(options.out / file), verbose=False, **arguments)
                except Exception as error:
                    failed[file] = f"{type(error).__name__}: {error}"[:300]
    np.savez(options.out / "data.npz", **data)  # type: ignore[arg-type]
    found = run("exported_files.py", {"folder": str(options.out.resolve())})
    text = describe(options.only, found | failed)
    with replacing(options.out / "table.md") as aside:
        aside.write_text(text, "utf-8")
    print(text)


def trained(name: str) -> keras.Model:
    """Makes a model whose biases and input kernels are not close to zero."""
    model = keras.Sequential(
        [
            keras.Input((None, FEATURES)),
            layer(name, return_sequences=True),
            keras.layers.Dense(2),
        ]
    )
    random = np.random.default_rng(1)
    for variable in model.trainable_variables:
        if variable.name in ("kernel", "bias"):
            variable.assign_add(0.1 * random.normal(size=variable.shape))
    return model


def rebuilt(name: str, model: keras.Model) -> keras.Model:
    """Makes a frozen copy of a model, unrolled over eight steps of one sequence."""
    copy = keras.Sequential(
        [
            keras.Input((UNROLLED, FEATURES), batch_size=1),
            layer(name, return_sequences=True, unroll=True),
            keras.layers.Dense(2),
        ]
    )
    copy.set_weights(model.get_weights())
    return freeze(copy)


def layer(name: str, **changed: Any) -> keras.layers.Layer:
    """Makes a layer of `LAYERS` with some arguments changed."""
    made = make_layer(name, UNITS)
    return type(made).from_config({**made.get_config(), **changed})


def describe(names: list[str], found: dict[str, Any]) -> str:
    """Formats the table, followed by the reasons for missing results."""
    columns = [(suffix, kind) for suffix in FORMATS for kind in ("sequence", "step")]
    rows = []
    reasons: dict[str, str] = {}
    for name in names:
        row = [f"`{expression(name, UNITS)}`"]
        for suffix, kind in columns:
            value = found[f"{name}-{kind}.{suffix}"]
            if isinstance(value, str):
                reasons[f"{expression(name, UNITS)}, {TITLES[suffix]}, {kind}"] = value
            row.append("none" if isinstance(value, str) else f"{value:.1e}")
        rows.append(row)
    about = machine()
    lines = table(["layer", *(f"{TITLES[s]}, {k}" for s, k in columns)], rows, True)
    lines += [
        "",
        f"(n = {UNITS}; {about['commit']}, {versions(about)}, {export_versions()}.)",
    ]
    lines += [f"- {where}: {reason}" for where, reason in reasons.items()]
    return "\n".join(lines) + "\n"


def export_versions() -> str:
    """Returns the versions of the packages of the extra `export`."""
    packages = ("tf2onnx", "onnx", "onnxruntime", "ai-edge-litert")
    return ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--out", type=Path, default=Path("out/export"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
