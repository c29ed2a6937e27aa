"""Batch normalized preconditioning (BNP) and batch normalization on CIFAR-10.

    python examples/bnp.py --data-dir DATA --out out/bnp
    python examples/bnp.py --smoke --out out/smoke

The experiment of Helfrich, dissertation, 2020, section 3.4: images as vectors of length
3072, three hidden layers of 100 units with ReLU, gradient descent, and batches of 60
and of 6. It compares a plain network, one with batch normalization, and one with BNP.
The author chose the learning rates on a grid and does not publish them: here, each
network gets, for each batch size, the rate from `--rates` with the best validation
accuracy. An epoch of all images takes a few seconds per rate with batches of 60, and
about ten times as long with batches of 6.

The runs execute one after the other, each in its own folder, and resume after a kill.
`--smoke` takes less than a minute.

Writes run.json, table.md, loss-60.png (training loss, averaged over each epoch),
accuracy-60.png (test accuracy), the same figures for batches of 6, and history.csv for
each run. The epoch and the learning rate are chosen on validation data; the best test
accuracy of all epochs is also given, under that name.
"""

from typing import Any

import keras

from experiments import smoke
from experiments.errors import plain_errors
from experiments.options import Settings, comparison_parser, read_comparison
from experiments.records import run_record
from experiments.runs import SCORES, draw_rivals, fit_rival
from experiments.tables import cell, write_table
from keras_ortho.files import write_json
from keras_ortho.metrics import ErrorRate
from keras_ortho.networks import BNP_KINDS, bnp_network
from keras_ortho.tasks import pixels
from keras_ortho.tasks.pipeline import Task

TITLES = {"plain": "plain", "batch-norm": "batch normalization", "bnp": "BNP"}
COLUMNS = {
    "title": "network",
    "batch_size": "batch",
    "shown_rate": "rate",
    "last_loss": "training loss at the end",
    **SCORES,
}
USUAL = {
    "epochs": 30,
    "batch_sizes": [60, 6],
    "rates": [0.003, 0.01, 0.03, 0.1, 0.3],
}
SMOKE = {"epochs": 2, "batch_sizes": [60, 6], "rates": [0.01, 0.1]}


@plain_errors()
def main() -> None:
    """Builds and trains the networks, and writes the results."""
    settings = parse()
    record = run_record(settings.record())
    results = []
    for batch_size in dict.fromkeys(settings.batch_sizes):
        task = pixels.cifar10(form="flat", batch_size=batch_size, **settings.data)
        for kind in dict.fromkeys(settings.models):
            for rate in dict.fromkeys(settings.rates):
                results.append(run(kind, batch_size, rate, task, settings))
                report(settings, record, results)


def parse() -> Settings:
    """Reads the command line, and fills in what it leaves open."""
    parser = comparison_parser(__doc__, BNP_KINDS, "folder or file of CIFAR-10")
    add = parser.add_argument
    add("--epochs", type=int, help="passes over the training data (30)")
    add("--batch-sizes", type=int, nargs="+", help="(60 6)")
    rates = "to choose from (0.003 0.01 0.03 0.1 0.3)"
    add("--rates", type=float, nargs="+", help=rates)
    return read_comparison(parser, USUAL, SMOKE, smoke.cifar10)


def run(
    kind: str, batch_size: int, rate: float, task: Task, settings: Settings
) -> dict[str, Any]:
    """Trains a network at a learning rate, and returns its figures."""
    keras.utils.set_random_seed(settings.seed)
    model = bnp_network(kind, input_shape=(3072,), num_classes=10)
    model.compile(
        keras.optimizers.SGD(rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[ErrorRate()],
    )
    print(f"\n{TITLES[kind]}, batch {batch_size}, rate {rate:g}")
    name = f"{kind}-{batch_size}-{rate}"
    own = {"model": kind, "batch": batch_size, "rate": rate}
    figures = fit_rival(model, task, settings, name, own)
    return {"model": kind, "batch_size": batch_size, "rate": rate, **figures}


def report(
    settings: Settings, record: dict[str, Any], results: list[dict[str, Any]]
) -> None:
    """Writes the results so far with the settings, and draws the chosen runs."""
    chosen: dict[tuple[str, int], dict[str, Any]] = {}
    for result in results:
        key = (result["model"], result["batch_size"])
        before = chosen.get(key)
        if not before or result["validation_accuracy"] > before["validation_accuracy"]:
            chosen[key] = result
    write_json(
        settings.out / "run.json",
        {**record, "chosen": list(chosen.values()), "results": results},
    )
    rows = [
        {
            **result,
            "title": TITLES[result["model"]],
            "shown_rate": f"{result['rate']:g}",
            "last_loss": result["training_loss"][-1],
        }
        for result in chosen.values()
    ]
    cells = [[cell(row[name]) for name in COLUMNS] for row in rows]
    write_table(settings.out / "table.md", COLUMNS.values(), cells, right=True)
    for size in sorted({row["batch_size"] for row in rows}):
        curves = {
            f"{row['title']}, batch {size}, rate {row['shown_rate']}": row
            for row in rows
            if row["batch_size"] == size
        }
        draw_rivals(settings.out, curves, f"-{size}")


if __name__ == "__main__":
    main()
