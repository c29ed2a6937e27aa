"""The adding problem with scoRNN, or an LSTM beside it.

    python examples/adding.py --out out/adding

The settings are those of Helfrich et al., 2018, but that the sequences come in a new
order in each epoch. An epoch of 2 000 steps at T = 200
takes under a minute on 2 cores. The error is measured on the test data, as in the
papers, a few times an epoch; no epoch or setting is chosen by it.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import keras

from keras_ortho import ScoRNN
from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import replacing
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.tasks import adding


def main() -> None:
    """Runs the command."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(options.seed)
    task = adding.load(
        options.length,
        train_size=options.train_size,
        test_size=options.test_size,
        seed=options.seed,
    )
    model = network(options)
    steps = len(task.train) // options.evaluations
    if steps == 0:
        raise SystemExit(
            "An epoch needs a batch of 50 sequences for each evaluation. Received: "
            f"--train-size {options.train_size} --evaluations {options.evaluations}"
        )
    started = time.monotonic()
    history = model.fit(
        task.train.repeat(),
        steps_per_epoch=steps,
        epochs=options.epochs * options.evaluations,
        validation_data=task.test,
        callbacks=[keras.callbacks.CSVLogger(options.out / "history.csv")],
        shuffle=False,
    )
    seconds = time.monotonic() - started
    errors = history.history["val_loss"]
    epochs = [(i + 1) / options.evaluations for i in range(len(errors))]
    for epoch, error in zip(epochs, errors, strict=True):
        print(f"epoch {epoch:.2f}: test MSE {error:.5f}")
    name = {"scornn": "scoRNN", "lstm": "LSTM"}[options.model]
    name = f"{name}, {options.units} units"
    plot_curves(
        options.out / "curve.png",
        {name: errors},
        x={name: epochs},
        baselines={"always 1": task.baseline},
        ylabel="test MSE",
        log=True,
    )
    result = {
        "settings": {key: str(value) for key, value in vars(options).items()},
        "epochs": epochs,
        "test_mse": errors,
        "seconds": round(seconds, 1),
        "keras": keras.version(),
        "backend": keras.backend.backend(),
        "python": platform.python_version(),
    }
    with replacing(options.out / "result.json") as aside:
        aside.write_text(json.dumps(result, indent=1))


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for the results")
    add("--model", choices=["scornn", "lstm"], default="scornn")
    add("--length", type=int, default=200, help="steps of a sequence (200)")
    add("--units", type=int, default=170, help="(170; the papers' LSTM has 60)")
    add("--negative-ones", type=int, default=85, help="-1s in D (85)")
    add("--epochs", type=int, default=2, help="(2; the papers run 10)")
    add("--evaluations", type=int, default=4, help="tests in an epoch (4)")
    add("--train-size", type=int, default=100_000, help="(100 000)")
    add("--test-size", type=int, default=10_000, help="(10 000)")
    add("--seed", type=int, default=0, help="(0)")
    return parser.parse_args()


def network(options: argparse.Namespace) -> keras.Model:
    """Makes the model with the papers' optimizers."""
    if options.model == "scornn":
        layer = ScoRNN(options.units, negative_ones=options.negative_ones)
        optimizer = paper_optimizer()
    else:
        layer = keras.layers.LSTM(options.units)
        optimizer = keras.optimizers.Adam(1e-2)
    model = keras.Sequential(
        [keras.Input((options.length, 2)), layer, keras.layers.Dense(1)]
    )
    model.compile(optimizer, "mse")
    return model


if __name__ == "__main__":
    main()
