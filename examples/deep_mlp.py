"""MLPs of 30 to 100 layers on MNIST: plain, residual, svdMLP and svdResNet.

    python examples/deep_mlp.py --data-dir DATA --out out/deep_mlp
    python examples/deep_mlp.py --data-dir D --out out/128 --layers 30 70 --width 128
    python examples/deep_mlp.py --smoke --out out/smoke

Figure 3 of Zhang et al., 2018 (arXiv:1803.09327; section 7.2 of the submission): 40
layers of 32 units, or 30 to 100 of 128, Adam, leaky ReLU. Rate, batch and singular
values are not published. Of 40 layers of 32 units an epoch takes some seconds on 2
cores, of SVD kernels under half a minute, and the first one half a minute more.
Runs one network after the other, each in a folder of its own, and goes on where a kill
left off. Nothing is downloaded unless `--data-dir` is missing and tensorflow-datasets
has MNIST. `--smoke` takes less than a minute.

Writes run.json, table.md, loss.png, accuracy.png, and with several depths depth.png.
The epoch is chosen on validation data; the best test figure of all epochs is given,
too, by that name.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import keras

from keras_ortho.diagnostics import plot_curves
from keras_ortho.experiments import smoke
from keras_ortho.experiments.report import run_record
from keras_ortho.files import replacing
from keras_ortho.metrics import ErrorRate
from keras_ortho.networks import MLP_KINDS, mlp
from keras_ortho.tasks import pixels
from keras_ortho.training import train
from keras_ortho.training_callbacks import TestFigures

TITLES = {
    "mlp": "MLP",
    "resnet": "ResNet",
    "svdmlp": "svdMLP",
    "svdresnet": "svdResNet",
}
SMOKE: dict[str, Any] = {"layers": [4], "width": 8, "epochs": 2, "batch_size": 20}


def main() -> None:
    """Runs the command."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    record = run_record(vars(options))
    sizes = {"train_size": options.train_size, "test_size": options.test_size}
    given: dict[str, Any] = {k: v for k, v in sizes.items() if v is not None}
    given["data_dir"] = options.data_dir
    if options.smoke:
        given |= smoke.mnist(options.out / "images")
    data = pixels.mnist(
        steps=1, batch_size=options.batch_size, seed=options.seed, **given
    )
    results = []
    for layers in options.layers:
        for kind in options.models:
            results.append(run(kind, layers, data, options))
            report(options, record, results)


def parse() -> argparse.Namespace:
    """Reads the command line, and fills in what it leaves open."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--models", nargs="+", choices=MLP_KINDS, default=list(MLP_KINDS))
    add("--data-dir", type=Path, help="folder of MNIST's files")
    add("--out", type=Path, required=True, help="folder for the results")
    add("--layers", type=int, nargs="+", help="depths (40)")
    add("--width", type=int, help="units of a layer (32)")
    add("--reflections", type=int, help="reflectors a side of an SVD kernel (all)")
    add("--margin", type=float, default=0.5, help="of the singular values (0.5)")
    add("--center", type=float, help="of the singular values (1.41 and 0.5)")
    add("--rate", type=float, default=1e-3, help="of Adam (1e-3)")
    add("--batch-size", type=int, help="(128)")
    add("--epochs", type=int, help="(20)")
    add("--train-size", type=int, help="images to train on (all)")
    add("--test-size", type=int, help="images to test on (all)")
    add("--seed", type=int, default=0, help="(0)")
    add("--smoke", action="store_true", help="small networks on images it makes")
    options = parser.parse_args()
    if options.smoke:
        for name in ("data_dir", "train_size", "test_size"):
            if getattr(options, name) is not None:
                parser.error(f"--smoke has its own data: no --{name.replace('_', '-')}")
    usual = {"layers": [40], "width": 32, "epochs": 20, "batch_size": 128}
    for name, value in (SMOKE if options.smoke else usual).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def run(
    kind: str, layers: int, data: Any, options: argparse.Namespace
) -> dict[str, Any]:
    """Trains a network and gives its figures."""
    keras.utils.set_random_seed(options.seed)
    model = mlp(
        kind,
        layers,
        options.width,
        input_shape=data.train.element_spec[0].shape[1:],
        num_classes=data.num_classes,
        reflections=options.reflections,
        spectral_margin=options.margin,
        spectral_center=options.center,
    )
    model.compile(
        keras.optimizers.Adam(options.rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[ErrorRate()],
    )
    parameters = sum(math.prod(v.shape) for v in model.trainable_variables)
    print(f"\n{TITLES[kind]}, {layers} layers: {parameters:,} parameters")
    settings = {
        name: value
        for name, value in run_record(vars(options))["settings"].items()
        if name not in ("out", "epochs", "data_dir", "models", "layers")
    }
    history = train(
        model,
        data.passes,
        options.out / f"{kind}-{layers}",
        epochs=options.epochs,
        validation_data=data.valid,
        monitor="val_error_rate",
        callbacks=[TestFigures(data.test)],
        settings={"model": kind, "layers": layers, **settings},
    )
    best = min(history, key=lambda row: row["val_error_rate"])
    return {
        "model": kind,
        "layers": layers,
        "parameters": parameters,
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
    """Writes the results that are there with the settings, and draws them."""
    with replacing(options.out / "run.json") as aside:
        aside.write_text(json.dumps({**record, "results": results}, indent=1))
    columns = "layers | parameters | epoch | validation | test | best test"
    lines = [f"| network | {columns} |", "|---|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {TITLES[r['model']]} | {r['layers']} | {r['parameters']:,} | {r['epoch']} "
        f"| {r['validation_accuracy']:.4f} | {r['test_accuracy']:.4f} "
        f"| {r['best_test_accuracy']:.4f} |"
        for r in results
    ]
    with replacing(options.out / "table.md") as aside:
        aside.write_text("\n".join(lines) + "\n")
    print(lines[-1])
    names = [f"{TITLES[r['model']]}, {r['layers']} layers" for r in results]
    for figure, label, name in (
        ("training_loss", "training loss", "loss"),
        ("test_accuracies", "test accuracy", "accuracy"),
    ):
        plot_curves(
            options.out / f"{name}.png",
            dict(zip(names, (r[figure] for r in results), strict=True)),
            ylabel=label,
        )
    if len(options.layers) > 1:
        chosen = {
            TITLES[kind]: [r for r in results if r["model"] == kind]
            for kind in options.models
        }
        chosen = {name: rows for name, rows in chosen.items() if rows}
        plot_curves(
            options.out / "depth.png",
            {name: [r["test_accuracy"] for r in rows] for name, rows in chosen.items()},
            x={name: [r["layers"] for r in rows] for name, rows in chosen.items()},
            xlabel="layers",
            ylabel="test accuracy",
        )


if __name__ == "__main__":
    main()
