"""MLPs of 30 to 100 layers on MNIST: plain, residual, svdMLP, svdResNet; a linear map.

    python examples/deep_mlp.py --data-dir DATA --out out/deep_mlp
    python examples/deep_mlp.py --data-dir D --out out/128 --layers 30 70 --width 128
    python examples/deep_mlp.py --smoke --out out/smoke

The experiment of Figure 3 of Zhang et al., 2018 (arXiv:1803.09327; section 7.2 of the
submission): 40 layers of 32 units, or 30 to 100 layers of 128 units, with Adam and
leaky ReLU. The learning rate, batch size and singular values are not published. For 40
layers of 32 units, an epoch takes at most half a minute on two cores.

Writes run.json, table.md, loss.png, accuracy.png and a folder for each network. If the
command is run again, it resumes. The epoch is chosen on validation data. Without
`--data-dir`, `keras.datasets` downloads MNIST.
"""

import keras

from experiments import smoke
from experiments.engine import plain_errors
from experiments.layers import trained_parameters
from experiments.options import Settings, comparison_parser, read_comparison
from experiments.records import run_record
from experiments.runs import SCORES, compile_classifier, draw_rivals, fit_rival
from experiments.tables import cell, write_table
from keras_ortho.files import write_json
from keras_ortho.networks import mlp
from keras_ortho.tasks import pixels

TITLES = {
    "linear": "linear map",
    "mlp": "MLP",
    "resnet": "ResNet",
    "svdmlp": "svdMLP",
    "svdresnet": "svdResNet",
}
USUAL = {"layers": [40], "width": 32, "epochs": 20, "rate": 1e-3, "batch_size": 128}
SMOKE = {"layers": [4], "width": 8, "epochs": 2, "rate": 1e-3, "batch_size": 20}


@plain_errors()
def main() -> None:
    """Builds and trains the networks, and writes the results."""
    settings = parse()
    record, out = run_record(settings.record()), settings.out
    task = pixels.mnist(steps=1, **settings.data)
    shape = task.train.element_spec[0].shape[1:]
    depths = [(kind, n) for n in settings.layers for kind in settings.models]
    networks = [(kind, 0 if kind == "linear" else n) for kind, n in depths]
    results, curves = [], {}
    for kind, layers in dict.fromkeys(networks):
        keras.utils.set_random_seed(settings.seed)
        if kind == "linear":
            model = keras.Sequential(
                [keras.Input(shape), keras.layers.Flatten(), keras.layers.Dense(10)]
            )
        else:
            model = mlp(kind, layers, settings.width, input_shape=shape, num_classes=10)
        compile_classifier(model, keras.optimizers.Adam(settings.rate))
        parameters = trained_parameters(model)
        print(f"\n{TITLES[kind]}, {layers} layers: {parameters:,} parameters")
        own = {"model": kind, "layers": layers}
        figures = fit_rival(model, task, settings, f"{kind}-{layers}", own)
        results.append({**own, "parameters": parameters, **figures})
        curves[TITLES[kind] + (f", {layers} layers" if layers else "")] = figures

    write_json(out / "run.json", {**record, "results": results})
    columns = {"layers": "layers", "parameters": "parameters", **SCORES}
    rows = [[TITLES[r["model"]], *(cell(r[name]) for name in columns)] for r in results]
    write_table(out / "table.md", ["network", *columns.values()], rows, right=True)
    draw_rivals(out, curves)


def parse() -> Settings:
    """Reads the command line, and fills in what it leaves open."""
    parser = comparison_parser(__doc__, tuple(TITLES), "folder of MNIST's files", 20)
    add = parser.add_argument
    add("--layers", type=int, nargs="+", help="depths (40)")
    add("--width", type=int, help="units of a layer (32)")
    return read_comparison(parser, USUAL, SMOKE, smoke.mnist)


if __name__ == "__main__":
    main()
