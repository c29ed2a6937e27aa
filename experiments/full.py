"""Sections of the papers' own lengths: a run for each row of the presets."""

from collections.abc import Iterator

from experiments.layers import Units
from experiments.presets import PRESETS, Preset
from experiments.sections import Comparison, Section

# Lengths of the sequences that the papers have, of tasks where they have several.
LENGTHS = {
    "copying": (1_000, 2_000),
    "adding": (200, 400, 750),
    "sequence-mnist": (28, 112),
}
# Of each task a title, the folder of its data, and what is validated.
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
PUBLISHED: dict[tuple[str, str, Units], str] = {
    ("mnist", "scornn", 170): "accuracy 0.973",
    ("permuted-mnist", "scornn", 170): "accuracy 0.943",
    ("permuted-mnist", "lstm", 128): "accuracy 0.920",
}
# Those of UCR are in the standard set at their own length.
ELSEWHERE = {"ucr"}


def paper_sections() -> tuple[Section | Comparison, ...]:
    """Makes the sections of the set `full`.

    Returns:
        One for each task and length, whose rows are the presets at their published
        epochs or updates, on all data; of TIMIT, one for each preset.
    """
    tasks = dict.fromkeys(row.task for row in PRESETS if row.task not in ELSEWHERE)
    return tuple(section for task in tasks for section in _sections(task))


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
            {_name(row): f"--units {_units(row)}" + _xla(row) for row in rows},
            {
                _name(row): PUBLISHED[task, row.model, row.units]
                for row in rows
                if (task, row.model, row.units) in PUBLISHED
            },
            set="full",
            data=data,
            ylabel=f"validation {figure}",
        )


def _timit(row: Preset) -> Comparison:
    return Comparison(
        f"TIMIT, {_name(row)}, as long as the papers",
        "timit",
        f"--preset paper --models {row.model} --units {_units(row)}",
        ("curves.png", "spectrograms.png"),
        table="results.md",
        record_file="results.json",
        set="full",
        data="timit",
        data_option="--records",
    )


def _units(row: Preset) -> str:
    return "/".join(
        map(str, row.units if isinstance(row.units, tuple) else [row.units])
    )


def _name(row: Preset) -> str:
    return f"{row.model} {_units(row).replace('/', '-')}"


def _xla(row: Preset) -> str:
    # Over long sequences it makes the LSTM slower.
    return "" if row.model == "lstm" else " --jit-compile"
