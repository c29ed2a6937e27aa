"""What the papers and their authors' code say of the networks of the presets.

Written from the sources, not from the presets: `test_presets.py` builds the network and
the optimizer of every preset and holds them against these tables. Of code it names the
repository, the file and the lines; "D" is Helfrich's dissertation, University of
Kentucky 2020.
"""

from dataclasses import dataclass, field
from typing import Any

ICML = "Helfrich et al., ICML 2018"
SCORNN_CODE = "SpartinStuff/scoRNN d390c9b"
SCURNN_CODE = "Gayan225/scuRNN f6ff975"
ENRNN_CODE = "KHelfrich1/ENRNN d67d639"
URNN_CODE = "stwisdom/urnn 9f8b679"
EUNN_CODE = "jingli9111/EUNN-tensorflow 33d749d"
GORU_CODE = "jingli9111/GORU-tensorflow 0ea3c04"
ORNN_CODE = "zmhammedi/Orthogonal_RNN ccfff99"
SPECTRAL_CODE = "zhangjiong724/spectral-RNN c15407a"
NNRNN_CODE = "KyleGoyette/nnRNN 294d4ff"
CHANG = "Chang et al., ICLR 2019, appendix C"
ZHANG = "Zhang et al., ICLR 2018 submission of the ICML 2018 paper"

# How values start: ("uniform", low, high), ("normal", deviation), ("constant", value),
# ("angles", low, high) of the 2 x 2 blocks of a skew matrix, ("scaled rotations",) with
# eigenvalues g exp(+-i t), ("unit reflectors",) packed, of length 1, ("unitary",),
# ("orthogonal",), ("forget bias", value) of an LSTM. A number may be a function of the
# inputs m and the units n.


def glorot(rows, columns):
    return lambda m, n: (6 / (rows(m, n) + columns(m, n))) ** 0.5


def spread(bound):
    """Uniform between minus and plus a bound."""
    if callable(bound):
        return ("uniform", lambda m, n: -bound(m, n), bound)
    return ("uniform", -bound, bound)


INPUTS = lambda m, n: m  # noqa: E731
UNITS = lambda m, n: n  # noqa: E731
TWICE = lambda m, n: 2 * n  # noqa: E731
SMALL = spread(0.01)
ZERO = ("constant", 0.0)
STATE = spread(lambda m, n: (3 / (2 * n)) ** 0.5)
PI = 3.14159
# The weights of several networks.
URNN = {
    "kernel": (spread(glorot(INPUTS, TWICE)), f"{URNN_CODE}, models.py:520-545"),
    "initial_state": (STATE, f"{URNN_CODE}, models.py:607, 630-632"),
}
COUPLING = {
    "coupling_kernel": (
        spread(lambda m, n: (6 / n) ** 0.5),
        f"{ENRNN_CODE}, ENRNN.py:99-101",
    )
}


def gaussian(gates):
    """Of a network of so many kernels side by side."""
    return {
        name: (
            ("normal", lambda m, n, k=rows: (2 / (k(m, n) + gates * n)) ** 0.5),
            f"{ZHANG}, section 7: Gaussian",
        )
        for name, rows in (("kernel", INPUTS), ("recurrent_kernel", UNITS))
    }


@dataclass(frozen=True)
class Architecture:
    """What holds of an architecture in all tasks, unless a row says otherwise.

    Attributes:
        weights: How each weight starts, and where that is said.
        read_out: Reals of the state that the output is made from, for each unit.
        trained_state: Whether the state before the first step is trained.
        source: Where these two are said.
    """

    weights: dict[str, tuple[tuple[Any, ...], str]]
    read_out: int
    trained_state: bool
    source: str


ARCHITECTURES = {
    "scornn": Architecture(
        {
            "kernel": (SMALL, f"{SCORNN_CODE}, scoRNN.py:68-70"),
            "recurrent_skew": (
                ("angles", 0, PI / 2),
                f"{SCORNN_CODE}, scoRNN.py:28-38",
            ),
            "bias": (ZERO, f"{SCORNN_CODE}, scoRNN.py:53-54"),
        },
        1,
        False,
        f"{SCORNN_CODE}, MNIST script:116-120",
    ),
    "scurnn": Architecture(
        {
            "kernel": (
                spread(glorot(INPUTS, TWICE)),
                f"{SCURNN_CODE}, scuRNN.py:55-62",
            ),
            "recurrent_skew_real": (
                ("angles", 0, PI / 2),
                f"{SCURNN_CODE}, MNIST script:169-182",
            ),
            "recurrent_skew_imag": (ZERO, f"{SCURNN_CODE}, MNIST script:169-182"),
            "recurrent_phases": (
                ("uniform", 0, 2 * PI),
                f"{SCURNN_CODE}, scuRNN.py:39-40",
            ),
            "bias": (SMALL, f"{SCURNN_CODE}, scuRNN.py:35-36"),
            "initial_state": (SMALL, f"{SCURNN_CODE}, MNIST script:132-136"),
        },
        2,
        True,
        f"{SCURNN_CODE}, scuRNN.py:43-48, MNIST script:132-136",
    ),
    "enrnn": Architecture(
        {
            "kernel": (SMALL, f"{ENRNN_CODE}, ENRNN.py:116-123"),
            "recurrent_skew": (("angles", 0, PI / 2), f"{ENRNN_CODE}, ENRNN.py:31-59"),
            "short_term_matrix": (
                ("scaled rotations",),
                f"{ENRNN_CODE}, ENRNN.py:57-87",
            ),
            "bias": (ZERO, f"{ENRNN_CODE}, ENRNN.py:116-123"),
        },
        1,
        False,
        f"{ENRNN_CODE}, ENRNN.py:105-133",
    ),
    "restricted-urnn": Architecture(
        {
            **URNN,
            "recurrent_phases": (spread(PI), f"{URNN_CODE}, models.py:468-480"),
            "recurrent_reflectors": (
                spread(lambda m, n: (6 / (2 + 2 * n)) ** 0.5),
                f"{URNN_CODE}, models.py:468-480",
            ),
            "bias": (SMALL, f"{URNN_CODE}, models.py:585"),
        },
        2,
        True,
        f"{URNN_CODE}, models.py:468-545",
    ),
    "full-urnn": Architecture(
        {
            **URNN,
            "recurrent_unitary": (("unitary",), f"{URNN_CODE}, models.py:493-510"),
        },
        2,
        True,
        f"{URNN_CODE}, models.py:468-545",
    ),
    "eurnn": Architecture(
        {
            "kernel": (SMALL, f"{EUNN_CODE}, eunn.py, cell"),
            "recurrent_angles": (spread(PI), f"{EUNN_CODE}, eunn.py:28-68, 71-147"),
            "recurrent_phases": (spread(PI), f"{EUNN_CODE}, eunn.py:28-68, 71-147"),
            "output_phases": (spread(PI), f"{EUNN_CODE}, eunn.py:28-68, 71-147"),
            "bias": (ZERO, f"{EUNN_CODE}, eunn.py, cell"),
        },
        1,
        False,
        f"{EUNN_CODE}, copying_task.py:81-92 (the real part, V of [n, classes]), "
        "mnist_task.py:99-107",
    ),
    "goru-paper": Architecture(
        {
            "reset_bias": (("constant", 2.0), f"{GORU_CODE}, goru.py:239-269"),
            "bias": (("constant", 0.01), f"{GORU_CODE}, goru.py:239-269"),
            "gate_kernel": (SMALL, f"{GORU_CODE}, goru.py:11-21"),
            "gate_recurrent_kernel": (SMALL, f"{GORU_CODE}, goru.py:11-21"),
        },
        1,
        False,
        f"{GORU_CODE}, goru.py",
    ),
    "ornn": Architecture(
        {
            "kernel": (
                spread(glorot(INPUTS, UNITS)),
                f"{ORNN_CODE}, RNN_models.py: fan in and out",
            ),
            "reflectors": (("unit reflectors",), f"{ORNN_CODE}, RNN_models.py:46-48"),
            "bias": (ZERO, f"{ORNN_CODE}, RNN_models.py"),
            "initial_state": (STATE, f"{ORNN_CODE}, RNN_models.py"),
        },
        1,
        True,
        f"{ORNN_CODE}, RNN_models.py",
    ),
    "svdrnn": Architecture(
        {
            "kernel": (
                spread(glorot(INPUTS, UNITS)),
                f"{SPECTRAL_CODE}, spectral_rnn.py:140-166",
            ),
            "left_reflectors": (
                ("unit reflectors",),
                f"{SPECTRAL_CODE}, rnn.py:127, 175",
            ),
            "right_reflectors": (
                ("unit reflectors",),
                f"{SPECTRAL_CODE}, rnn.py:127, 175",
            ),
            "singular_logits": (ZERO, f"{SPECTRAL_CODE}, spectral_rnn.py:140-146"),
            "bias": (ZERO, f"{SPECTRAL_CODE}, spectral_rnn.py"),
        },
        1,
        False,
        f"{SPECTRAL_CODE}, spectral_rnn.py",
    ),
    "antisymmetric": Architecture(
        {
            "kernel": (("normal", lambda m, n: m**-0.5), CHANG),
            "recurrent_skew": (("normal", lambda m, n: n**-0.5), f"{CHANG}, sigma 1"),
            "bias": (ZERO, CHANG),
        },
        1,
        False,
        "Chang et al., ICLR 2019, equation 12",
    ),
    "nnrnn": Architecture(
        {
            "schur_upper": (ZERO, f"{NNRNN_CODE}, RNN_Cell.py:124-142"),
            "schur_radii": (("constant", 1.0), f"{NNRNN_CODE}, RNN_Cell.py:124-142"),
            "schur_angles": (spread(PI), f"{NNRNN_CODE}, RNN_Cell.py: on (0, 6.28)"),
            "bias": (SMALL, f"{NNRNN_CODE}, RNN_Cell.py"),
            "kernel": (
                ("normal", lambda m, n: (2 / m) ** 0.5),
                f"{NNRNN_CODE}, character script: kaiming",
            ),
        },
        1,
        False,
        f"{NNRNN_CODE}, RNN_Cell.py:199-218",
    ),
    "lstm": Architecture(
        {"bias": (("forget bias", 1.0), "D 2.5: 1.0 unless otherwise noted")},
        1,
        False,
        f"{SCORNN_CODE}: a BasicLSTMCell from the zero state",
    ),
    "rnn": Architecture({}, 1, False, f"{ZHANG}, section 7.2"),
    "gru": Architecture({}, 1, False, "D 2.7, table 2.5"),
}
_GATED = {
    **ARCHITECTURES["antisymmetric"].weights,
    "gate_kernel": (("normal", lambda m, n: m**-0.5), CHANG),
    "gate_bias": (ZERO, CHANG),
}
ARCHITECTURES["antisymmetric-gated"] = Architecture(
    _GATED, 1, False, "Chang et al., ICLR 2019, equation 13"
)
ARCHITECTURES["antisymmetric-ablation"] = Architecture(
    {name: value for name, value in _GATED.items() if name != "recurrent_skew"}
    | {"recurrent_kernel": (("normal", lambda m, n: n**-0.5), f"{CHANG}, sigma 1")},
    1,
    False,
    "Chang et al., ICLR 2019, section 5.4, by its number of parameters",
)


# Numbers of trained parameters by the published equations, of n units, m inputs, p
# outputs of the last layer, k reflectors, and h trained initial states.
def triangle(n):
    return n * (n - 1) // 2


def reflectors(k, n):
    return k * n - triangle(k)


def lstm(m, n, h, p):
    return 4 * n * (m + n + 1) + 2 * h * n + (n + 1) * p


def enrnn(m, n, p, coupled):
    q, s = n
    return triangle(q) + s * s + coupled * q * s + (m + 1) * (q + s) + (q + s + 1) * p


EQUATIONS = {
    "scornn": lambda m, n, p: triangle(n) + m * n + n + (n + 1) * p,
    # n^2 of A, n phases, the bias, and h_0.
    "scurnn": lambda m, n, p: n * n + n + 2 * m * n + n + 2 * n + (2 * n + 1) * p,
    "enrnn": lambda m, n, p, coupling=True: enrnn(m, n, p, coupling),
    "restricted-urnn": lambda m, n, p: 7 * n + 2 * m * n + 3 * n + (2 * n + 1) * p,
    "full-urnn": lambda m, n, p: 2 * n * n + 2 * m * n + 3 * n + (2 * n + 1) * p,
    # Angles and phases of each pair, the diagonal, and the bias.
    "eurnn": lambda m, n, p, style="tunable", capacity=2: (
        (capacity * (n - 1) if style == "tunable" else n * (n.bit_length() - 1))
        + 2 * n
        + 2 * m * n
        + (n + 1) * p
    ),
    "goru-paper": lambda m, n, p: (
        n * (n.bit_length() - 1) // 2 + 3 * m * n + 2 * n * n + 3 * n + (n + 1) * p
    ),
    "ornn": lambda m, n, p, reflections: (
        reflectors(reflections, n) + m * n + 2 * n + (n + 1) * p
    ),
    "svdrnn": lambda m, n, p, reflections, h=0: (
        2 * reflectors(reflections, n) + m * n + (2 + h) * n + (n + 1) * p
    ),
    "antisymmetric": lambda m, n, p: triangle(n) + (m + 1) * n + (n + 1) * p,
    "antisymmetric-gated": lambda m, n, p: triangle(n) + 2 * (m + 1) * n + (n + 1) * p,
    "antisymmetric-ablation": lambda m, n, p: n * n + 2 * (m + 1) * n + (n + 1) * p,
    "nnrnn": lambda m, n, p: 2 * triangle(n) + n + (m + 1) * n + (n + 1) * p,
    "lstm": lambda m, n, p, h=0: lstm(m, n, h, p),
    "rnn": lambda m, n, p, h=0: n * (m + n + 1) + h * n + (n + 1) * p,
    # Keras's has two biases.
    "gru": lambda m, n, p: 3 * n * (m + n + 2) + (n + 1) * p,
}


# Optimizers: the kind of Keras, the rate, and what differs from the kind's defaults.
def rmsprop(rate, **more):
    """TensorFlow 1's: the accumulator starts at 1, epsilon is under the root."""
    first = {"rho": 0.9, "epsilon": 1e-10, "initial_accumulator_value": 1.0}
    return {"kind": "RMSpropTF1", "rate": rate, "momentum": 0.0, **first, **more}


def adam(rate, **more):
    return {"kind": "Adam", "rate": rate, "beta_1": 0.9, "beta_2": 0.999, **more}


def adagrad(rate):
    return {"kind": "Adagrad", "rate": rate, "initial_accumulator_value": 0.1}


def stiefel(rate, rms_scaling=False):
    return {"kind": "StiefelDescent", "rate": rate, "rms_scaling": rms_scaling}


def scurnn(rate_of_phases):
    skew = dict.fromkeys(["recurrent_skew_real", "recurrent_skew_imag"], rmsprop(1e-4))
    return {"": adam(1e-3), **skew, "recurrent_phases": adagrad(rate_of_phases)}


@dataclass(frozen=True)
class Row:
    """What is said of a network on a task.

    Attributes:
        task: Its name, or several.
        model: Its name.
        units: Its units.
        optimizers: Those of all weights, by name; `""` for all others.
        source: Where that is said, and all that has no source of its own.
        duration: Epochs, or updates where the paper counts these.
        batch_size: Sequences in a batch.
        lengths: The lengths that the row is for. Empty: all.
        negative_ones: Number of -1s in D, where there is a D.
        weights: How weights start that start otherwise than elsewhere.
        trained_state: Whether the initial state is trained, where that differs.
        penalties: Penalties: of a weight that is 3 everywhere, by its name, times the
            number of its entries.
        schedule: What a rate is multiplied with, and when: after a pass ("decay") or
            after one without improvement ("plateau").
        settings: Attributes of the cell.
        published: Published number of trained parameters.
        rounded: To what it is rounded.
        reading: What the published number counts, where it is not the number of the
            equations: a formula in that number, the inputs m, the units n and the
            outputs p.
        because: The published fact behind that, or what is inferred.
        unexplained: Whether the published number comes out of no reading.
    """

    task: str | tuple[str, ...]
    model: str
    units: Any
    optimizers: dict[str, dict[str, Any]]
    source: str
    duration: int
    batch_size: int
    lengths: tuple[int, ...] = ()
    negative_ones: int | None = None
    weights: dict[str, tuple[tuple[Any, ...], str]] = field(default_factory=dict)
    trained_state: bool | None = None
    penalties: dict[str, float] = field(default_factory=dict)
    schedule: tuple[str, float] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    published: float | None = None
    rounded: float = 1
    reading: Any = None
    because: str = ""
    unexplained: bool = False


BOTH = ("mnist", "permuted-mnist")
# What a published number counts: of the full-capacity uRNN, and of the EURNN that adds.
HALF_OF_UNITARY = {
    "reading": lambda own, m, n, p: own - n * n,
    "because": "Wisdom et al., NeurIPS 2016: counts the n^2 degrees of freedom of W, "
    "of which the network holds 2 n^2 reals",
}
REAL_KERNEL = {
    "reading": lambda own, m, n, p: own - m * n,
    "because": f"{ICML} 5.2: 3k and 7k come out where U counts m n numbers, not 2 m n",
}


def copying(model, units, optimizers, source, duration=10_000, **more):
    more = {"rounded": 1000, **more}
    return Row("copying", model, units, optimizers, source, duration, 20, **more)


def adding(model, units, optimizers, source, duration=10, **more):
    more = {"rounded": 1000, **more}
    return Row("adding", model, units, optimizers, source, duration, 50, **more)


def pixels(model, units, optimizers, source, duration=70, batch_size=50, **more):
    more = {"rounded": 1000, "task": BOTH, **more}
    task = more.pop("task")
    return Row(task, model, units, optimizers, source, duration, batch_size, **more)


def speech(model, units, optimizers, source, duration=200, **more):
    # "Approximately the same number": 83k, 135k, 200k.
    more = {"rounded": 0.04 * more.get("published", 0), **more}
    return Row("timit", model, units, optimizers, source, duration, 28, **more)


def text(model, units, optimizers, source, batch_size=32, **more):
    more = {"rounded": 1000, **more}
    return Row("char-ptb", model, units, optimizers, source, 20, batch_size, **more)


ROWS = [
    copying(
        "scornn",
        190,
        {"": rmsprop(1e-3), "recurrent_skew": rmsprop(1e-4)},
        f"{SCORNN_CODE}, copying script:37-55; D 2.7.3",
        negative_ones=95,
        published=22_000,
    ),
    copying("lstm", 68, {"": rmsprop(1e-3)}, "D 2.7.3 and 2.5.3", published=22_000),
    copying(
        "full-urnn",
        128,
        {"": rmsprop(1e-3), "recurrent_unitary": stiefel(1e-3)},
        f"D 2.7.3; {URNN_CODE}, optimizations.py:29-62",
        published=22_000,
        **HALF_OF_UNITARY,
    ),
    copying(
        "restricted-urnn",
        470,
        {"": rmsprop(1e-3)},
        f"{ICML} 5.1; {URNN_CODE}, run_memory_problem.sh",
        # 22 569, "approximately 22k".
        published=22_000,
        rounded=2000,
    ),
    copying(
        "eurnn",
        512,
        {"": rmsprop(1e-3)},
        f"{ICML} 5.1, L = 2; {EUNN_CODE}",
        settings={"capacity": 2, "style": "tunable"},
    ),
    copying(
        "scurnn",
        130,
        scurnn(1e-4),
        f"{SCURNN_CODE}, copying script:36-57",
        2_000,
        lengths=(2_000,),
        published=22_369,
        rounded=1,
    ),
    copying(
        "enrnn",
        (172, 20),
        {"": rmsprop(1e-3), "recurrent_skew": rmsprop(1e-5)},
        f"D 2.7.3; {ENRNN_CODE}, copying script:34-56",
        4_000,
        lengths=(2_000,),
        negative_ones=52,
        weights=COUPLING,
        published=22_000,
    ),
    *(
        adding(
            "scornn",
            170,
            {"": adam(1e-3), "recurrent_skew": rmsprop(1e-4)},
            "D 2.5.3",
            lengths=(length,),
            negative_ones=count,
            published=15_000,
        )
        for length, count in ((200, 85), (400, 119), (750, 119))
    ),
    *(
        adding(
            "lstm",
            60,
            {"": adam(1e-2)},
            "D 2.5.3",
            lengths=(length,),
            weights={"bias": (("forget bias", value), "D 2.5.3")},
            published=15_000,
        )
        for length, value in ((200, 2.0), (400, 4.0), (750, 0.0))
    ),
    adding(
        "full-urnn",
        120,
        {"": rmsprop(1e-5), "recurrent_unitary": stiefel(1e-5)},
        "D 2.5.3",
        published=15_000,
        **HALF_OF_UNITARY,
    ),
    adding("restricted-urnn", 950, {"": rmsprop(1e-4)}, "D 2.5.3", published=15_000),
    adding(
        "ornn",
        128,
        {"": adam(1e-2)},
        "D 2.5.3",
        settings={"reflections": 16},
        published=2_600,
        rounded=100,
    ),
    adding(
        "eurnn",
        512,
        {"": rmsprop(1e-3)},
        f"{ICML} 5.2; {EUNN_CODE}",
        lengths=(200, 400),
        settings={"capacity": 2, "style": "tunable"},
        published=3_000,
        # 3 583, said to be "approximately 3k".
        rounded=2_000,
        **REAL_KERNEL,
    ),
    adding(
        "eurnn",
        512,
        {"": rmsprop(1e-3)},
        f"{ICML} 5.2; {EUNN_CODE}",
        lengths=(750,),
        settings={"style": "fft"},
        published=7_000,
        **REAL_KERNEL,
    ),
    adding(
        "scurnn",
        116,
        scurnn(1e-3),
        f"{SCURNN_CODE}, adding script:22-45",
        30,
        weights={
            "recurrent_skew_real": (
                ("angles", -PI, PI),
                f"{SCURNN_CODE}, adding script:125-127: on (0, 2 pi)",
            )
        },
        published=14_617,
        rounded=1,
    ),
    adding(
        "enrnn",
        (96, 64),
        {"": rmsprop(1e-4)},
        f"D 2.7.3; {ENRNN_CODE}, adding script:20-40",
        6,
        negative_ones=29,
        weights=COUPLING,
        published=15_000,
    ),
    adding(
        "svdrnn",
        60,
        {"": adam(1e-2)},
        "D 2.7.3: 16 reflectors, margin 0.01, 1e-2 with decay; "
        f"{SPECTRAL_CODE}, rate times 0.99 an epoch",
        6,
        schedule=("decay", 0.99),
        settings={"reflections": 16, "spectral_margin": 0.01},
    ),
    *(
        pixels(
            "scornn",
            units,
            {"": rmsprop(1e-3), "recurrent_skew": rmsprop(rate)},
            f"D 2.5.3, table 2.1; {SCORNN_CODE}, MNIST script:29-44",
            task=task,
            negative_ones=round(units * part),
            published=published,
        )
        for units, rate, published in (
            (170, 1e-4, 16_000),
            (360, 1e-5, 69_000),
            (512, 1e-5, 137_000),
        )
        for task, part in (("mnist", 0.1), ("permuted-mnist", 0.5))
    ),
    *(
        pixels(
            "lstm",
            units,
            {"": rmsprop(rate)},
            "D 2.5.3, table 2.1",
            published=published,
            rounded=rounded,
        )
        for units, rate, published, rounded in (
            (128, 1e-3, 68_000, 1000),
            (256, 1e-3, 270_000, 10_000),
            (512, 1e-4, 1_058_000, 1000),
        )
    ),
    *(
        pixels(
            "scurnn",
            units,
            scurnn(1e-3),
            f"{SCURNN_CODE}, MNIST script:28-51",
            published=published,
            rounded=1,
        )
        for units, published in ((116, 16_482), (250, 69_010))
    ),
    *(
        pixels(
            "restricted-urnn",
            units,
            {"": rmsprop(1e-4)},
            "D 2.5.3, table 2.1",
            published=published,
        )
        for units, published in ((512, 16_000), (2_170, 69_000))
    ),
    *(
        pixels(
            "full-urnn",
            units,
            {"": rmsprop(rate), "recurrent_unitary": stiefel(1e-6, rms_scaling=True)},
            f"D 2.5.3, table 2.1; {URNN_CODE}, custom_optimizers.py:49-80",
            published=published,
            rounded=rounded,
            **HALF_OF_UNITARY,
        )
        for units, rate, published, rounded in (
            (116, 1e-3, 16_000, 1000),
            (512, 1e-4, 270_000, 10_000),
        )
    ),
    pixels(
        "eurnn",
        512,
        {"": rmsprop(1e-4)},
        f"D table 2.1; {EUNN_CODE}, mnist_task.py",
        batch_size=128,
        settings={"capacity": 2, "style": "tunable"},
        published=9_000,
        reading=lambda own, m, n, p: own + 2 * n,
        because=f"{EUNN_CODE}, mnist_task.py:99-107, makes a trained initial state of "
        "2 n numbers that it does not use",
    ),
    pixels(
        "ornn",
        256,
        {"": adam(1e-3)},
        f"Mhammedi et al., ICML 2017; {ORNN_CODE}",
        settings={"reflections": 32},
        published=11_000,
    ),
    pixels(
        "svdrnn",
        256,
        {"": adam(1e-3)},
        f"{ZHANG}, table 2; {SPECTRAL_CODE}, test.json",
        100,
        128,
        settings={"reflections": 16},
        published=13_000,
        reading=lambda own, m, n, p: own + (7 - m) * n + n,
        because=f"Inferred from {ZHANG}, section 7.2: one of its networks for MNIST "
        "reads 112 steps, of 7 pixels, which with an initial state comes to 13k",
    ),
    *(
        pixels(
            model,
            128,
            {"": adagrad(0.1)},
            CHANG,
            50_000,
            128,
            published=10_000,
        )
        for model in ("antisymmetric", "antisymmetric-gated")
    ),
    *(
        Row(
            task,
            model,
            units,
            {"": adagrad(0.1)},
            f"Chang et al., ICLR 2019, table 2; {CHANG}",
            duration,
            128,
            weights={
                "kernel": (("normal", lambda m, n: m**-0.5), CHANG),
                "recurrent_kernel": (("normal", lambda m, n: n**-0.5), CHANG),
                "bias": (("forget bias", 1.0), CHANG),
            }
            if model == "lstm"
            else {},
            published=published,
            rounded=1000,
            **{}
            if task == "pixel-cifar10"
            else {"unexplained": True}
            if model == "lstm"
            # Of the kernels, one without gates, two with.
            else {
                "reading": lambda own, m, n, p, k=kernels: own - k * (m - 3) * n,
                "because": "Inferred from Chang et al., ICLR 2019, table 2: the rows "
                "repeat those of pixel CIFAR-10, whose steps have 3 numbers, not 96",
            },
        )
        for task, duration in (
            ("pixel-cifar10", 50_000),
            ("noise-padded-cifar10", 10_000),
        )
        for model, units, published, kernels in (
            ("antisymmetric", 256, 36_000, 1),
            ("antisymmetric-gated", 256, 37_000, 2),
            ("antisymmetric-ablation", 196, 42_000, 2),
            ("lstm", 128, 69_000 if task == "pixel-cifar10" else 64_000, 4),
        )
    ),
    *(
        speech(
            "scornn",
            units,
            {"": adam(1e-3), "recurrent_skew": rmsprop(rate)},
            "D 2.5.3, table 2.2; of 425 units D 2.7.3, table 2.4",
            duration,
            negative_ones=count,
            published=published,
        )
        for units, rate, count, published, duration in (
            (224, 1e-3, 22, 83_000, 200),
            (322, 1e-4, 32, 135_000, 200),
            (425, 1e-4, 43, 200_000, 300),
        )
    ),
    *(
        speech(
            "lstm",
            units,
            {"": rmsprop(1e-3, **clip)},
            "D 2.5.3, table 2.2; of 158 and 468 units D 2.7.3, table 2.4",
            duration,
            weights={"bias": (("forget bias", -4.0), "D 2.5.3")},
            published=published,
        )
        for units, duration, published, clip in (
            (84, 200, 83_000, {}),
            (120, 200, 135_000, {}),
            (158, 300, 200_000, {"clipvalue": 1.0}),
            (468, 300, 1_200_000, {"clipvalue": 1.0}),
        )
    ),
    speech(
        "enrnn",
        (374, 94),
        {"": adam(1e-4)},
        "D 2.7.3, table 2.4",
        300,
        negative_ones=374,
        settings={"coupling": False},
        published=200_000,
    ),
    *(
        speech(
            "restricted-urnn",
            units,
            {"": rmsprop(1e-3)},
            f"{URNN_CODE}, TIMIT scripts; D table 2.2",
            published=published,
        )
        for units, published in ((158, 83_000), (256, 135_000), (378, 200_000))
    ),
    *(
        speech(
            "full-urnn",
            units,
            {"": rmsprop(1e-3), "recurrent_unitary": stiefel(1e-3)},
            f"{URNN_CODE}, TIMIT scripts; D table 2.2",
            published=published,
            **HALF_OF_UNITARY,
        )
        for units, published in ((128, 83_000), (192, 135_000), (256, 200_000))
    ),
    # On ArrowHead: steps of one value, three classes.
    *(
        Row(
            "ucr",
            model,
            32,
            {"": adam(1e-2)},
            f"{ZHANG}, section 7.1 and table 3; the rate is not told",
            4_000,
            32,
            weights=weights,
            trained_state=True,
            settings=settings,
            published=published,
        )
        for model, published, weights, settings in (
            ("rnn", 1_219, gaussian(1), {"activation": 0.1}),
            ("lstm", 4_515, gaussian(4), {}),
            ("ornn", 587, {}, {"reflections": 16, "activation": 0.1}),
            ("svdrnn", 1_011, {}, {"reflections": 16, "activation": 0.1}),
        )
    ),
    *(
        Row(
            "sequence-mnist",
            model,
            128,
            {"": adam(1e-3)},
            f"{ZHANG}, section 7.2; {SPECTRAL_CODE}, test.json",
            100,
            128,
            lengths=(28, 112),
            settings={"reflections": 16} if model in ("ornn", "svdrnn") else {},
        )
        for model in ("svdrnn", "ornn", "rnn", "lstm")
    ),
    text(
        "enrnn",
        (310, 720),
        {"": adam(1e-3), "recurrent_skew": adam(1e-4)},
        "D 2.7.3, table 2.5",
        negative_ones=186,
        # One-hot characters times a free kernel are the rows of an embedding in R^N,
        # which starts as TensorFlow's embeddings did.
        weights={
            "kernel": (spread(0.05), "D 2.7.3: a linear embedding"),
            "coupling_kernel": (("orthogonal",), "D 2.7.3: truncated orthogonal"),
        },
        settings={"activation": "relu"},
        published=1_016_000,
        reading=lambda own, m, n, p: lstm(350, 350, 0, p) + 350 * m,
        because="D 2.7.3 gives one number for both networks, which is that of the LSTM",
    ),
    *(
        text(
            "lstm",
            units,
            {"": adam(1e-3, clipvalue=8.0)},
            "D 2.7.3, table 2.5",
            weights={"bias": (("forget bias", 0.0), "D 2.7.3")},
            published=published,
            rounded=rounded,
        )
        for units, published, rounded in (
            (350, 1_016_000, 1000),
            (1_030, 8_600_000, 100_000),
        )
    ),
    text("gru", 415, {"": adam(1e-3)}, "D table 2.5, from Jing et al. 2017"),
    text(
        "eurnn",
        2_048,
        {
            "": adam(1e-3),
            "recurrent_angles": rmsprop(1e-4),
            "recurrent_phases": rmsprop(1e-4),
            "output_phases": rmsprop(1e-4),
        },
        "D table 2.5, from Jing et al. 2017",
    ),
    text(
        "goru-paper",
        512,
        {"": adam(1e-3), "recurrent_angles": rmsprop(1e-4)},
        "D table 2.5, from Jing et al. 2017",
    ),
    text(
        "ornn",
        512,
        {"": adam(1e-3)},
        "D table 2.5, from Mhammedi et al. 2017",
        settings={"reflections": 256},
        published=183_000,
        # A reflector k = 0, 1, ... has k leading zeros.
        reading=lambda own, m, n, p: own + sum(range(256)),
        because="Mhammedi et al., ICML 2017: whole vectors of all reflectors",
    ),
    text(
        "nnrnn",
        1_024,
        {
            "": adam(2e-3, beta_1=0.0, beta_2=0.9),
            "recurrent_skew": adam(2e-4, beta_1=0.0, beta_2=0.9),
        },
        f"{NNRNN_CODE}, README's tables, truncation 150",
        batch_size=128,
        # delta (gamma - 1)^2 with delta = 1e-4; a decay of 1e-5 of T in its gradient.
        penalties={"schur_radii": 4e-4, "schur_upper": 9 * 1e-5 / 2},
        schedule=("plateau", 0.5),
        published=1_320_000,
        rounded=10_000,
        reading=lambda own, m, n, p: own + 200 * m + 200 * n - m * n,
        because=f"{NNRNN_CODE}: characters are embedded in 200 numbers",
    ),
]

# Zhang et al., table 3: the length of the series, the values of a step (the length over
# the depth), the outputs (the highest label and one more: some are no class), and the
# numbers of parameters of RNN, LSTM, oRNN and svdRNN.
UCR_COUNTS = {
    "FiftyWords": (270, 10, 50, (3058, 7218, 2426, 2850)),
    "Adiac": (176, 11, 38, (2694, 6950, 2062, 2486)),
    "ArrowHead": (251, 1, 3, (1219, 4515, 587, 1011)),
    "Beef": (470, 10, 6, (1606, 5766, 974, 1398)),
    "BeetleFly": (512, 16, 3, (1699, 6435, 1067, 1491)),
    "CBF": (128, 8, 4, (1476, 5444, 844, 1268)),
    "Coffee": (286, 13, 2, (1570, 6018, 938, 1362)),
    "CricketX": (300, 15, 13, (1997, 6637, 1365, 1789)),
    "DistalPhalanxOutlineCorrect": (80, 8, 2, (1410, 5378, 778, 1202)),
    "DistalPhalanxTW": (80, 8, 9, (1641, 5609, 1009, 1433)),
    "ECG200": (96, 8, 2, (1410, 5378, 778, 1202)),
    "ECG5000": (140, 10, 6, (1606, 5766, 974, 1398)),
    "ECGFiveDays": (136, 8, 3, (1443, 5411, 811, 1235)),
    "FaceAll": (131, 1, 15, (1615, 4911, 983, 1407)),
    "FaceFour": (350, 14, 5, (1701, 6245, 1069, 1493)),
    "FacesUCR": (131, 1, 15, (1615, 4911, 983, 1407)),
    "GunPoint": (150, 10, 3, (1507, 5667, 875, 1299)),
    "InsectWingbeatSound": (256, 16, 12, (1996, 6732, 1364, 1788)),
    "ItalyPowerDemand": (24, 4, 3, (1315, 4899, 683, 1107)),
    "Lightning2": (637, 13, 2, (1570, 6018, 938, 1362)),
    "MiddlePhalanxOutlineCorrect": (80, 8, 2, (1410, 5378, 778, 1202)),
}
