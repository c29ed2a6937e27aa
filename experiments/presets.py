"""The papers' settings, one row for each task and model.

A row holds what the paper says. Where the paper is silent, it follows the authors'
released code, and where that is silent too, the nearest row. `source` says which. Rates
are written as `experiments.optimizers` reads them: "rmsprop" is TensorFlow 1's.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.layers import Units

SCORNN = "Helfrich et al., ICML 2018, section 5"
DISSERTATION = "Helfrich, dissertation, University of Kentucky 2020, section 2.5"
DISSERTATION_ENRNN = "Helfrich, dissertation, University of Kentucky 2020, section 2.7"
FULL_URNN = "Wisdom et al., NeurIPS 2016, section 5, and the authors' code"
SCURNN = "Maduranga et al., AAAI 2019, section 4, and the authors' code"
ENRNN = f"{DISSERTATION_ENRNN}, and the authors' code"
ANTISYMMETRIC = "Chang et al., ICLR 2019, section 5 and appendix C"
SVDRNN = "Zhang et al., ICLR 2018 submission, section 7 and appendix C"
EURNN = "Jing et al., ICML 2017, section 4"


@dataclass(frozen=True)
class Preset:
    """A paper's settings for a model on a task.

    `rates` has the optimizer rule of each part, `arguments` those of the layer besides
    its units, `lengths` the sequence lengths that the row is for (empty: all), and
    `parameters` the published number, in thousands.
    """

    task: str
    model: str
    units: Units
    rates: Mapping[str, str]
    source: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    batch_size: int = 50
    epochs: int | None = None
    steps: int | None = None
    parameters: float | None = None


def _object(class_name: str, **config: Any) -> dict[str, Any]:
    """Returns the configuration of an object of this package, which JSON can hold."""
    return {"class_name": f"keras_ortho>{class_name}", "config": config}


# The paper does not give the slope; this is oRNN's.
LEAKY_RELU = _object("LeakyReLU", negative_slope=0.1)
# Of the RNN and the LSTM on UCR. The paper does not give the standard deviation.
GAUSSIAN = {
    "kernel_initializer": "glorot_normal",
    "recurrent_initializer": "glorot_normal",
    "trainable_initial_state": True,
}
# Of the LSTM on CIFAR-10: N(0, 1 / m) and N(0, 1 / n).
FAN_IN = {
    "kernel_initializer": _object("FanInNormal"),
    "recurrent_initializer": _object("FanInNormal"),
}
# Of scuRNN on adding: U(0, 2 pi), here as the same angles from -pi to pi. At these ends
# the entries of the skew-symmetric matrix are unbounded.
FULL_CIRCLE = {
    "recurrent_initializer": _object("HenaffSkew", minval=-3.14159, maxval=3.14159)
}
# EURNN's output is the real part of the state.
REAL = {"real_output": True}


def _rates(others: str, recurrent: str | None = None, **parts: str) -> dict[str, str]:
    return {"others": others} | ({"recurrent": recurrent} if recurrent else {}) | parts


TF1 = _rates("rmsprop 1e-3", "rmsprop 1e-4")
RMSPROP, SLOW_RMSPROP = _rates("rmsprop 1e-3"), _rates("rmsprop 1e-4")
UNITARY = _rates("rmsprop 1e-3", unitary="stiefel 1e-3")
ADAM, CLIPPED = _rates("adam 1e-3"), _rates("adam 1e-3 clip 8")
ADAM_RMSPROP = _rates("adam 1e-3", "rmsprop 1e-4")
TABLE_2_4 = {"source": DISSERTATION_ENRNN, "epochs": 300}
PHASES = _rates("adam 1e-3", "rmsprop 1e-4", phases="adagrad 1e-3")

# Defaults of the rows of each task.
USUAL: dict[str, dict[str, Any]] = {
    "copying": {"steps": 10_000, "batch_size": 20},
    "adding": {"epochs": 10},
    "mnist": {"epochs": 70},
    "permuted-mnist": {"epochs": 70},
    "pixel-cifar10": {"steps": 50_000},
    "noise-padded-cifar10": {"steps": 10_000},
    "timit": {"source": DISSERTATION, "epochs": 200, "batch_size": 28},
    # The learning rate, the batch size and the number of updates are not published; all
    # four models share them. An epoch can be a single update.
    "ucr": {"source": SVDRNN, "batch_size": 32, "steps": 4_000},
    "sequence-mnist": {
        "source": SVDRNN,
        "lengths": (28, 112),
        "batch_size": 128,
        "epochs": 100,
    },
    "char-ptb": {"source": DISSERTATION_ENRNN, "batch_size": 32, "epochs": 20},
}


def _row(
    task: str,
    model: str,
    units: Units,
    rates: dict[str, str],
    arguments: Mapping[str, Any] | None = None,
    **own: Any,
) -> Preset:
    fields = {"source": SCORNN, **USUAL[task], **own}
    return Preset(task, model, units, rates, arguments=arguments or {}, **fields)


_copying, _adding, _timit, _ucr, _text = (
    functools.partial(_row, task)
    for task in ("copying", "adding", "timit", "ucr", "char-ptb")
)


def _mnist(
    model: str,
    units: Units,
    rates: dict[str, str],
    arguments: Mapping[str, Any] | None = None,
    permuted: Mapping[str, Any] | None = None,
    **own: Any,
) -> list[Preset]:
    """Returns a row for pixels in order and one, with `permuted`, for permuted ones."""
    return [
        _row("mnist", model, units, rates, arguments, **own),
        _row("permuted-mnist", model, units, rates, permuted or arguments, **own),
    ]


def _antisymmetric(task: str, model: str, units: int, parameters: int) -> Preset:
    # One point of the 1 008 of the paper's grid (2 optimizers, 7 rates, 6 deviations, 3
    # step sizes, 4 diffusions), chosen without a search; the paper does not say which
    # it chose. With this step, the smallest, 1000 steps move a state by 10 at most.
    arguments = FAN_IN if model == "lstm" else {"step_size": 0.01}
    own: dict[str, Any] = {"source": ANTISYMMETRIC, "batch_size": 128}
    if "mnist" in task:
        own |= {"epochs": None, "steps": 50_000}
    rates = _rates("adagrad 0.1")
    return _row(task, model, units, rates, arguments, parameters=parameters, **own)


PRESETS: tuple[Preset, ...] = (
    # Copying, 10 symbols.
    _copying("scornn", 190, TF1, {"negative_ones": 95}),
    _copying("lstm", 68, RMSPROP),
    _copying("full-urnn", 128, UNITARY),
    _copying("restricted-urnn", 470, RMSPROP),
    _copying("eurnn", 512, RMSPROP, REAL | {"capacity": 2}),
    _copying(
        "scurnn",
        130,
        ADAM_RMSPROP | {"phases": "adagrad 1e-4"},
        lengths=(2_000,),
        steps=2_000,
        source=SCURNN,
    ),
    _copying(
        "enrnn",
        (172, 20),
        _rates("rmsprop 1e-3", "rmsprop 1e-5"),
        {"negative_ones": 52},
        lengths=(2_000,),
        steps=4_000,
        source=ENRNN,
    ),
    # Adding.
    *(
        _adding("scornn", 170, ADAM_RMSPROP, {"negative_ones": n}, lengths=(length,))
        for length, n in ((200, 85), (400, 119), (750, 119))
    ),
    *(
        _adding("lstm", 60, _rates("adam 1e-2"), {"forget_bias": b}, lengths=(length,))
        for length, b in ((200, 2.0), (400, 4.0), (750, 0.0))
    ),
    _adding("full-urnn", 120, _rates("rmsprop 1e-5", unitary="stiefel 1e-5")),
    _adding("restricted-urnn", 950, SLOW_RMSPROP),
    _adding("ornn", 128, _rates("adam 1e-2"), {"reflections": 16}),
    _adding("eurnn", 512, RMSPROP, REAL | {"capacity": 2}, lengths=(200, 400)),
    _adding("eurnn", 512, RMSPROP, REAL | {"style": "fft"}, lengths=(750,)),
    _adding("scurnn", 116, PHASES, FULL_CIRCLE, epochs=30, source=SCURNN),
    _adding(
        "enrnn", (96, 64), SLOW_RMSPROP, {"negative_ones": 29}, epochs=6, source=ENRNN
    ),
    # The text says some 15 000 parameters; 60 units and 16 reflectors have 1 981.
    _adding(
        "svdrnn",
        60,
        _rates("adam 1e-2 decay 0.99"),
        {"reflections": 16, "spectral_margin": 0.01},
        epochs=6,
        source=ENRNN,
    ),
    # MNIST, a pixel per step. A tenth of D is -1 in row order, half if permuted.
    *(
        preset
        for units, recurrent, parameters in (
            (170, "rmsprop 1e-4", 16),
            (360, "rmsprop 1e-5", 69),
            (512, "rmsprop 1e-5", 137),
        )
        for preset in _mnist(
            "scornn",
            units,
            _rates("rmsprop 1e-3", recurrent),
            {"negative_ones": 0.1},
            permuted={"negative_ones": 0.5},
            parameters=parameters,
        )
    ),
    *_mnist("lstm", 128, RMSPROP, parameters=68),
    *_mnist("lstm", 256, RMSPROP, parameters=270),
    *_mnist("lstm", 512, SLOW_RMSPROP, parameters=1_058),
    *_mnist("scurnn", 116, PHASES, source=SCURNN),
    *_mnist("scurnn", 250, PHASES, source=SCURNN),
    *_mnist("restricted-urnn", 512, SLOW_RMSPROP, parameters=16),
    *_mnist("restricted-urnn", 2_170, SLOW_RMSPROP, parameters=69),
    # The dissertation has one RMSprop; the rule for the unitary matrix is the code's.
    *(
        preset
        for units, rate, parameters in ((116, "1e-3", 16), (512, "1e-4", 270))
        for preset in _mnist(
            "full-urnn",
            units,
            _rates(f"rmsprop {rate}", unitary="stiefel-rms 1e-6"),
            parameters=parameters,
            source=FULL_URNN,
        )
    ),
    *_mnist(
        "eurnn",
        512,
        SLOW_RMSPROP,
        REAL | {"capacity": 2},
        batch_size=128,
        parameters=9,
        source=f"{EURNN}, and the authors' code",
    ),
    *_mnist("ornn", 256, ADAM, {"reflections": 32}, parameters=11),
    *_mnist(
        "svdrnn",
        256,
        ADAM,
        {"reflections": 16},
        batch_size=128,
        epochs=100,
        source=SVDRNN,
        parameters=13,
    ),
    *(
        _antisymmetric(task, model, 128, 10)
        for task in ("mnist", "permuted-mnist")
        for model in ("antisymmetric", "antisymmetric-gated")
    ),
    # CIFAR-10, a pixel per step, and a row per step followed by noise.
    *(
        _antisymmetric(task, model, units, parameters)
        for task, of_lstm in (("pixel-cifar10", 69), ("noise-padded-cifar10", 64))
        for model, units, parameters in (
            ("antisymmetric", 256, 36),
            ("antisymmetric-gated", 256, 37),
            ("antisymmetric-ablation", 196, 42),
            ("lstm", 128, of_lstm),
        )
    ),
    # TIMIT. Sizes of both tables are as in table 2.4: 300 epochs, masked, and the LSTM
    # clipped. In table 2.2 they have 200 epochs, padding in the loss, and no clipping.
    *(
        _timit(
            "scornn",
            units,
            _rates("adam 1e-3", f"rmsprop {recurrent_rate}"),
            {"negative_ones": 0.1},
            parameters=parameters,
            **table,
        )
        for units, recurrent_rate, parameters, table in (
            (224, "1e-3", 83, {}),
            (322, "1e-4", 135, {}),
            (425, "1e-4", 200, TABLE_2_4),
        )
    ),
    *(
        _timit(
            "lstm", units, rates, {"forget_bias": -4.0}, parameters=parameters, **table
        )
        for units, rates, parameters, table in (
            (84, RMSPROP, 83, {}),
            (120, RMSPROP, 135, {}),
            (158, _rates("rmsprop 1e-3 clip 1"), 200, TABLE_2_4),
            (468, _rates("rmsprop 1e-3 clip 1"), 1_200, TABLE_2_4),
        )
    ),
    _timit(
        "enrnn",
        (374, 94),
        _rates("adam 1e-4"),
        {"negative_ones": 374, "coupling": False},
        parameters=200,
        **TABLE_2_4,
    ),
    *(
        _timit("restricted-urnn", units, RMSPROP, parameters=parameters)
        for units, parameters in ((158, 83), (256, 135), (378, 200))
    ),
    *(
        _timit("full-urnn", units, UNITARY, parameters=parameters)
        for units, parameters in ((128, 83), (192, 135), (256, 200))
    ),
    # UCR: the parameter counts depend on the data set. The matrices of RNN and LSTM are
    # initially Gaussian; the paper does not give the standard deviation.
    *(
        _ucr(model, 32, _rates("adam 1e-2"), arguments)
        for model, arguments in (
            ("rnn", GAUSSIAN | {"activation": LEAKY_RELU}),
            ("lstm", GAUSSIAN),
            ("ornn", {"reflections": 16}),
            ("svdrnn", {"reflections": 16, "trainable_initial_state": True}),
        )
    ),
    # MNIST, a row or a quarter of a row per step. The paper has 20 units for rows.
    *(
        _row("sequence-mnist", model, 128, ADAM, arguments)
        for model, arguments in (
            ("svdrnn", {"reflections": 16}),
            ("ornn", {"reflections": 16}),
            ("rnn", None),
            ("lstm", None),
        )
    ),
    # Characters of the Penn Treebank, with backpropagation through 50 at a time. 186 of
    # 310 are -1s. The last five have the sizes that their own papers report.
    _text(
        "enrnn",
        (310, 720),
        _rates("adam 1e-3", "adam 1e-4"),
        {
            "negative_ones": 0.6,
            "activation": "relu",
            "kernel_initializer": "uniform",
            "coupling_initializer": "orthogonal",
        },
        parameters=1_016,
    ),
    *(
        _text("lstm", units, CLIPPED, {"forget_bias": 0.0}, parameters=p)
        for units, p in ((350, 1_016), (1_030, 8_600))
    ),
    _text("gru", 415, ADAM),
    _text("eurnn", 2_048, ADAM_RMSPROP, REAL),
    _text("goru-paper", 512, ADAM_RMSPROP),
    _text("ornn", 512, ADAM, {"reflections": 256}, parameters=183),
    # PyTorch's weight decay of 1e-5 adds 1e-5 T to the gradient of T, as an L2 penalty
    # of 5e-6 does.
    _text(
        "nnrnn",
        1_024,
        _rates(
            "adam 2e-3 betas 0 0.9 plateau 0.5", "adam 2e-4 betas 0 0.9 plateau 0.5"
        ),
        {
            "kernel_initializer": "he_normal",
            "radii_regularizer": _object("UnitRadii", strength=1e-4),
            "upper_regularizer": {"class_name": "L2", "config": {"l2": 5e-6}},
        },
        source="Kerg et al., NeurIPS 2019, and the authors' code, which embeds the "
        "characters in 200 numbers, and back-propagates through 150",
        batch_size=128,
        parameters=1_320,
    ),
)


def find(
    task: str, model: str, units: Units | None = None, length: int | None = None
) -> Preset:
    """Finds a paper's settings."""
    rows = [row for row in PRESETS if row.task == task]
    fitting = [
        row
        for row in rows
        if row.model == model
        and units in (None, row.units)
        and (length is None or not row.lengths or length in row.lengths)
    ]
    if fitting:
        return fitting[0]
    known = ", ".join(
        f"{row.model} {row.units}"
        + (f" at {' and '.join(map(str, row.lengths))}" if row.lengths else "")
        for row in rows
    )
    raise ValueError(
        f"`preset`: no paper has such settings for {task}. Available: "
        f"{known or 'none'}. Received: model={model!r}, units={units}, length={length}"
    )
