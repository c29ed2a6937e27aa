"""Which runs make up the papers' tables and figures, a section for each."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Run:
    """A run of one of the examples.

    Attributes:
        name: Its name, for its files.
        script: The example, without `.py`.
        arguments: The arguments of the example, but for folders.
        data: Folder of the data that it needs, below the one of all data; empty for
            none.
        data_option: The option that takes it.
        products: The files that are its results, by what the example calls them, and
            what they are called among all results; the record, NAME.json, comes last.
    """

    name: str
    script: str
    arguments: list[str]
    data: str
    data_option: str
    products: Mapping[str, str]


@dataclass(frozen=True)
class Section:
    """Runs that stand in one table and one figure.

    Attributes:
        title: Heading.
        script: The example, without `.py`.
        arguments: Arguments of all its runs.
        models: Arguments of each model besides, by its name; more words after the
            name tell its rows apart.
        published: What the paper reports, by the same names.
        set: The smallest set that the section belongs to.
        data: As for `Run`.
        ylabel: Label of the figure.
        log: Whether its axis is logarithmic.
        picture: Whether there is a figure.
        across: The figure that a table of all models side by side holds, where the
            rows are for the words after their names. Empty: a row for each model,
            with all figures.
        seeds: The seeds of each run, whose figures the table gives the mean of.
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
    picture: bool = True
    across: str = ""
    seeds: tuple[int, ...] = (0,)

    @property
    def name(self) -> str:
        """Names the section, for its files."""
        return _name(self.title)

    def record(self, row: str, seed: int) -> str:
        """Names a run.

        Args:
            row: The key of `models`.
            seed: The seed.

        Returns:
            The name.
        """
        words = [self.name, *row.lower().split()]
        return "-".join(words + [f"seed-{seed}"] * (len(self.seeds) > 1))

    def runs(self) -> list[Run]:
        """Lists its runs.

        Returns:
            The runs, model by model.
        """
        return [
            Run(
                self.record(row, seed),
                self.script,
                shlex.split(
                    f"--model {row.split()[0]} {self.arguments} {more} --seed {seed}"
                ),
                self.data,
                "--data-dir",
                {"run.json": f"{self.record(row, seed)}.json"},
            )
            for row, more in self.models.items()
            for seed in self.seeds
        ]


@dataclass(frozen=True)
class Comparison:
    """A run of an example that compares, tabulates and draws by itself.

    Attributes:
        title: Heading.
        script: The example, without `.py`.
        arguments: Its arguments.
        pictures: The figures that it writes.
        table: The table that it writes, if it does.
        record_file: Its record.
        set: The smallest set that the section belongs to.
        data: As for `Run`.
        data_option: As for `Run`.
    """

    title: str
    script: str
    arguments: str
    pictures: tuple[str, ...]
    table: str = "table.md"
    record_file: str = "run.json"
    set: str = "standard"
    data: str = ""
    data_option: str = "--data-dir"

    @property
    def name(self) -> str:
        """Names the section, for its files."""
        return _name(self.title)

    def runs(self) -> list[Run]:
        """Lists its runs.

        Returns:
            One run.
        """
        files = [*self.pictures, *([self.table] if self.table else [])]
        products = {file: f"{self.name}-{file}" for file in files}
        return [
            Run(
                self.name,
                self.script,
                shlex.split(self.arguments),
                self.data,
                self.data_option,
                products | {self.record_file: f"{self.name}.json"},
            )
        ]


def _name(title: str) -> str:
    return "-".join(title.lower().replace(",", "").replace("=", "").split())


PAPER = "--preset paper"
# Accuracies of table 3 of Zhang et al.: RNN, LSTM, oRNN, svdRNN.
UCR = {
    "Adiac": (0.552, 0.706, 0.668, 0.726),
    "ArrowHead": (0.509, 0.537, 0.669, 0.800),
    "Beef": (0.600, 0.700, 0.733, 0.733),
    "BeetleFly": (0.950, 0.850, 0.900, 0.950),
    "CBF": (0.702, 0.967, 0.881, 0.948),
    "Coffee": (1.000, 1.000, 1.000, 1.000),
    "ECG200": (0.640, 0.640, 0.640, 0.640),
    "ECGFiveDays": (0.947, 0.790, 0.976, 0.948),
    "GunPoint": (0.947, 0.920, 0.953, 0.960),
    "ItalyPowerDemand": (0.970, 0.969, 0.972, 0.973),
}

SECTIONS: tuple[Section | Comparison, ...] = (
    Section(
        "Adding, T = 200, an epoch",
        "adding",
        "--preset paper --epochs 1",
        {"scornn": "", "lstm": ""},
        {},
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
            # Without rotations at the start that move what is remembered, and a
            # diffusion that forgets it.
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
            "goru": "--units 128",
            "nnrnn": "--units 128",
            "factorized": "--units 128",
            "lstm": PAPER,
            "rnn": "--units 122",
        },
        {},
        ylabel="validation MSE",
    ),
    Section(
        "Adding, T = 750",
        "adding",
        "--preset paper --length 750 --epochs 6",
        dict.fromkeys(("scornn", "enrnn", "lstm"), ""),
        {},
        ylabel="validation MSE",
    ),
    Section(
        "Copying, T = 1000",
        "copying",
        "--preset paper --length 1000 --steps 4000",
        {"scornn": "", "full-urnn": "", "lstm": ""},
        {},
        ylabel="validation cross-entropy",
    ),
    Section(
        "Copying, T = 2000",
        "copying",
        "--preset paper --length 2000 --steps 2000",
        {"scornn": "", "scurnn": "", "enrnn": "", "lstm": ""},
        {},
        ylabel="validation cross-entropy",
    ),
    *(
        Section(
            f"{title}, {epochs} epochs",
            script,
            f"--preset paper --epochs {epochs}",
            dict.fromkeys(published, ""),
            published,
            set=chosen,
            data="mnist",
            ylabel="validation error rate",
        )
        for chosen, epochs in (("standard", 5), ("full", 70))
        for title, script, published in (
            ("Pixel MNIST", "mnist", {"scornn": "accuracy 0.973"}),
            (
                "Permuted MNIST",
                "permuted_mnist",
                {"scornn": "accuracy 0.943", "lstm": "accuracy 0.920"},
            ),
        )
    ),
    Section(
        "UCR",
        "ucr",
        PAPER,
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
        picture=False,
        across="test accuracy there",
        seeds=(0, 1, 2),
    ),
    Section(
        "Noise-padded CIFAR-10, 600 updates",
        "noise_padded_cifar10",
        "--preset paper --steps 600 --evaluate-every 60 --valid-size 500",
        {"antisymmetric": "", "antisymmetric-gated": "", "lstm": ""},
        {
            "antisymmetric": "accuracy 0.483",
            "antisymmetric-gated": "accuracy 0.547",
            "lstm": "accuracy 0.116",
        },
        data="cifar10",
        ylabel="validation error rate",
        log=False,
    ),
    Section(
        "Characters of the Penn Treebank, an epoch",
        "char_ptb",
        "--preset paper --epochs 1",
        {"enrnn": "", "lstm": "--units 350"},
        {"enrnn": "1.475 and 1.429", "lstm": "1.506 and 1.461"},
        data="ptb",
        ylabel="validation bits per character",
        log=False,
    ),
    *(
        Comparison(
            title,
            "timit",
            f"--models scornn enrnn lstm --batch-size 8 --epochs 600{option}",
            ("curves.png", "spectrograms.png"),
            table="results.md",
            record_file="results.json",
            data="timit",
            data_option="--records",
        )
        for title, option in (
            ("TIMIT sample", ""),
            ("TIMIT sample, input and target swapped", " --legacy-swapped-targets"),
        )
    ),
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
            record_file=f"{figure}.json",
        )
        for title, figure in (
            ("Gradients over time", "gradient-norms"),
            ("Which inputs a state depends on", "heat-maps"),
            ("Trajectories of two units", "trajectories"),
            ("Eigenvalues of the Jacobian over a sequence", "jacobians"),
        )
    ),
)
