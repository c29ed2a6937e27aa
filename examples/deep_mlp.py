"""MLPs of 30 to 100 layers on MNIST: plain, residual, svdMLP and svdResNet.

They are compared with each other and with a linear map from the pixels to the classes.

    python examples/deep_mlp.py --data-dir DATA --out out/deep_mlp
    python examples/deep_mlp.py --data-dir D --out out/128 --layers 30 70 --width 128
    python examples/deep_mlp.py --smoke --out out/smoke

The experiment of Figure 3 of Zhang et al., 2018 (arXiv:1803.09327; section 7.2 of the
submission): 40 layers of 32 units, or 30 to 100 layers of 128 units, with Adam and
leaky ReLU. The learning rate, batch size and singular values are not published. For 40
layers of 32 units, an epoch takes a few seconds on two cores, or less than half a
minute with SVD kernels; the first epoch takes half a minute longer.

The networks are trained one after the other, each in its own folder, and resume after a
kill. Without `--data-dir`, `keras.datasets` downloads MNIST. `--smoke` takes less than
a minute.

Writes run.json, table.md, loss.png and accuracy.png. The epoch is chosen on validation
data; the best test accuracy of all epochs is also given, under that name.
"""

from collections.abc import Sequence
from typing import Any

import keras

from experiments import smoke
from experiments.errors import plain_errors
from experiments.layers import trained_parameters
from experiments.options import Settings, comparison_parser, read_comparison
from experiments.records import run_record
from experiments.runs import SCORES, draw_rivals, fit_rival
from experiments.tables import cell, write_table
from keras_ortho.files import write_json
from keras_ortho.metrics import ErrorRate
from keras_ortho.networks import mlp
from keras_ortho.tasks import pixels
from keras_ortho.tasks.pipeline import Task

LINEAR = "linear"
TITLES = {
    LINEAR: "linear map",
    "mlp": "MLP",
    "resnet": "ResNet",
    "svdmlp": "svdMLP",
    "svdresnet": "svdResNet",
}
COLUMNS = {
    "title": "network",
    "layers": "layers",
    "parameters": "parameters",
    **SCORES,
}
USUAL = {"layers": [40], "width": 32, "epochs": 20, "batch_size": 128}
SMOKE = {"layers": [4], "width": 8, "epochs": 2, "batch_size": 20}


@plain_errors()
def main() -> None:
    """Builds and trains the networks, and writes the results."""
    settings = parse()
    task = pixels.mnist(steps=1, **settings.data)
    record = run_record(settings.record())
    results = []
    depths = [(kind, n) for n in settings.layers for kind in settings.models]
    networks = [(kind, 0 if kind == LINEAR else n) for kind, n in depths]
    for kind, layers in dict.fromkeys(networks):
        results.append(run(kind, layers, task, settings))
        report(settings, record, results)


def parse() -> Settings:
    """Reads the command line, and fills in what it leaves open."""
    parser = comparison_parser(__doc__, tuple(TITLES), "folder of MNIST's files")
    add = parser.add_argument
    add("--epochs", type=int, help="passes over the training data (20)")
    add("--layers", type=int, nargs="+", help="depths (40)")
    add("--width", type=int, help="units of a layer (32)")
    add("--rate", type=float, default=1e-3, help="of Adam (1e-3)")
    add("--batch-size", type=int, help="(128)")
    return read_comparison(parser, USUAL, SMOKE, smoke.mnist)


def run(kind: str, layers: int, task: Task, settings: Settings) -> dict[str, Any]:
    """Trains a network, and returns its figures."""
    keras.utils.set_random_seed(settings.seed)
    model = network(kind, layers, task.train.element_spec[0].shape[1:], settings)
    model.compile(
        keras.optimizers.Adam(settings.rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[ErrorRate()],
    )
    parameters = trained_parameters(model)
    print(f"\n{TITLES[kind]}, {layers} layers: {parameters:,} parameters")
    own = {"model": kind, "layers": layers}
    figures = fit_rival(model, task, settings, f"{kind}-{layers}", own)
    return {**own, "parameters": parameters, **figures}


def network(
    kind: str, layers: int, shape: Sequence[int], settings: Settings
) -> keras.Model:
    """Makes a network, from images of the given shape to the logits of the digits."""
    if kind == LINEAR:
        flat = keras.layers.Flatten()
        return keras.Sequential([keras.Input(shape), flat, keras.layers.Dense(10)])
    return mlp(kind, layers, settings.width, input_shape=shape, num_classes=10)


def report(
    settings: Settings, record: dict[str, Any], results: list[dict[str, Any]]
) -> None:
    """Writes the results so far with the settings, and draws them."""
    write_json(settings.out / "run.json", {**record, "results": results})
    rows = [{**result, "title": TITLES[result["model"]]} for result in results]
    cells = [[cell(row[name]) for name in COLUMNS] for row in rows]
    write_table(settings.out / "table.md", COLUMNS.values(), cells, right=True)
    draw_rivals(settings.out, {_name(row): row for row in rows})


def _name(row: dict[str, Any]) -> str:
    return f"{row['title']}, {row['layers']} layers" if row["layers"] else row["title"]


if __name__ == "__main__":
    main()
