"""The README and the pages of `docs/`: examples run, links lead somewhere."""

import re
from pathlib import Path

import keras
import pytest

from experiments.layers import LAYERS, make_layer, trial_units
from keras_ortho.architectures import ARCHITECTURES

DOCS = Path(__file__).resolve().parent.parent / "docs"
README = DOCS.parent / "README.md"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# `make test` runs the examples of these pages, CI those of all.
FIRST_READ = ("README", "start", "scornn")
EXAMPLES = [
    pytest.param(
        path,
        match,
        id=f"{path.relative_to(DOCS.parent)}-{number}",
        marks=[] if path.stem in FIRST_READ else [pytest.mark.slow],
    )
    for path in [README, *PAGES]
    for number, match in enumerate(BLOCK.finditer(path.read_text("utf-8")))
]


@pytest.mark.parametrize(("path", "match"), EXAMPLES)
def test_examples_run(path, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Some write a file.
    keras.utils.set_random_seed(0)
    line = path.read_text("utf-8").count("\n", 0, match.start(1))
    # Lines of the page, in case of an error.
    code = compile("\n" * line + match[1], str(path), "exec")
    exec(code, {"__name__": "__main__"})


@pytest.mark.parametrize(
    "path", [README, *PAGES], ids=lambda path: str(path.relative_to(DOCS.parent))
)
def test_every_page_has_an_example(path):
    text = path.read_text("utf-8")
    assert BLOCK.search(text)
    # None that the pattern above would overlook.
    assert len(BLOCK.findall(text)) == len(re.findall(r"```\s*py", text))


@pytest.mark.parametrize(
    "path",
    [*PAGES, *sorted(DOCS.parent.glob("*.md")), *sorted(DOCS.glob("notebooks/*.md"))],
    ids=lambda path: path.name,
)
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)\s]+)", path.read_text("utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def anchors(path):
    """What a link to a heading of a page ends with."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


INDEX = (DOCS / "README.md").read_text("utf-8")
NOT_COMPARED = [name for name in ARCHITECTURES if f"`{name}`" not in INDEX]


@pytest.mark.parametrize("layer", [*ARCHITECTURES, "OrthoRNN", "BNPDense", "SVDDense"])
def test_every_layer_has_a_page_with_an_example(layer):
    pages = [path.read_text("utf-8") for path in PAGES if path.name != "README.md"]
    blocks = [block for page in pages for block in BLOCK.findall(page)]
    assert any(re.search(rf"\b{layer}\(", block) for block in blocks)


def test_every_layer_has_a_picture_of_its_eigenvalues():
    text = "".join(path.read_text("utf-8") for path in PAGES)
    for layer in {*ARCHITECTURES} - {*NOT_COMPARED}:
        assert f"](spectra/{layer.lower()}-eigenvalues.png)" in text


def test_every_layer_that_has_been_run_is_compared():
    results = DOCS.parent / "results"
    run = {
        type(make_layer(model, trial_units(model))).__name__
        for model in LAYERS
        if list(results.glob(f"adding-t-200-{model}*"))
    }
    assert {"ScoRNN", "AntisymmetricRNN", "RestrictedURNN"} <= run
    assert not run & {*NOT_COMPARED}
    for name in ("BNPDense", "SVDDense"):
        assert f"`{name}`" in INDEX


def test_the_readme_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 120


def test_every_page_is_linked():
    """But that of a layer which is still to be run."""
    for path in PAGES:
        linked = path.name == "README.md" or f"({path.name})" in INDEX
        text = path.read_text("utf-8")
        assert linked or any(f"{name}(" in text for name in NOT_COMPARED), path.name
