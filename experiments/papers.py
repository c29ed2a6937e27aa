"""The papers' tables and figures, and what of each is reproduced here."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.catalog import SECTIONS
from experiments.records import read_table
from experiments.sections import Comparison, Section
from experiments.tables import table

SCORNN = "scoRNN, Helfrich et al., 2018"
SCURNN = "scuRNN, Maduranga et al., 2019"
ENRNN = "ENRNN, Helfrich and Ye, 2020, by the dissertation, section 2.7"
BNP = "BNP, Helfrich, dissertation, 2020, chapter 3"
ANTISYMMETRIC = "AntisymmetricRNN, Chang et al., 2019"
SVDRNN = "svdRNN, Zhang et al., 2018, by the submission to ICLR"
FULL = ", as long as the papers"
# The network that each paper is about, by its name on the command line.
OWN = {
    SCORNN: "scornn",
    SCURNN: "scurnn",
    ENRNN: "enrnn",
    ANTISYMMETRIC: "antisymmetric",
    SVDRNN: "svdrnn",
}


@dataclass(frozen=True)
class Item:
    """A table or a figure of a paper.

    Attributes:
        paper: The paper.
        number: What the paper calls it.
        shows: What it shows.
        whole: Titles of the sections that have it at the paper's length, on all data
            and with all networks. A title that ends with a space stands for all
            titles that begin with it.
        part: Titles of sections that have only part of it.
        otherwise: What the runs here lack, where else it is, or why it is missing.
    """

    paper: str
    number: str
    shows: str
    whole: tuple[str, ...] = ()
    part: tuple[str, ...] = ()
    otherwise: str = ""


ITEMS = (
    *(
        Item(SCORNN, "figure 1", f"c{title[1:]}", (f"{title}{FULL}",), (title,))
        for title in ("Copying, T = 1000", "Copying, T = 2000")
    ),
    *(
        Item(
            SCORNN,
            "figure 2",
            f"adding, T = {length}",
            (f"Adding, T = {length}{FULL}",),
            part,
        )
        for length, part in (
            (200, ("Adding, T = 200",)),
            (400, ()),
            (750, ("Adding, T = 750", "Adding, T = 750, in one order")),
        )
    ),
    *(
        Item(
            SCORNN,
            "table 1, figure 3",
            f"{kind} MNIST",
            (f"{kind.title()} MNIST{FULL}",),
            (part,),
        )
        for kind, part in (
            ("pixel", "Pixel MNIST, 60 epochs"),
            ("permuted", "Permuted MNIST, 5 epochs"),
        )
    ),
    Item(SCORNN, "table 2", "TIMIT", ("TIMIT, ",), ("TIMIT sample",)),
    Item(
        SCORNN,
        "figure 4",
        "orthogonality over epochs of pixel MNIST, n = 512",
        otherwise="not run; on another task: [drift](docs/README.md#how-far-training-"
        "takes-them-from-their-manifold)",
    ),
    Item(SCORNN, "figure 5", "gradients over time", ("Gradients over time",)),
    Item(
        SCORNN,
        "table 3",
        "time of an epoch of MNIST, on a GPU",
        otherwise="not run; on a CPU: [Speed](docs/speed.md)",
    ),
    Item(SCURNN, "", "copying, T = 2000", (), ("Copying, T = 2000",)),
    Item(SCURNN, "", "adding, T = 750", (f"Adding, T = 750{FULL}",)),
    Item(
        SCURNN, "", "pixel MNIST", (f"Pixel MNIST{FULL}",), ("Pixel MNIST, 5 epochs",)
    ),
    Item(SCURNN, "", "permuted MNIST", (f"Permuted MNIST{FULL}",)),
    Item(SCURNN, "", "TIMIT", otherwise="not run; its settings are not at hand"),
    Item(
        ENRNN,
        "figure 2.12",
        "adding, T = 750",
        (f"Adding, T = 750{FULL}",),
        ("Adding, T = 750",),
    ),
    Item(
        ENRNN,
        "figure 2.13",
        "copying, T = 2000",
        (f"Copying, T = 2000{FULL}",),
        ("Copying, T = 2000",),
        "without the LSTM of 192 units",
    ),
    Item(ENRNN, "table 2.4, figure 2.14", "TIMIT", ("TIMIT, ",), ("TIMIT sample",)),
    Item(
        ENRNN,
        "table 2.5",
        "characters of the Penn Treebank",
        (f"Characters of the Penn Treebank{FULL}",),
        ("Characters of the Penn Treebank, 10 epochs",),
    ),
    Item(ENRNN, "section 2.7.3", "the same, three layers"),
    Item(
        ENRNN,
        "figures 2.15, 2.16",
        "which inputs a state depends on",
        ("Which inputs a state depends on",),
    ),
    Item(
        ENRNN,
        "figures 2.17, 2.18",
        "adding, T = 750, by the number of short-term units",
    ),
    Item(BNP, "figure 3.1", "CIFAR-10, batch normalization", (), ("BNP on CIFAR-10",)),
    Item(BNP, "figure 3.3", "CIFAR-10, with BNP", (), ("BNP on CIFAR-10",)),
    *(
        Item(
            ANTISYMMETRIC,
            number,
            title[0].lower() + title[1:],
            (f"{title}{FULL}",),
            part,
        )
        for number, title, part in (
            ("table 1", "Pixel MNIST", ("Pixel MNIST, 10 epochs",)),
            ("table 1", "Permuted MNIST", ("Permuted MNIST, 10 epochs",)),
            ("table 2", "Pixel CIFAR-10", ()),
            (
                "table 2",
                "Noise-padded CIFAR-10",
                ("Noise-padded CIFAR-10, 600 updates",),
            ),
        )
    ),
    Item(
        ANTISYMMETRIC,
        "figure 1",
        "trajectories of two units",
        (),
        ("Trajectories of two units",),
        "a second Gaussian matrix in place of the reflection",
    ),
    Item(
        ANTISYMMETRIC,
        "figure 2",
        "eigenvalues of the Jacobian of trained networks",
        (),
        ("Eigenvalues of the Jacobian over a sequence",),
        "untrained networks",
    ),
    Item(ANTISYMMETRIC, "figures 3, 4, 5", "more trajectories, from other seeds"),
    Item(SVDRNN, "table 1", "operations", otherwise="a count, not an experiment"),
    Item(SVDRNN, "table 3", "time series of UCR", (), ("UCR",)),
    Item(SVDRNN, "figure 1", "the same, by epoch, on three sets"),
    Item(SVDRNN, "table 2", "MNIST, a pixel a step", (f"Pixel MNIST{FULL}",)),
    *(
        Item(
            SVDRNN,
            number,
            f"MNIST in {length} steps",
            (),
            (f"Rows of MNIST, T = {length}{FULL}",),
            without,
        )
        for number, length, without in (
            ("figure 2a", 28, "128 units, not 20; one margin, no IRNN"),
            ("figure 2b", 112, "one margin, no IRNN"),
        )
    ),
    Item(SVDRNN, "figure 2c to 2f", "slopes, margins and gradients in training"),
    Item(
        SVDRNN,
        "figure 3a",
        "40 layers of 32 units on MNIST",
        ("Deep networks on MNIST",),
    ),
    Item(SVDRNN, "figure 3b", "30 to 100 layers of 128 units on MNIST"),
    Item(
        SVDRNN,
        "figure 4",
        "adding, L = 30, 100, 300",
        otherwise="not run; another length: [Adding, T = 200](#adding-t--200)",
    ),
    Item(SVDRNN, "figure 5", "copying"),
)


def overview(results: Path) -> list[str]:
    """Returns a table of the papers' tables and figures, and what is here of each."""
    titles = ["paper", "table or figure", "shows", "here", "`reproduce.py --set`"]
    return table(titles, _rows(results))


def _rows(results: Path) -> Iterator[list[str]]:
    paper = ""
    for item in ITEMS:
        own = OWN.get(item.paper, "")
        standing = [
            *_standing("", _find(item.whole), own, results),
            *_standing("in part: ", _find(item.part), own, results),
        ]
        here = "; ".join(filter(None, [*standing, item.otherwise])) or "not run"
        sections = _find(item.whole) or _find(item.part)
        command = f"`{sections[0].set} --only {_prefix(sections)}`" if sections else ""
        first = item.paper if item.paper != paper else ""
        paper = item.paper
        yield [first, item.number, item.shows, here, command]


def _find(titles: tuple[str, ...]) -> list[Section | Comparison]:
    """Finds sections by title; a title that ends with a space is a prefix."""
    return [
        section
        for section in SECTIONS
        for title in titles
        if section.title == title
        or (title.endswith(" ") and section.title.startswith(title))
    ]


def _standing(
    before: str, sections: list[Section | Comparison], own: str, results: Path
) -> Iterator[str]:
    """Yields a link and a count of recorded runs, if the paper's own are recorded."""
    runs = [run for section in sections for run in section.runs()]
    done = [
        run
        for run in runs
        if (results / f"{run.name}.json").exists()
        or (run.table and run.name in read_table(results / run.table))
    ]
    by_model = any(isinstance(section, Section) for section in sections)
    if not done or (by_model and not any(own in run.name for run in done)):
        return
    title = next(s.title for s in sections if done[0] in s.runs())
    link = f"[{title}](#{anchor(title)})"
    count = "" if len(done) == len(runs) else f", {len(done)} of {len(runs)} runs"
    yield f"{before}{link}{count}"


def anchor(title: str) -> str:
    """Returns the anchor that GitHub gives a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _prefix(sections: list[Section | Comparison]) -> str:
    """Returns the longest common prefix of sections' names that ends at a hyphen."""
    names = [section.name for section in sections]
    first = names[0]
    while not all(name.startswith(first) for name in names):
        first = first.rpartition("-")[0]
    return first
