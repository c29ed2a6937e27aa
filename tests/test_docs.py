"""The README and the pages of `docs/`: examples run, links lead somewhere.

The sounds of the speech page are small, and as clean as it says.
"""

import re

import keras
import pytest

from keras_ortho.architectures import ARCHITECTURES
from keras_ortho.audio import read_audio
from keras_ortho.metrics import si_sdr
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


def test_sounds_and_their_scores():
    page = (DOCS / "speech.md").read_text("utf-8")
    scores = re.findall(r"\[(-?[\d.]+)\]\((sounds/[\w-]+\.wav)\)", page)
    sounds = {f"sounds/{path.name}" for path in (DOCS / "sounds").iterdir()}
    assert sounds == {*(file for _, file in scores), "sounds/clean.wav"}
    clean, _ = read_audio(DOCS / "sounds/clean.wav")
    for score, file in scores:
        assert (DOCS / file).stat().st_size < 100_000
        found = si_sdr(read_audio(DOCS / file)[0], clean)
        # The page has one digit; 16 bits, of which the clean sound takes 14, change
        # less.
        assert found == pytest.approx(float(score), abs=0.06), file
