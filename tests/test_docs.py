"""The pages of `docs/`: their examples run, their links lead somewhere."""

import re
from pathlib import Path

import keras
import pytest

import keras_ortho

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(path, match, id=f"{path.name}-{number}")
    for path in PAGES
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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_page_has_an_example(path):
    text = path.read_text("utf-8")
    assert BLOCK.search(text)
    # None that the pattern above would overlook.
    assert len(BLOCK.findall(text)) == len(re.findall(r"```\s*py", text))


@pytest.mark.parametrize(
    "path", PAGES + sorted(DOCS.parent.glob("*.md")), ids=lambda path: path.name
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


def test_every_layer_is_compared():
    text = (DOCS / "README.md").read_text("utf-8")
    bases = (keras_ortho.RecurrentLayer,)
    layers = [
        name
        for name, value in vars(keras_ortho).items()
        if isinstance(value, type) and issubclass(value, bases) and value not in bases
    ]
    assert "ScoRNN" in layers
    for name in [*layers, "BNPDense", "SVDDense"]:
        assert f"`{name}`" in text, name


def test_every_page_is_linked():
    text = (DOCS / "README.md").read_text("utf-8")
    for path in PAGES:
        assert path.name == "README.md" or f"({path.name})" in text, path.name
