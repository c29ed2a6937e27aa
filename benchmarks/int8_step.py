"""Measures what 8-bit LiteRT costs a permuted MNIST network in accuracy.

The trained network is frozen, and its step model (`keras_ortho.step_model`) is exported
to LiteRT in several precisions. Each file then reads the test images, one pixel per
call.

Run it as `python benchmarks/int8_step.py --model out/permuted-mnist/run/best.keras
--data-dir MNIST`, with a network that `examples/permuted_mnist.py` trained; it writes a
table and a JSON file. It requires the TensorFlow backend.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from exported_files import runner
from options import positive_int
from reports import write_report
from tqdm import tqdm

import keras_ortho
from experiments.tables import table
from keras_ortho.tasks import pixels

# Number of pixels per training image in the calibration of the ranges.
PIXELS = 784
BATCH = 50
INTEGERS = {"optimizations": [tf.lite.Optimize.DEFAULT]}
PRECISIONS: dict[str, tuple[dict[str, Any], bool]] = {
    "float32": ({}, False),
    "weights float16": (
        INTEGERS | {"target_spec": {"supported_types": [tf.float16]}},
        False,
    ),
    "weights int8": (INTEGERS, False),
    "weights and activations int8": (
        INTEGERS
        | {"target_spec": {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]}},
        True,
    ),
    "weights int8, activations int16": (
        INTEGERS
        | {
            "target_spec": {
                "supported_ops": [
                    tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
                ]
            }
        },
        True,
    ),
}


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="a .keras file")
    parser.add_argument("--data-dir", type=Path, help="folder of MNIST")
    parser.add_argument(
        "--images", type=positive_int, default=10_000, help="of the test"
    )
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    if options.images % BATCH:
        parser.error(
            f"--images must be a multiple of {BATCH}. Received: {options.images}"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    model = keras_ortho.freeze(keras.models.load_model(options.model))
    task = pixels.mnist(
        steps=784, permuted=True, batch_size=BATCH, data_dir=options.data_dir
    )
    batches = list(task.test.take(options.images // BATCH).as_numpy_iterator())
    images, labels = (np.concatenate(part) for part in zip(*batches, strict=True))
    step = keras_ortho.step_model(model)
    start = [np.asarray(s) for s in keras_ortho.initial_states(model, len(images))]
    trained = np.argmax(model.predict(images, batch_size=BATCH, verbose=0), -1)
    rows = [{"name": "as trained", "accuracy": float(np.mean(trained == labels))}]
    (some, _) = next(task.train.as_numpy_iterator())
    for name, (arguments, ranges) in PRECISIONS.items():
        own = dict(arguments)
        if ranges:
            own["representative_dataset"] = lambda: _walk(step, model, some)
        path = options.out / f"step-{name.replace(' ', '-').replace(',', '')}.tflite"
        row: dict[str, Any] = {"name": name}
        rows.append(row)
        try:
            step.export(path, format="litert", verbose=False, **own)
        except RuntimeError as error:  # The converter lacks an operation.
            row["error"] = str(error).strip().splitlines()[-1]
            continue
        began = time.perf_counter()
        found = _classes(runner(path), images, start, name)
        row |= {
            "bytes": path.stat().st_size,
            "accuracy": float(np.mean(found == labels)),
            "other class": float(np.mean(found != trained)),
            "seconds": time.perf_counter() - began,
        }
    about = {"images": len(images), "model": str(options.model)}
    titles = ["step", "bytes", "test accuracy", "another class than as trained"]
    lines = table(titles, map(_cells, rows), right=True)
    write_report(options.out / "int8-step", {**about, "rows": rows}, lines)
    print("\n".join(lines))


def _walk(
    step: keras.Model, model: keras.Model, images: np.ndarray
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs of each step for a batch of images."""
    states = [np.asarray(s) for s in keras_ortho.initial_states(model, len(images))]
    for pixel in images.swapaxes(0, 1)[:PIXELS]:
        names = [f"state_{i}" for i in range(len(states))]
        yield {"x": pixel, **dict(zip(names, states, strict=True))}
        _, *states = (np.asarray(each) for each in step([pixel, *states]))


def _classes(
    run: Callable[..., list[np.ndarray]],
    images: np.ndarray,
    states: list[np.ndarray],
    name: str,
) -> np.ndarray:
    for pixel in tqdm(images.swapaxes(0, 1), desc=name, unit="pixel"):
        logits, *states = run(pixel, *states)
    return np.argmax(logits, -1)


def _cells(row: dict[str, Any]) -> list[str]:
    if "error" in row:
        return [row["name"], row["error"], "", ""]
    size = f"{row['bytes']:,}" if "bytes" in row else ""
    other = f"{row['other class']:.4f}" if "other class" in row else ""
    return [row["name"], size, f"{row['accuracy']:.4f}", other]


if __name__ == "__main__":
    main()
