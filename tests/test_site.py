"""The documentation site: it builds, its links lead somewhere, nothing is missing."""

import functools
import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import keras_ortho
from tests.modules import ROOT, run_python

MISSING = [name for name in ("sphinx", "myst_nb", "furo", "bs4") if not find_spec(name)]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"of the extra docs there is no {MISSING}"
    ),
]
# What a browser loads by itself, by tag and attribute.
LOADED = {"script": "src", "link": "href", "img": "src", "source": "src"}
LOADED |= dict.fromkeys(("audio", "video", "iframe"), "src")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    options = ["-c", "docs", "-W", "--keep-going", "-q", "-d", str(folder / "read")]
    run_python("-m", "sphinx", *options, ".", folder / "html", cwd=ROOT)
    return folder / "html"


@functools.cache
def parsed(page):
    from bs4 import BeautifulSoup

    return BeautifulSoup(page.read_text("utf-8"), "html.parser")


@functools.cache
def anchors(page):
    return {tag["id"] for tag in parsed(page).find_all(id=True)}


def test_links_lead_somewhere_and_to_every_page(site):
    found, new, checked = set(), {site / "docs" / "index.html"}, 0
    while new:
        found |= new
        linked = set()
        for page in new:
            for tag in parsed(page).find_all("a", href=True):
                file, anchor = urldefrag(tag["href"])
                if urlsplit(file).scheme:
                    continue
                target = (page.parent / unquote(file)).resolve() if file else page
                assert target.is_file(), f"{page}: {tag['href']}"
                if target.suffix == ".html":
                    linked.add(target)
                    known = not anchor or unquote(anchor) in anchors(target)
                    assert known, f"{page}: {tag['href']}"
                checked += 1
        new = linked - found
    assert checked > 1000
    # Besides the page from which a browser goes on, that of search results, and a list
    # of the source.
    apart = {site / "index.html", site / "search.html", site / "_modules/index.html"}
    assert {*site.rglob("*.html")} - found <= apart


def test_what_a_page_loads_is_there_and_of_no_other_host(site):
    checked = set()
    for page in site.rglob("*.html"):
        for name, attribute in LOADED.items():
            for tag in parsed(page).find_all(name, {attribute: True}):
                shown = {"stylesheet", "icon", "preload"}
                if name == "link" and not {*tag["rel"]} & shown:
                    continue
                address = tag[attribute]
                if not address.startswith("data:"):  # The sounds of a notebook.
                    assert (page.parent / unquote(urlsplit(address).path)).is_file()
                    assert not urlsplit(address).netloc, f"{page}: {address}"
                    checked.add(Path(address).name.partition("?")[0])
    assert {"drift.png", "clean.wav", "furo.js"} <= checked
    for style in site.rglob("*.css"):
        outside = r"(url\(|@import)\s*['\"]?(https?:)?//"
        assert not re.search(outside, style.read_text("utf-8")), style


def test_notebooks_have_their_outputs(site):
    notebooks = sorted((site / "docs" / "notebooks").glob("*.html"))
    assert [page.name[:2] for page in notebooks] == ["01", "02", "03"]
    for page in notebooks:
        outputs = parsed(page).find_all(class_="cell_output")
        assert any(output.find("img") for output in outputs), page
        assert "Traceback" not in "".join(output.get_text() for output in outputs)


def test_every_public_name_is_in_the_reference(site):
    folder = site / "docs" / "api"
    text = "".join(page.read_text("utf-8") for page in folder.glob("*.html"))
    for name in keras_ortho.__all__:
        if isinstance(getattr(keras_ortho, name), type):
            assert re.search(rf'id="keras_ortho\.[\w.]*\b{name}"', text), name
