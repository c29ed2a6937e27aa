"""Batch normalized preconditioning on CIFAR-10, against batch normalization.

    python examples/bnp.py --data-dir DATA --out out/bnp
    python examples/bnp.py --smoke --out out/smoke

Helfrich, dissertation, 2020, section 3.4: images as vectors of 3072, three hidden
layers of 100 with ReLU, gradient descent, batches of 60 and of 6; a plain network, one
with batch normalization, and one of BNP. The author chose the rates on a grid and does
not tell them: here each network gets, for each batch size, the rate of `--rates` with
the best validation accuracy. An epoch of all images takes some seconds a rate with
batches of 60, and about ten times that with batches of 6.
Runs one after the other, each in a folder of its own, and goes on where a kill left
off. `--smoke` takes less than a minute.

Writes run.json, table.md, loss-60.png (the training loss, as the mean over an epoch),
accuracy-60.png (the test accuracy), the same for 6, and of each run history.csv. The
epoch and the rate are chosen on validation data; the best test figure of all epochs is
given, too, by that name.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import keras

from keras_ortho.diagnostics import plot_curves
from keras_ortho.experiments import smoke
from keras_ortho.experiments.report import run_record
from keras_ortho.files import replacing
from keras_ortho.metrics import ErrorRate
from keras_ortho.networks import BNP_KINDS, bnp_network
from keras_ortho.tasks import pixels
from keras_ortho.training import train
from keras_ortho.training_callbacks import TestFigures

TITLES = {"plain": "plain", "batch-norm": "batch normalization", "bnp": "BNP"}
SMOKE: dict[str, Any] = {"epochs": 2, "batch_sizes": [60, 6], "rates": [0.01, 0.1]}


def main() -> None:
    """Runs the command."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    record = run_record(vars(options))
    names = ("train_size", "valid_size", "test_size")
    given: dict[str, Any] = {
        name: getattr(options, name)
        for name in names
        if getattr(options, name) is not None
    }
    given["data_dir"] = options.data_dir
    if options.smoke:
        given |= smoke.cifar10(options.out / "images")
    results = []
    for batch_size in options.batch_sizes:
        data = pixels.cifar10(
            form="flat", batch_size=batch_size, seed=options.seed, **given
        )
        for kind in options.models:
            for rate in options.rates:
                results.append(run(kind, batch_size, rate, data, options))
                report(options, record, results)


def parse() -> argparse.Namespace:
    """Reads the command line, and fills in what it leaves open."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--models", nargs="+", choices=BNP_KINDS, default=list(BNP_KINDS))
    add("--data-dir", type=Path, help="folder or file of CIFAR-10")
    add("--out", type=Path, required=True, help="folder for the results")
    add("--batch-sizes", type=int, nargs="+", help="(60 6)")
    add(
        "--rates",
        type=float,
        nargs="+",
        help="to choose from (0.003 0.01 0.03 0.1 0.3)",
    )
    add("--epochs", type=int, help="(30)")
    add("--train-size", type=int, help="images to train on (all)")
    add("--valid-size", type=int, help="images to choose on (5 000)")
    add("--test-size", type=int, help="images to test on (all)")
    add("--seed", type=int, default=0, help="(0)")
    add("--smoke", action="store_true", help="images it makes")
    options = parser.parse_args()
    if options.smoke:
        for name in ("data_dir", "train_size", "valid_size", "test_size"):
            if getattr(options, name) is not None:
                parser.error(f"--smoke has its own data: no --{name.replace('_', '-')}")
    usual = {
        "epochs": 30,
        "batch_sizes": [60, 6],
        "rates": [0.003, 0.01, 0.03, 0.1, 0.3],
    }
    for name, value in (SMOKE if options.smoke else usual).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def run(
    kind: str, batch_size: int, rate: float, data: Any, options: argparse.Namespace
) -> dict[str, Any]:
    """Trains a network with a rate and gives its figures."""
    keras.utils.set_random_seed(options.seed)
    model = bnp_network(
        kind,
        input_shape=data.train.element_spec[0].shape[1:],
        num_classes=data.num_classes,
    )
    model.compile(
        keras.optimizers.SGD(rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[ErrorRate()],
    )
    name = f"{kind}-{batch_size}-{rate:g}"
    print(f"\n{TITLES[kind]}, batch {batch_size}, rate {rate:g}")
    settings = {
        key: value
        for key, value in run_record(vars(options))["settings"].items()
        if key in ("seed", "train_size", "valid_size", "test_size", "smoke")
    }
    history = train(
        model,
        data.passes,
        options.out / name,
        epochs=options.epochs,
        validation_data=data.valid,
        # Finite also where a rate is too large.
        monitor="val_error_rate",
        callbacks=[TestFigures(data.test)],
        settings={"model": kind, "batch": batch_size, "rate": rate, **settings},
    )
    best = min(history, key=lambda row: row["val_error_rate"])
    return {
        "model": kind,
        "batch_size": batch_size,
        "rate": rate,
        "epoch": best["epoch"],
        "validation_accuracy": 1 - best["val_error_rate"],
        "test_accuracy": 1 - best["test_error_rate"],
        "best_test_accuracy": 1 - min(row["test_error_rate"] for row in history),
        "training_loss": [row["loss"] for row in history],
        "test_accuracies": [1 - row["test_error_rate"] for row in history],
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def report(
    options: argparse.Namespace, record: dict[str, Any], results: list[dict[str, Any]]
) -> None:
    """Writes the results that are there with the settings, and draws the chosen."""
    chosen: dict[tuple[str, int], dict[str, Any]] = {}
    for result in results:
        key = (result["model"], result["batch_size"])
        before = chosen.get(key)
        if not before or result["validation_accuracy"] > before["validation_accuracy"]:
            chosen[key] = result
    record = {**record, "chosen": list(chosen.values()), "results": results}
    with replacing(options.out / "run.json") as aside:
        aside.write_text(json.dumps(record, indent=1))
    columns = "rate | training loss at the end | epoch | validation | test | best test"
    lines = [f"| network | batch | {columns} |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {TITLES[r['model']]} | {r['batch_size']} | {r['rate']:g} "
        f"| {r['training_loss'][-1]:.4f} | {r['epoch']} "
        f"| {r['validation_accuracy']:.4f} | {r['test_accuracy']:.4f} "
        f"| {r['best_test_accuracy']:.4f} |"
        for r in chosen.values()
    ]
    with replacing(options.out / "table.md") as aside:
        aside.write_text("\n".join(lines) + "\n")
    for size in options.batch_sizes:
        rows = [r for r in chosen.values() if r["batch_size"] == size]
        for figure, label, name in (
            ("training_loss", "training loss", "loss"),
            ("test_accuracies", "test accuracy", "accuracy"),
        ):
            if not rows:  # Their turn comes later.
                continue
            curves = {
                f"{TITLES[r['model']]}, rate {r['rate']:g}": r[figure] for r in rows
            }
            path = options.out / f"{name}-{size}.png"
            plot_curves(path, curves, ylabel=f"{label}, batch {size}")


if __name__ == "__main__":
    main()
