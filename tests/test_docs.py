"""The README and the pages of `docs/`: examples run, links lead somewhere."""

import re

import keras
import pytest

from keras_ortho.architectures import ARCHITECTURES
from tests.modules import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
OTHERS = [*ROOT.glob("*.md"), *DOCS.glob("notebooks/*.md")]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# `make test` runs the examples of these pages, CI those of all.
FIRST_READ = ("README", "start", "orthogonal")
EXAMPLES = [
    pytest.param(
        path,
        match,
        id=f"{path.relative_to(ROOT)}-{number}",
        marks=[] if path.stem in FIRST_READ else [pytest.mark.slow],
    )
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


@pytest.mark.parametrize("path", sorted({*PAGES, *OTHERS}), ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)\s]+)", path.read_text("utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.is_file(), link
        if anchor:
            text = target.read_text("utf-8").lower()
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            plain = [re.sub(r"[^\w\- ]", "", heading) for heading in headings]
            assert anchor in [heading.replace(" ", "-") for heading in plain], link


@pytest.mark.parametrize("layer", [*ARCHITECTURES, "OrthoRNN", "BNPDense", "SVDDense"])
def test_every_layer_has_a_page_with_an_example(layer):
    examples = [example.values for example in EXAMPLES]
    assert any(
        f"{layer}(" in match[1] for path, match in examples if path.stem != "README"
    )
