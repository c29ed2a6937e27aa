"""The next character of the Penn Treebank, in bits per character.

    python examples/char_ptb.py --model enrnn --data-dir DATA --out out/char_ptb/enrnn
    python examples/char_ptb.py --model lstm --smoke --out out/smoke

Back-propagation through 50 characters at a time, the state carried on. The settings of
ENRNN and the LSTM are those of Helfrich, dissertation, 2020, section 2.7, where they
run 20 epochs; for other models the size is that of their papers, where they have the
task. ENRNN takes 10 to 20 minutes an epoch on 2 cores. A killed run goes on where it
was, with the same command. The files in DATA are not downloaded: without them the error
says where to get them. `--smoke` makes a text of its own, and takes less than a minute.

Writes run.json, history.csv, curve.png and the best model. The epoch is chosen on the
validation text; the lowest test figure of all epochs is given, too, by that name.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.diagnostics import plot_curves
from keras_ortho.experiments.layers import LAYERS, TITLES, make_layer
from keras_ortho.experiments.optimizers import make_optimizer
from keras_ortho.experiments.presets import Preset
from keras_ortho.experiments.report import run_record, summary, write_record
from keras_ortho.files import replacing
from keras_ortho.layers import CarriedState
from keras_ortho.metrics import BitsPerCharacter
from keras_ortho.tasks import characters
from keras_ortho.training import train
from keras_ortho.training_callbacks import ResetStates, TestFigures

SOURCE = "Helfrich, dissertation, 2020, section 2.7"
PAIR = {"others": "adam 1e-3", "recurrent": "rmsprop 1e-4"}
# ENRNN's characters are embedded in R^n and its input kernel is fixed to the identity:
# with one-hot characters that is a free input kernel. The LSTM and GRU have both.
ROWS: dict[str, dict[str, Any]] = {
    "enrnn": {
        "units": (310, 720),
        "rates": {"others": "adam 1e-3", "recurrent": "adam 1e-4"},
        "arguments": {
            "negative_ones": 0.6,  # 186 of 310
            "activation": "relu",
            "kernel_initializer": "uniform",
            "coupling_initializer": "orthogonal",
        },
    },
    "lstm": {
        "units": 350,
        "rates": {"others": "adam 1e-3 clip 8"},
        "arguments": {"forget_bias": 0.0},
    },
    "gru": {"units": 415, "rates": {"others": "adam 1e-3"}},
    "goru": {"units": 512},
    "eurnn": {"units": 2048},
    "nnrnn": {"units": 1024},
}
EMBEDDED = ("lstm", "gru")
# Validation and test, one layer.
PUBLISHED = {("enrnn", (310, 720)): (1.475, 1.429), ("lstm", 350): (1.506, 1.461)}
SMOKE = {"epochs": 2, "batch_size": 4, "unroll": 10, "evaluations": 1}
FIGURE = "bits_per_character"


def main() -> None:
    """Runs the command."""
    options, row = parse()
    record = run_record(vars(options))
    options.out.mkdir(parents=True, exist_ok=True)
    if options.smoke:
        options.data_dir = write_smoke_text(options.out / "text")
    keras.utils.set_random_seed(options.seed)
    data = characters.load(
        options.data_dir,
        batch_size=options.batch_size,
        unroll=options.unroll,
        train_size=options.train_size,
    )
    steps = len(data.train) // options.evaluations
    if steps == 0:
        raise SystemExit(
            "`--evaluations` must be at most the number of batches of the text, "
            f"{len(data.train)}. Received: --evaluations {options.evaluations}"
        )
    model = network(row, data.num_classes, options.unroll)
    parameters = sum(math.prod(v.shape) for v in model.trainable_variables)
    title = f"{TITLES[row.model]}, {options.units} units"
    print(f"{title}: {parameters:,} trained parameters")
    history = train(
        model,
        data.train,
        options.out,
        epochs=options.epochs * options.evaluations,
        steps_per_epoch=steps,
        validation_data=data.valid,
        monitor=f"val_{FIGURE}",
        callbacks=[
            ResetStates(every=len(data.train)),
            TestFigures(data.test, [ResetStates()]),
        ],
        settings={
            name: value
            for name, value in record["settings"].items()
            if name not in ("out", "epochs", "data_dir")
        },
    )
    record |= summary(history, FIGURE, steps)
    record |= {"parameters": parameters, "monitor": FIGURE}
    report(options, row, record, title)


def parse() -> tuple[argparse.Namespace, Preset]:
    """Reads the command line, and fills in what it leaves open."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", choices=sorted(LAYERS), default="enrnn", help="(enrnn)")
    add("--data-dir", type=Path, help="folder of the Penn Treebank's files")
    add("--out", type=Path, required=True, help="folder of this run")
    add("--units", help="n, or for enrnn long-term/short-term (the papers': 310/720)")
    add("--epochs", type=int, help="passes over the text in all (20)")
    add("--batch-size", type=int, help="rows read side by side (32)")
    add("--unroll", type=int, help="characters to back-propagate through (50)")
    add("--evaluations", type=int, help="validations and tests in an epoch (4)")
    add("--train-size", type=int, help="characters to train on (all)")
    add("--seed", type=int, default=0, help="(0)")
    add("--smoke", action="store_true", help="a small network on a text it makes")
    options = parser.parse_args()
    if options.smoke == (options.data_dir is not None):
        parser.error("give either --data-dir or --smoke")
    usual = {"epochs": 20, "batch_size": 32, "unroll": 50, "evaluations": 4}
    for name, value in (SMOKE if options.smoke else usual).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
        elif getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be positive")
    found: dict[str, Any] = {"units": 512, "rates": PAIR} | ROWS.get(options.model, {})
    if options.smoke:
        found["units"] = (6, 6) if options.model == "enrnn" else 12
    if options.units is not None:
        found["units"] = read_units(parser, options.model, options.units)
    row = Preset(
        "char-ptb", options.model, **found, source=SOURCE, batch_size=options.batch_size
    )
    options.units = units_text(row.units)
    return options, row


def read_units(
    parser: argparse.ArgumentParser, model: str, text: str
) -> int | tuple[int, int]:
    """Reads `310/720` or `350`."""
    numbers = text.split("/")
    wanted = 2 if model == "enrnn" else 1
    if len(numbers) != wanted or not all(n.isdigit() and int(n) for n in numbers):
        form = "like 310/720" if wanted == 2 else "a positive integer"
        parser.error(f"--units of {model} must be {form}. Received: --units {text}")
    return (int(numbers[0]), int(numbers[1])) if wanted == 2 else int(text)


def units_text(units: int | tuple[int, int]) -> str:
    """Writes units as they are given."""
    return "/".join(map(str, units)) if isinstance(units, tuple) else str(units)


def network(row: Preset, num_classes: int, unroll: int) -> keras.Model:
    """Makes the model: from characters to the logits of the next ones.

    Args:
        row: The layer, its optimizers and the batch size.
        num_classes: Number of symbols.
        unroll: Characters in a row of a batch.

    Returns:
        A compiled model, whose state is carried on.
    """
    inputs = keras.Input(batch_shape=(row.batch_size, unroll), dtype="int32")
    if row.model in EMBEDDED:
        features = keras.layers.Embedding(num_classes, row.units)(inputs)
    else:
        features = ops.one_hot(inputs, num_classes)
    layer = make_layer(
        row.model, row.units, row.arguments, return_sequences=True, return_state=True
    )
    outputs = keras.layers.Dense(num_classes)(CarriedState(layer)(features))
    model = keras.Model(inputs, outputs)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(make_optimizer(row.rates), loss, metrics=[BitsPerCharacter()])
    return model


def write_smoke_text(folder: Path) -> Path:
    """Writes sentences of a few words as the files of the Penn Treebank."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    words = ["<unk>", "the", "N", "of", "shares", "n't", "a", "company", "said"]
    for part, sentences in (("train", 150), ("valid", 30), ("test", 30)):
        lines = [" ".join(random.choice(words, 8)) for _ in range(sentences)]
        with replacing(folder / f"ptb.{part}.txt") as aside:
            aside.write_text("".join(f" {line} \n" for line in lines))
    return folder


def report(
    options: argparse.Namespace, row: Preset, record: dict[str, Any], title: str
) -> None:
    """Prints the result, writes it with the settings, and draws the curves."""
    best = record["best_validation"]
    record["figures"] = {
        "validation bits per character": best[f"val_{FIGURE}"],
        "test bits per character there": best[f"test_{FIGURE}"],
        "lowest test bits per character": record["best_test"][f"test_{FIGURE}"],
    }
    write_record(options.out / "run.json", record)
    valid, test = PUBLISHED.get((row.model, row.units), (None, None))
    curves = {f"{title}: {part}": part for part in ("validation", "test")}
    names = {"validation": "val", "test": "test"}
    plot_curves(
        options.out / "curve.png",
        {
            curve: record["curves"][f"{names[part]}_{FIGURE}"]
            for curve, part in curves.items()
        },
        x=dict.fromkeys(curves, record["updates"]),
        baselines={} if test is None else {"published, test": test},
        xlabel="update",
        ylabel="bits per character",
    )
    for name, value in record["figures"].items():
        print(f"{name}: {value:.3f}")
    if valid is not None:
        print(f"published after 20 epochs: validation {valid}, test {test}")


if __name__ == "__main__":
    main()
