"""Batch normalized preconditioning (BNP) and batch normalization on CIFAR-10.

    python examples/bnp.py --data-dir DATA --out out/bnp
    python examples/bnp.py --smoke --out out/smoke

The experiment of Helfrich, dissertation, 2020, section 3.4: images as vectors of length
3072, three hidden layers of 100 units with ReLU, gradient descent, and batches of 60
and of 6. The learning rates are not published: each network gets, for each batch size,
the rate with the best validation accuracy. An epoch takes a few seconds per rate with
batches of 60, and ten times as long with 6.

Writes run.json, table.md, loss-60.png (training loss), accuracy-60.png (test accuracy),
the same for batches of 6, and a folder for each run. If the command is run again, it
resumes. The epoch and the rate are chosen on validation data.
"""

from itertools import groupby
from operator import itemgetter

import keras

from experiments import smoke
from experiments.engine import plain_errors
from experiments.options import Settings, comparison_parser, read_comparison
from experiments.records import run_record
from experiments.runs import SCORES, compile_classifier, draw_rivals, fit_rival
from experiments.tables import cell, write_table
from keras_ortho.files import write_json
from keras_ortho.networks import BNP_KINDS, bnp_network
from keras_ortho.tasks import pixels

TITLES = {"plain": "plain", "batch-norm": "batch normalization", "bnp": "BNP"}
SIZES = (60, 6)
USUAL = {"epochs": 30, "rates": [0.003, 0.01, 0.03, 0.1, 0.3]}
SMOKE = {"epochs": 2, "rates": [0.01, 0.1]}


@plain_errors()
def main() -> None:
    """Builds and trains the networks, and writes the results."""
    settings = parse()
    record, out = run_record(settings.record()), settings.out
    results = []
    for size in SIZES:
        task = pixels.cifar10(form="flat", batch_size=size, **settings.data)
        for kind in settings.models:
            for rate in settings.rates:
                print(f"\n{TITLES[kind]}, batch {size}, rate {rate:g}")
                keras.utils.set_random_seed(settings.seed)
                model = bnp_network(kind, input_shape=(3072,), num_classes=10)
                compile_classifier(model, keras.optimizers.SGD(rate))
                own = {"model": kind, "batch_size": size, "rate": rate}
                name = f"{kind}-{size}-{rate}"
                results.append(own | fit_rival(model, task, settings, name, own))

    chosen = [
        max(rates, key=itemgetter("validation_accuracy"))
        for _, rates in groupby(results, itemgetter("batch_size", "model"))
    ]
    write_json(out / "run.json", {**record, "chosen": chosen, "results": results})
    titles = ["network", "batch", "rate", "training loss at the end", *SCORES.values()]
    rows = [
        [
            TITLES[row["model"]],
            str(row["batch_size"]),
            f"{row['rate']:g}",
            cell(row["training_loss"][-1]),
            *(cell(row[score]) for score in SCORES),
        ]
        for row in chosen
    ]
    write_table(out / "table.md", titles, rows, right=True)
    for size, of_size in groupby(chosen, itemgetter("batch_size")):
        titled = {
            f"{TITLES[row['model']]}, batch {size}, rate {row['rate']:g}": row
            for row in of_size
        }
        draw_rivals(out, titled, f"-{size}")


def parse() -> Settings:
    """Reads the command line, and fills in what it leaves open."""
    parser = comparison_parser(__doc__, BNP_KINDS, "folder or file of CIFAR-10", 30)
    return read_comparison(parser, USUAL, SMOKE, smoke.cifar10)


if __name__ == "__main__":
    main()
