"""The adding problem with every architecture, in one figure.

    python examples/compare_adding.py --out out/compare_adding

Two marked numbers in a sequence of 200 steps to add, two epochs of 2 000 steps. Runs
one model after the other, some minutes each on two cores, and skips those whose result
is there already. The test error is measured a few times an epoch; nothing is chosen by
it. Writes a figure and a table.
"""

import argparse
import json
import time
from pathlib import Path

import keras
import numpy as np
from models import LAYERS, make_optimizer

from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import replacing
from keras_ortho.tasks import adding


def main() -> None:
    """Runs the command."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.models:
        path = result_path(options.out, name)
        if not path.exists():
            result = run(name, options)
            with replacing(path) as aside:
                aside.write_text(json.dumps(result, indent=1))
        report(options.out)


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for the results")
    add("--models", nargs="+", choices=list(LAYERS), default=list(LAYERS))
    add("--length", type=int, default=200, help="steps of a sequence (200)")
    add("--epochs", type=int, default=2, help="(2)")
    add("--evaluations", type=int, default=4, help="tests in an epoch (4)")
    add("--train-size", type=int, default=100_000, help="(100 000)")
    add("--test-size", type=int, default=10_000, help="(10 000)")
    add("--seed", type=int, default=0, help="(0)")
    return parser.parse_args()


def result_path(folder: Path, name: str) -> Path:
    """Names the file for the result of a model."""
    return folder / f"{name.replace(' ', '_')}.json"


def run(name: str, options: argparse.Namespace) -> dict:
    """Trains a model and gives its errors."""
    print(name)
    keras.utils.set_random_seed(options.seed)
    task = adding.load(
        options.length,
        train_size=options.train_size,
        test_size=options.test_size,
        seed=options.seed,
    )
    model = keras.Sequential(
        [keras.Input((options.length, 2)), LAYERS[name](), keras.layers.Dense(1)]
    )
    model.compile(make_optimizer(name), "mse")
    steps = len(task.train) // options.evaluations
    started = time.monotonic()
    history = model.fit(
        task.train.repeat(),
        steps_per_epoch=steps,
        epochs=options.epochs * options.evaluations,
        validation_data=task.test,
        shuffle=False,
    )
    errors = history.history["val_loss"]
    return {
        "name": name,
        "parameters": sum(int(np.prod(w.shape)) for w in model.trainable_weights),
        "epochs": [(i + 1) / options.evaluations for i in range(len(errors))],
        "test_mse": errors,
        "baseline": task.baseline,
        "seconds": round(time.monotonic() - started, 1),
        "seed": options.seed,
        "keras": keras.version(),
        "backend": keras.backend.backend(),
    }


def report(folder: Path) -> None:
    """Draws the curves of all results that are there, and writes the table."""
    paths = (result_path(folder, name) for name in LAYERS)
    results = [json.loads(path.read_text()) for path in paths if path.exists()]
    plot_curves(
        folder / "curves.png",
        {result["name"]: result["test_mse"] for result in results},
        x={result["name"]: result["epochs"] for result in results},
        baselines={"always 1": results[0]["baseline"]},
        ylabel="test MSE",
        log=True,
    )
    lines = ["| model | parameters | test MSE at the end | lowest | s |"]
    lines += ["|---|--:|--:|--:|--:|"]
    lines += [
        f"| {r['name']} | {r['parameters']:,} | {r['test_mse'][-1]:.4f} "
        f"| {min(r['test_mse']):.4f} | {r['seconds']:.0f} |"
        for r in results
    ]
    with replacing(folder / "table.md") as aside:
        aside.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
