"""The study of the defaults: what is varied, and on which tasks.

A coarse screen varies one setting of scoRNN at a time around a common one, and the
learning rates of the other layers, on tasks that take a minute, from one seed. The
finals run the remaining settings on longer tasks, from three seeds.
"""

import math
import shlex
from dataclasses import dataclass, replace

from experiments.sections import Run


@dataclass(frozen=True)
class Problem:
    """A task of the study.

    Attributes:
        script: Name of the example, without `.py`.
        arguments: Arguments of the example, except those of the setting.
        thresholds: Validation figures; the updates that reach them are counted, and
            settings are compared by the first.
        monitor: Name of this figure in the curves of a record.
        data: Subfolder, in the folder of all data, of the data that it needs.
        is_short: Whether the task is in the screen.
    """

    script: str
    arguments: str
    thresholds: tuple[float, ...]
    monitor: str = "val_loss"
    data: str = ""
    is_short: bool = False


def _copying(delay: int, steps: int) -> Problem:
    # The loss without any memory; the thresholds are a half and a tenth of it.
    baseline = 10 * math.log(8) / (delay + 20)
    sizes = f"--train-size {32 * steps} --valid-size 200 --test-size 100"
    return Problem(
        "copying",
        f"--length {delay} --batch-size 32 --steps {steps} --evaluate-every 20 {sizes}",
        (baseline / 2, baseline / 10),
        is_short=delay <= 200,
    )


def _adding(length: int, steps: int) -> Problem:
    return Problem(
        "adding",
        f"--length {length} --steps {steps} --evaluate-every 100 --test-size 1000",
        (0.01,),
        is_short=length <= 200,
    )


def _addition(digits: int, epochs: int) -> Problem:
    return Problem(
        "addition",
        f"--digits {digits} --epochs {epochs}",
        (0.1, 0.01),
        "val_error_rate",
        is_short=digits <= 2,
    )


def _ucr(name: str) -> Problem:
    return Problem(
        "ucr",
        f"--name {name} --steps 600 --evaluate-every 20",
        (0.2, 0.1),
        "val_error_rate",
        "ucr",
        is_short=name == "FacesUCR",
    )


PROBLEMS = {
    "copying-200": _copying(200, 600),
    "adding-200": _adding(200, 3_000),
    "addition-2": _addition(2, 30),
    "ucr-faces": _ucr("FacesUCR"),
    "adding-200-long": replace(_adding(200, 6_000), is_short=False),
    "copying-300": _copying(300, 1_000),
    "copying-1000": _copying(1_000, 600),
    "adding-750": _adding(750, 6_000),
    "adding-750-long": _adding(750, 12_000),
    "addition-3": _addition(3, 40),
    "ucr-cricket": _ucr("CricketX"),
    "ucr-ecg": _ucr("ECG5000"),
    "ucr-words": _ucr("FiftyWords"),
    # NLTK's sample of TIMIT, on which linear prediction reaches 44.7 dB^2.
    "speech": Problem(
        "speech",
        "--epochs 40",
        (43.0, 42.5),
        "val_valid_frame_mse",
        "timit",
        is_short=True,
    ),
    "permuted-mnist": Problem(
        "permuted_mnist",
        "--epochs 2 --evaluate-every 275",
        (0.15,),
        "val_error_rate",
        "mnist",
    ),
}
FINALS = (
    "copying-300",
    "adding-200-long",
    "copying-1000",
    "permuted-mnist",
    "addition-3",
    "speech",
    "ucr-cricket",
    "ucr-ecg",
    "ucr-words",
    "adding-750",
    "adding-750-long",
)
# The architectures of the study, with units that keep them comparable.
MODELS = {
    "scornn": "128",
    "scurnn": "64",
    "enrnn": "102/26",
    "ornn": "128",
    "svdrnn": "128",
    "goru": "128",
    "nnrnn": "128",
    "antisymmetric": "128",
    "lstm": "128",
    "gru": "128",
    "rnn": "128",
}
BASELINES = ("lstm", "gru", "rnn")
# Defaults of all settings: one optimizer for all variables.
COMMON = {
    "kernel_initializer": "glorot_uniform",
    "rate": "adam 1e-3",
}
TWO = {"recurrent-rate": "rmsprop 1e-4"}
PAPERS = "two optimizers, small kernel"
FAST = "rate 3e-3, slow matrix, clipped"
BRISK = "rate 3e-3, matrix 3e-4, clipped, beta 0.5"
BRISK_FOR_LONG = "rate 3e-3, matrix 1e-4, clipped, beta 0.5"
# With a shorter average of the squared gradients.
ALERT = "clipped, beta_2 0.95"
SWIFT = "rate 3e-3, slow matrix, clipped, beta_2 0.95"
SWIFT_FOR_LONG = "rate 3e-3, matrix 1e-4, clipped, beta_2 0.95"
# These measure an average of the weights, over about 50, 20 or 1 000 updates.
STEADY = f"{SWIFT}, averaged, 0.98"
STEADY_FOR_LONG = f"{SWIFT_FOR_LONG}, averaged"
CALM = "rate 3e-3, long averages"
CALM_OPLU = "OPLU, rate 3e-3, long averages"
CALM_LEAKY = "leaky ReLU, rate 3e-3, long averages"
LEAKY = "leaky ReLU, two rates"
LEAKY_FOR_LONG = "leaky ReLU, two rates for long"
WIDE = "OPLU, 256 units"
SETTINGS: dict[str, dict[str, str]] = {
    "common": {},
    "small kernel": {"kernel_initializer": "small_uniform"},
    "normal kernel": {"kernel_initializer": "he_normal"},
    "random matrix": {"recurrent_initializer": "orthogonal"},
    "small bias": {"bias_initializer": "small_uniform"},
    "rate 3e-4": {"rate": "adam 3e-4"},
    "rate 3e-3": {"rate": "adam 3e-3"},
    "clipped": {"rate": "adam 1e-3 clipnorm 1"},
    "AdamW": {"rate": "adamw 1e-3"},
    "RMSprop": {"rate": "rmsprop 1e-3"},
    "slow matrix": {"recurrent-rate": "adam 1e-4"},
    # The recurrent matrix also has a tenth of the rate, or less for long sequences.
    FAST: {"rate": "adam 3e-3 clipnorm 1", "recurrent-rate": "adam 3e-4 clipnorm 1"},
    BRISK: {
        "rate": "adam 3e-3 clipnorm 1 betas 0.5 0.999",
        "recurrent-rate": "adam 3e-4 clipnorm 1 betas 0.5 0.999",
    },
    BRISK_FOR_LONG: {
        "rate": "adam 3e-3 clipnorm 1 betas 0.5 0.999",
        "recurrent-rate": "adam 1e-4 clipnorm 1 betas 0.5 0.999",
    },
    ALERT: {"rate": "adam 1e-3 clipnorm 1 betas 0.9 0.95"},
    SWIFT: {
        "rate": "adam 3e-3 clipnorm 1 betas 0.9 0.95",
        "recurrent-rate": "adam 3e-4 clipnorm 1 betas 0.9 0.95",
    },
    SWIFT_FOR_LONG: {
        "rate": "adam 3e-3 clipnorm 1 betas 0.9 0.95",
        "recurrent-rate": "adam 1e-4 clipnorm 1 betas 0.9 0.95",
    },
    STEADY: {
        "rate": "adam 3e-3 clipnorm 1 betas 0.9 0.95 ema 0.98",
        "recurrent-rate": "adam 3e-4 clipnorm 1 betas 0.9 0.95 ema 0.98",
    },
    STEADY_FOR_LONG: {
        "rate": "adam 3e-3 clipnorm 1 betas 0.9 0.95 ema 0.95",
        "recurrent-rate": "adam 1e-4 clipnorm 1 betas 0.9 0.95 ema 0.95",
    },
    CALM: {"rate": "adam 3e-3 ema 0.999"},
    CALM_OPLU: {"rate": "adam 3e-3 ema 0.999", "activation": "oplu"},
    "two optimizers": TWO,
    "two optimizers, normal kernel": {**TWO, "kernel_initializer": "he_normal"},
    PAPERS: {**TWO, "kernel_initializer": "small_uniform"},
    "OPLU": {"activation": "oplu"},
    "leaky ReLU": {"activation": "leaky_relu"},
    CALM_LEAKY: {"rate": "adam 3e-3 ema 0.999", "activation": "leaky_relu"},
    WIDE: {"activation": "oplu", "units": "256"},
}
# With leaky ReLU, the optimizers of `two_rate_adam`.
SETTINGS[LEAKY] = {**SETTINGS[SWIFT], "activation": "leaky_relu"}
SETTINGS[LEAKY_FOR_LONG] = {**SETTINGS[SWIFT_FOR_LONG], "activation": "leaky_relu"}
# Arguments that only some layers have: these layers, and the arguments.
OF_MODELS = {"rebased": (("scornn", "scurnn"), {"rebase_every": "100"})}
# For the other layers, the settings that scoRNN's screen leaves open.
RATES = ("common", "rate 3e-4", "rate 3e-3", "clipped", SWIFT)


@dataclass(frozen=True)
class Trial:
    """A run of the study.

    Attributes:
        problem: One of `PROBLEMS`.
        model: One of `MODELS`.
        setting: One of `SETTINGS`, or of `OF_MODELS`.
        seed: Its seed.
    """

    problem: str
    model: str
    setting: str
    seed: int

    @property
    def name(self) -> str:
        """Name of the trial, used for its folder."""
        words = f"{self.problem} {self.model} {self.setting} {self.seed}"
        return "-".join(words.replace(",", "").lower().split())

    def run(self) -> Run:
        """Returns the run of the example."""
        problem = PROBLEMS[self.problem]
        chosen = self._chosen()
        units = chosen.pop("units", MODELS[self.model])
        words = [*shlex.split(problem.arguments), "--model", self.model]
        words += ["--units", units, "--seed", str(self.seed)]
        for name, value in chosen.items():
            if name.endswith("rate"):
                words += [f"--{name}", value]
            else:
                words += ["--argument", f"{name}={value}"]
        return Run(self.name, problem.script, words, problem.data, "--data-dir", {})

    def _chosen(self) -> dict[str, str]:
        own = {name: chosen for name, (_, chosen) in OF_MODELS.items()}
        chosen = {**COMMON, **{**SETTINGS, **own}[self.setting]}
        if self.model in BASELINES:
            return {"rate": chosen["rate"]}
        return {"recurrent-rate": chosen["rate"], **chosen}


def screen() -> list[Trial]:
    """Lists the trials of the screen: scoRNN's settings first, then others' rates."""
    return [
        Trial(problem, model, setting, 0)
        for model in MODELS
        for problem, each in PROBLEMS.items()
        if each.is_short
        for setting in ([*SETTINGS, *OF_MODELS] if model == "scornn" else RATES)
    ]


def finals() -> list[Trial]:
    """Lists the trials from three seeds: the remaining settings, and baselines.

    They are on the tasks for which the papers and dtriv's authors show curves. On
    keras.io's addition, more layers are compared at two rates. On speech it is the
    kernel, which the screen found to matter there, and the layers that were ahead of
    scoRNN. The activation is varied on tasks that need computation, averages of the
    weights where noise holds a run back. All layers run on two tasks of the screen,
    with the settings that it found to matter there.
    """
    left = {
        "scornn": (
            "common",
            "clipped",
            "rate 3e-4",
            "slow matrix",
            FAST,
            BRISK,
            BRISK_FOR_LONG,
            ALERT,
            SWIFT,
            SWIFT_FOR_LONG,
            STEADY,
            STEADY_FOR_LONG,
            "two optimizers",
            PAPERS,
        ),
        "lstm": ("common", "clipped"),
        "gru": ("common", "clipped"),
    }
    everywhere = [
        Trial(problem, model, setting, seed)
        for problem in FINALS
        for seed in range(3)
        for model, settings in left.items()
        for setting in settings
    ]
    addition = [
        Trial("addition-3", model, setting, seed)
        for setting in ("common", "rate 3e-3")
        for seed in range(3)
        for model in ("scornn", "enrnn", "goru", "lstm", "gru", "rnn")
    ]
    averaged = [
        Trial("addition-3", model, setting, seed)
        for seed in range(3)
        for model, setting in (
            ("scornn", CALM),
            ("scornn", CALM_OPLU),
            ("enrnn", CALM),
            ("goru", CALM),
            ("lstm", CALM),
        )
    ]
    averaged += [
        Trial("permuted-mnist", model, STEADY, seed)
        for seed in range(3)
        for model in ("lstm", "gru")
    ]
    speech = [
        Trial("speech", model, setting, seed)
        for seed in range(3)
        for model, setting in (
            ("scornn", "small kernel"),
            ("scornn", "leaky ReLU"),
            ("antisymmetric", "common"),
            ("goru", "common"),
            ("ornn", "common"),
            ("svdrnn", "common"),
        )
    ]
    sorting = [
        Trial(problem, "scornn", "OPLU", seed)
        for problem in ("addition-3", "ucr-cricket", "ucr-words", "permuted-mnist")
        for seed in range(3)
    ]
    leaking = [
        Trial(problem, "scornn", setting, seed)
        for problem, settings in (
            ("ucr-cricket", ("leaky ReLU", LEAKY)),
            ("ucr-words", ("leaky ReLU", LEAKY)),
            ("speech", (LEAKY,)),
            ("addition-3", ("leaky ReLU", CALM_LEAKY)),
            ("copying-200", ("leaky ReLU", LEAKY)),
            ("copying-300", ("leaky ReLU", LEAKY)),
            ("copying-1000", ("leaky ReLU", LEAKY_FOR_LONG)),
            ("adding-200", ("leaky ReLU",)),
            ("adding-200-long", ("leaky ReLU", LEAKY)),
            ("adding-750-long", ("leaky ReLU", LEAKY)),
            ("permuted-mnist", ("leaky ReLU", LEAKY)),
        )
        for setting in settings
        for seed in range(3)
    ]
    wide = [Trial("addition-3", "scornn", WIDE, seed) for seed in range(3)]
    layers = [
        Trial(problem, model, setting, seed)
        for problem, settings in (
            ("copying-200", ("common", SWIFT)),
            ("addition-2", ("common", "rate 3e-3")),
        )
        for setting in settings
        for seed in range(3)
        for model in MODELS
    ]
    activations = sorting + leaking
    return everywhere + addition + averaged + speech + activations + wide + layers
