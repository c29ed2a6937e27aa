"""The sections for the papers' tables and figures, their runs, and the sets of runs."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.layers import Units, units_text
from experiments.presets import PRESETS, Preset
from keras_ortho.checks import check_choice


@dataclass(frozen=True)
class Run:
    """A run of one of the examples.

    `records` is the file among the results that holds its record, `record` the
    example's name of it; `files` are its other result files, by their names there.
    `data` is the subfolder of all data that it needs, or empty.
    """

    name: str
    script: str
    arguments: list[str]
    records: str
    data: str
    data_option: str = "--data-dir"
    record: str = "run.json"
    files: Mapping[str, str] = field(default_factory=dict)

    def has_data(self, data_dir: Path | None) -> bool:
        """Whether the data that it needs, if any, are in the folder of all data."""
        return not self.data or bool(data_dir and (data_dir / self.data).exists())

    def options(self, out: Path | str, data_dir: Path | None) -> list[str]:
        """Lists the arguments of the example, including folders."""
        options = ["--out", str(out), *self.arguments]
        if self.data and data_dir:
            options += [self.data_option, str(data_dir / self.data)]
        return options


@dataclass(frozen=True)
class Section:
    """Runs of an example that share a table and a figure.

    Attributes:
        models: Further arguments of each model, by its name; words after the name
            tell its rows apart.
        published: Results in the paper, by the same names.
        set: The smallest set that contains the section.
        side_by_side: Whether the tables have a row for each data set and the models
            side by side; the keys of `models` then name a model and a data set.
        apart: With `side_by_side`, data sets that the means leave out, as models cannot
            be compared on them.
        more_seeds: Additional seeds of the runs on the named data sets.
    """

    title: str
    script: str
    arguments: str
    models: Mapping[str, str]
    published: Mapping[str, str] = field(default_factory=dict)
    set: str = "standard"
    data: str = ""
    ylabel: str = "validation loss"
    log: bool = True
    side_by_side: bool = False
    apart: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    more_seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the section, used for its files."""
        return _file_name(self.title)

    @property
    def records(self) -> str:
        """Name of the file with all its records; a CSV file has no curves."""
        return f"{self.name}.{'csv' if self.side_by_side else 'json'}"

    def seeds_of(self, row: str) -> tuple[int, ...]:
        """Lists the seeds of a key of `models`."""
        return (*self.seeds, *self.more_seeds.get(row.partition(" ")[2], ()))

    def run_name(self, row: str, seed: int) -> str:
        """Returns the name of the run of a key of `models` with a seed."""
        words = [self.name, *row.lower().split()]
        return "-".join(words + [f"seed-{seed}"] * (len(self.seeds) > 1))

    def runs(self) -> list[Run]:
        """Lists its runs, model by model."""
        return [
            Run(
                self.run_name(row, seed),
                self.script,
                shlex.split(
                    f"--model {row.split()[0]} {self.arguments} {more} --seed {seed}"
                ),
                self.records,
                self.data,
            )
            for row, more in self.models.items()
            for seed in self.seeds_of(row)
        ]


@dataclass(frozen=True)
class Comparison:
    """A run of an example that writes its own table and figures."""

    title: str
    script: str
    arguments: str
    pictures: tuple[str, ...]
    table: str = "table.md"
    record: str = "run.json"
    others: tuple[str, ...] = ()
    set: str = "standard"
    data: str = ""
    data_option: str = "--data-dir"

    @property
    def name(self) -> str:
        """Name of the section, used for its files."""
        return _file_name(self.title)

    def runs(self) -> list[Run]:
        """Lists its only run."""
        files = filter(None, (*self.pictures, self.table, *self.others))
        return [
            Run(
                self.name,
                self.script,
                shlex.split(self.arguments),
                f"{self.name}.json",
                self.data,
                self.data_option,
                self.record,
                {file: f"{self.name}-{file}" for file in files},
            )
        ]


def _file_name(title: str) -> str:
    return "-".join(title.lower().replace(",", "").replace("=", "").split())


# Each contains those before it.
SETS = ("quick", "standard", "full")
PAPER = "--preset paper"
# Shortens most runs by a quarter; lengthens the LSTM's over long sequences.
XLA = "--jit-compile"
# Accuracies of table 3 of Zhang et al.: RNN, LSTM, oRNN, svdRNN. FiftyWords and
# Lightning2 are 50words and Lighting2 there.
UCR = {
    "FiftyWords": (0.492, 0.598, 0.642, 0.651),
    "Adiac": (0.552, 0.706, 0.668, 0.726),
    "ArrowHead": (0.509, 0.537, 0.669, 0.800),
    "Beef": (0.600, 0.700, 0.733, 0.733),
    "BeetleFly": (0.950, 0.850, 0.900, 0.950),
    "CBF": (0.702, 0.967, 0.881, 0.948),
    "Coffee": (1.000, 1.000, 1.000, 1.000),
    "CricketX": (0.310, 0.456, 0.495, 0.500),
    "DistalPhalanxOutlineCorrect": (0.790, 0.798, 0.830, 0.840),
    "DistalPhalanxTW": (0.815, 0.795, 0.807, 0.815),
    "ECG200": (0.640, 0.640, 0.640, 0.640),
    "ECG5000": (0.941, 0.936, 0.940, 0.945),
    "ECGFiveDays": (0.947, 0.790, 0.976, 0.948),
    "FaceAll": (0.549, 0.455, 0.714, 0.714),
    "FaceFour": (0.625, 0.477, 0.511, 0.716),
    "FacesUCR": (0.449, 0.629, 0.710, 0.727),
    "GunPoint": (0.947, 0.920, 0.953, 0.960),
    "InsectWingbeatSound": (0.534, 0.515, 0.598, 0.586),
    "ItalyPowerDemand": (0.970, 0.969, 0.972, 0.973),
    "Lightning2": (0.541, 0.541, 0.541, 0.541),
    "MiddlePhalanxOutlineCorrect": (0.793, 0.783, 0.712, 0.820),
}

# Sequence lengths in the papers, for tasks where they have several.
LENGTHS = {
    "copying": (1_000, 2_000),
    "adding": (200, 400, 750),
    "sequence-mnist": (28, 112),
}
# Title, data folder and validation figure of each task.
TASKS = {
    "copying": ("Copying", "", "cross-entropy"),
    "adding": ("Adding", "", "MSE"),
    "mnist": ("Pixel MNIST", "mnist", "error rate"),
    "permuted-mnist": ("Permuted MNIST", "mnist", "error rate"),
    "sequence-mnist": ("Rows of MNIST", "mnist", "error rate"),
    "pixel-cifar10": ("Pixel CIFAR-10", "cifar10", "error rate"),
    "noise-padded-cifar10": ("Noise-padded CIFAR-10", "cifar10", "error rate"),
    "char-ptb": ("Characters of the Penn Treebank", "ptb", "bits per character"),
}
# Published figures on test data, by task, model and units: tables 2.1, 2.2, 2.4 and 2.5
# of the dissertation, table 2 of Zhang et al., and tables 1 and 2 of Chang et al.:
# accuracies on images, squared errors in dB² on TIMIT, bits per character on text. On
# TIMIT, what follows "then", ENRNN and the LSTM with 468 units are of table 2.4: 300
# epochs, with padding left out of the loss. For the LSTM the sources disagree: where
# table 2.2 has 14.30, 12.95 and 12.62, the submission of the scoRNN paper to ICLR 2018
# has 17.18, 15.91 and 16.06.
PUBLISHED: dict[tuple[str, str], dict[Units, str]] = {
    ("mnist", "scornn"): {170: "0.973", 360: "0.983", 512: "0.985"},
    ("mnist", "lstm"): {128: "0.987", 256: "0.989", 512: "0.985"},
    ("mnist", "restricted-urnn"): {512: "0.976", 2_170: "0.984"},
    ("mnist", "full-urnn"): {116: "0.947", 512: "0.974"},
    ("mnist", "ornn"): {256: "0.972"},
    ("mnist", "svdrnn"): {256: "0.976"},
    ("mnist", "antisymmetric"): {128: "0.980"},
    ("mnist", "antisymmetric-gated"): {128: "0.988"},
    ("permuted-mnist", "scornn"): {170: "0.943", 360: "0.962", 512: "0.966"},
    ("permuted-mnist", "lstm"): {128: "0.920", 256: "0.929", 512: "0.920"},
    ("permuted-mnist", "restricted-urnn"): {512: "0.945", 2_170: "0.953"},
    ("permuted-mnist", "full-urnn"): {116: "0.925", 512: "0.947"},
    ("permuted-mnist", "eurnn"): {512: "0.937"},
    ("permuted-mnist", "antisymmetric"): {128: "0.958"},
    ("permuted-mnist", "antisymmetric-gated"): {128: "0.931"},
    ("pixel-cifar10", "antisymmetric"): {256: "0.587"},
    ("pixel-cifar10", "antisymmetric-gated"): {256: "0.622"},
    ("pixel-cifar10", "antisymmetric-ablation"): {196: "0.546"},
    ("pixel-cifar10", "lstm"): {128: "0.597"},
    ("noise-padded-cifar10", "antisymmetric"): {256: "0.483"},
    ("noise-padded-cifar10", "antisymmetric-gated"): {256: "0.547"},
    ("noise-padded-cifar10", "antisymmetric-ablation"): {196: "0.462"},
    ("noise-padded-cifar10", "lstm"): {128: "0.116"},
    ("timit", "scornn"): {224: "8.50", 322: "7.82", 425: "7.36, then 1.52"},
    ("timit", "lstm"): {
        84: "14.30",
        120: "12.95",
        158: "12.62, then 8.27",
        468: "5.42",
    },
    ("timit", "enrnn"): {(374, 94): "0.13"},
    ("timit", "restricted-urnn"): {158: "18.51", 256: "15.31", 378: "15.15"},
    ("timit", "full-urnn"): {128: "14.58", 192: "14.50", 256: "14.69"},
    ("char-ptb", "enrnn"): {(310, 720): "1.429"},
    ("char-ptb", "lstm"): {350: "1.461", 1_030: "1.408"},
    ("char-ptb", "gru"): {415: "1.601"},
    ("char-ptb", "eurnn"): {2_048: "1.715"},
    ("char-ptb", "goru-paper"): {512: "1.623"},
    ("char-ptb", "ornn"): {512: "1.68"},
    ("char-ptb", "nnrnn"): {1_024: "1.47"},
}
# UCR is already in the standard set at the paper's length.
ELSEWHERE = {"ucr"}
# UCR data sets on which a run takes over a minute, on two cores.
SLOW = {"Adiac", "ArrowHead", "CricketX"}


def _sections(task: str) -> Iterator[Section | Comparison]:
    presets = [row for row in PRESETS if row.task == task]
    if task == "timit":
        for row in presets:
            yield _timit(row)
        return
    title, data, figure = TASKS[task]
    for length in LENGTHS.get(task, (None,)):
        rows = [p for p in presets if not p.lengths or length in p.lengths]
        yield Section(
            title + (f", T = {length}" if length else "") + ", as long as the papers",
            task.replace("-", "_"),
            "--preset paper" + (f" --length {length}" if length else ""),
            {
                _name(row): f"--units {units_text(row.units)}" + _xla(row)
                for row in rows
            },
            {
                _name(row): PUBLISHED[task, row.model][row.units]
                for row in rows
                if row.units in PUBLISHED.get((task, row.model), ())
            },
            set="full",
            data=data,
            ylabel=f"validation {figure}",
        )


def _timit(row: Preset) -> Comparison:
    return _speech(
        f"TIMIT, {_name(row)}, as long as the papers",
        f"--preset paper --models {row.model} --units {units_text(row.units)}",
        set="full",
    )


def _speech(
    title: str, arguments: str, script: str = "timit", data: str = "timit", **own: Any
) -> Comparison:
    return Comparison(
        title,
        script,
        arguments,
        ("curves.png", "spectrograms.png"),
        table="results.md",
        record="results.json",
        data=data,
        data_option="--records",
        **own,
    )


def _denoising(title: str, data: str, models: str) -> Comparison:
    arguments = f"--models {models} --seeds 3 --epochs 20"
    return _speech(title, arguments, "denoise", data, others=("scores.csv",))


def _name(row: Preset) -> str:
    return f"{row.model} {units_text(row.units).replace('/', '-')}"


def _xla(row: Preset) -> str:
    # XLA makes the LSTM slower over long sequences.
    return "" if row.model == "lstm" else " --jit-compile"


SECTIONS: tuple[Section | Comparison, ...] = (
    Section(
        "Adding, T = 200, an epoch",
        "adding",
        "--preset paper --epochs 1",
        {"scornn": "", "lstm": ""},
        set="quick",
        ylabel="validation MSE",
    ),
    Section(
        "Adding, T = 200",
        "adding",
        "--epochs 3",
        {
            "scornn": PAPER,
            "scurnn": PAPER,
            "enrnn": PAPER,
            # Without initial rotations, which move what is remembered, and with little
            # diffusion, which forgets it.
            "antisymmetric-gated": "--units 128 --argument diffusion=0.001 --argument "
            "\"recurrent_initializer={'class_name': 'keras_ortho>AntisymmetricNormal', "
            "'config': {'sigma_w': 0.0}}\" --rate 'adam 1e-2' "
            "--recurrent-rate 'adam 1e-3'",
            "svdrnn": "--units 128 --argument reflections=16 --rate 'adam 1e-3' "
            "--recurrent-rate 'adam 1e-3'",
            "svdrnn as in the paper": PAPER,
            "ornn": PAPER,
            "restricted-urnn": "--units 128",
            # The paper's rate is 1e-5.
            "full-urnn": "--units 120 --unitary-rate 'stiefel 1e-4' --epochs 5",
            "full-urnn at 1e-3": "--units 120 --unitary-rate 'stiefel 1e-3' "
            "--epochs 10",
            "eurnn": "--units 128 --argument capacity=4 --argument "
            "trainable_initial_state=True --recurrent-rate 'adam 1e-3' --epochs 5",
            "goru-paper": "--units 128",
            "nnrnn": "--units 128",
            "factorized": "--units 128",
            "lstm": PAPER,
            "rnn": "--units 122",
        },
        ylabel="validation MSE",
    ),
    Section(
        "Adding, T = 750",
        "adding",
        f"--preset paper --length 750 --epochs 6 {XLA}",
        # From seed 0, scoRNN's error falls in the seventh epoch.
        {"scornn": "--epochs 10", "enrnn": "", "lstm": ""},
        ylabel="validation MSE",
    ),
    # As in scoRNN's code; ENRNN's code has another order in each epoch.
    Section(
        "Adding, T = 750, in one order",
        "adding",
        f"--preset paper --length 750 --epochs 10 --fixed-order {XLA}",
        {"scornn": "", "enrnn": "", "lstm": ""},
        ylabel="validation MSE",
        seeds=(0, 1, 2),
    ),
    Section(
        "Copying, T = 1000",
        "copying",
        "--length 1000",
        {
            "scornn": f"{PAPER} --steps 4000 {XLA}",
            # As in its paper for T = 2000.
            "scurnn": "--units 130 --rate 'adam 1e-3' --recurrent-rate 'rmsprop 1e-4' "
            f"--phases-rate 'adagrad 1e-4' --batch-size 20 --steps 2000 {XLA}",
            "full-urnn": f"{PAPER} --steps 4000 {XLA}",
            "lstm": f"{PAPER} --steps 4000",
        },
        ylabel="validation cross-entropy",
    ),
    Section(
        "Copying, T = 2000",
        "copying",
        "--preset paper --length 2000 --steps 2000",
        {"scornn": XLA, "scurnn": XLA, "enrnn": XLA, "lstm": ""},
        ylabel="validation cross-entropy",
    ),
    *(
        Section(
            f"{title}, {epochs} epochs",
            script,
            f"--preset paper --epochs {epochs} {XLA}",
            dict.fromkeys(models, ""),
            {
                # The smallest, which these runs have.
                model: next(iter(PUBLISHED[script.replace("_", "-"), model].values()))
                for model in models
                if model != "scurnn"
            },
            data="mnist",
            ylabel="validation error rate",
        )
        for title, script, epochs, models in (
            ("Pixel MNIST", "mnist", 60, ("scornn",)),
            ("Pixel MNIST", "mnist", 10, ("antisymmetric", "antisymmetric-gated")),
            ("Pixel MNIST", "mnist", 5, ("scurnn",)),
            (
                "Permuted MNIST",
                "permuted_mnist",
                10,
                ("antisymmetric", "antisymmetric-gated"),
            ),
            ("Permuted MNIST", "permuted_mnist", 5, ("scornn", "lstm")),
        )
    ),
    Section(
        "UCR",
        "ucr",
        f"{PAPER} {XLA}",
        {
            f"{model} {name}": f"--name {name}"
            for name in UCR
            for model in ("rnn", "lstm", "ornn", "svdrnn")
        },
        {
            f"{model} {name}": f"{accuracy:.3f}"
            for name, accuracies in UCR.items()
            for model, accuracy in zip(
                ("rnn", "lstm", "ornn", "svdrnn"), accuracies, strict=True
            )
        },
        data="ucr",
        side_by_side=True,
        # The published accuracy is the share of one class, the same for all networks.
        apart=("ECG200", "Lightning2"),
        seeds=(0, 1, 2),
        more_seeds=dict.fromkeys(set(UCR) - SLOW, tuple(range(3, 10))),
    ),
    Section(
        "Noise-padded CIFAR-10, 600 updates",
        "noise_padded_cifar10",
        f"--preset paper --steps 600 --evaluate-every 60 --valid-size 500 {XLA}",
        {
            "antisymmetric": "",
            "antisymmetric-gated": "",
            "lstm": "",
            "lstm by Adam": "--rate 'adam 1e-3'",
            "lstm by Adam with fixed noise": "--rate 'adam 1e-3' --fixed-noise",
        },
        {
            "antisymmetric": "0.483",
            "antisymmetric-gated": "0.547",
            "lstm": "0.116",
        },
        data="cifar10",
        ylabel="validation error rate",
        log=False,
    ),
    Section(
        "Characters of the Penn Treebank, 10 epochs",
        "char_ptb",
        "--preset paper --epochs 10",
        {"enrnn": "", "lstm": "--units 350"},
        {"enrnn": "1.429", "lstm": "1.461"},
        data="ptb",
        ylabel="validation bits per character",
        log=False,
    ),
    *(
        _speech(
            title, f"--raw --models scornn enrnn lstm --batch-size 8 --epochs {option}"
        )
        for title, option in (
            ("TIMIT sample", "300"),
            ("TIMIT sample, input and target swapped", "300 --legacy-swapped-targets"),
        )
    ),
    Comparison(
        "TIMIT sample, three divisions of its speakers",
        "timit_splits",
        "--splits 3 --seeds 3",
        ("curves.png",),
        table="results.md",
        record="results.json",
        data="timit-corpus",
        data_option="--corpus",
    ),
    _denoising("Denoising, synthetic speech", "", "goru-paper lstm"),
    _denoising("Denoising, TIMIT sample", "timit", "goru-paper scornn lstm"),
    Comparison(
        "BNP on CIFAR-10",
        "bnp",
        "--valid-size 500",
        ("loss-60.png", "accuracy-60.png", "loss-6.png", "accuracy-6.png"),
        data="cifar10",
    ),
    Comparison(
        "Deep networks on MNIST",
        "deep_mlp",
        "",
        ("loss.png", "accuracy.png"),
        data="mnist",
    ),
    *(
        Comparison(
            title,
            "figures",
            figure,
            (f"{figure}.png",),
            table="",
            record=f"{figure}.json",
        )
        for title, figure in (
            ("Gradients over time", "gradient-norms"),
            ("Which inputs a state depends on", "heat-maps"),
            ("Trajectories of two units", "trajectories"),
            ("Eigenvalues of the Jacobian over a sequence", "jacobians"),
        )
    ),
    # Each preset at its paper's own length, on all data.
    *(
        section
        for task in dict.fromkeys(row.task for row in PRESETS)
        if task not in ELSEWHERE
        for section in _sections(task)
    ),
)


def select(chosen: str, prefixes: Sequence[str] | None = None) -> list[Run]:
    """Lists the runs of a set."""
    check_choice("chosen", chosen, SETS)
    held = SETS[: SETS.index(chosen) + 1]
    runs = [
        run for section in SECTIONS if section.set in held for run in section.runs()
    ]
    if prefixes is not None:
        runs = [run for run in runs if run.name.startswith(tuple(prefixes))]
        if not runs:
            raise ValueError(
                f"`prefixes` (--only) must begin the name of a run of {chosen!r}. "
                f"Received: {list(prefixes)}"
            )
    return runs
