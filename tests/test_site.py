"""The documentation site: it builds, its links lead somewhere, nothing is missing."""

import functools
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import keras_ortho
from tests.modules import run_python

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("sphinx", "myst_nb", "furo", "bs4")
MISSING = [name for name in NEEDED if find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"of the extra docs there is no {MISSING}"
    ),
]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
# What a browser loads by itself, by tag and attribute.
LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "source": "src",
    "audio": "src",
    "video": "src",
    "iframe": "src",
}


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


def pages(site):
    found = sorted(site.rglob("*.html"))
    assert site / "docs" / "scornn.html" in found
    assert site / "RESULTS.html" in found
    return found


@functools.cache
def anchors(page):
    return {tag["id"] for tag in parsed(page).find_all(id=True)}


def loaded(page):
    """The addresses that a browser asks for when it shows a page."""
    for name, attribute in LOADED.items():
        for tag in parsed(page).find_all(name):
            if name != "link" or {*tag["rel"]} & {"stylesheet", "icon", "preload"}:
                yield tag.get(attribute)


def test_links_lead_somewhere(site):
    checked = 0
    for page in pages(site):
        addresses = {tag["href"] for tag in parsed(page).find_all("a", href=True)}
        for address in addresses:
            file, anchor = urldefrag(address)
            if urlsplit(file).scheme:
                continue
            target = (page.parent / unquote(file)).resolve() if file else page
            assert target.is_file(), f"{page}: {address}"
            if anchor and target.suffix == ".html":
                assert unquote(anchor) in anchors(target), f"{page}: {address}"
            checked += 1
    assert checked > 1000


def test_every_page_can_be_reached(site):
    found, new = set(), {site / "docs" / "index.html"}
    while new:
        found |= new
        addresses = [
            (page, urldefrag(tag["href"])[0])
            for page in new
            for tag in parsed(page).find_all("a", href=True)
        ]
        linked = {
            (page.parent / unquote(file)).resolve()
            for page, file in addresses
            if file.endswith(".html") and not urlsplit(file).scheme
        }
        new = linked - found
    # Besides the page from which a browser goes on, that of search results, and a list
    # of the source.
    apart = {site / "index.html", site / "search.html", site / "_modules/index.html"}
    assert {*pages(site)} - found <= apart


def test_pictures_scripts_and_styles_are_there(site):
    checked = set()
    for page in pages(site):
        for address in filter(None, loaded(page)):
            if address.startswith("data:"):  # The sounds of a notebook.
                continue
            file = unquote(urlsplit(address).path)
            assert (page.parent / file).is_file(), f"{page}: {address}"
            checked.add(Path(file).name)
    assert {"drift.png", "adding-t-200.png", "clean.wav", "furo.js"} <= checked
    for style in site.rglob("*.css"):
        for address in re.findall(r"url\(['\"]?([^)'\"]+)", style.read_text("utf-8")):
            file = unquote(urlsplit(address).path)
            assert address.startswith("data:") or (style.parent / file).is_file()


def test_pictures_have_words_for_those_who_cannot_see_them(site):
    for page in pages(site):
        for picture in parsed(page).find_all("img"):
            assert picture.get("alt"), f"{page}: {picture}"
            # Without any, Sphinx gives the address.
            assert not picture["alt"].endswith(".png"), f"{page}: {picture}"


def test_sounds_have_players(site):
    page = parsed(site / "docs" / "denoising.html")
    players = page.find_all("audio", controls=True)
    assert len(players) == len(list((ROOT / "docs" / "sounds").glob("*.wav")))
    # Each with its link, for a browser that plays no such file.
    links = {link["href"] for link in page.find_all("a", href=True)}
    assert {player["src"] for player in players} <= links


def test_asks_no_other_host(site):
    for page in pages(site):
        for address in filter(None, loaded(page)):
            parts = urlsplit(address)
            assert parts.scheme in ("", "data"), f"{page}: {address}"
            assert not parts.netloc, f"{page}: {address}"
    styles = sorted(site.rglob("*.css"))
    assert styles
    for style in styles:
        assert not re.search(
            r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text("utf-8")
        ), style


def test_notebooks_have_their_outputs(site):
    notebooks = sorted((site / "docs" / "notebooks").glob("*.html"))
    assert [page.name[:2] for page in notebooks] == ["01", "02", "03"]
    for page in notebooks:
        outputs = parsed(page).find_all(class_="cell_output")
        assert any(output.find("img") for output in outputs), page
        assert "Traceback" not in "".join(output.get_text() for output in outputs)
        assert parsed(page).find("a", href=re.compile(r"\.ipynb$")), page
    assert len(parsed(notebooks[-1]).find_all("audio")) == 3


def test_equations_are_drawn_without_a_script(site):
    assert parsed(site / "docs" / "scornn.html").find("math")
    for page in pages(site):
        assert not parsed(page).find(class_="math"), page


@pytest.mark.skipif(BROWSER is None, reason=f"there is none of {BROWSERS}")
@pytest.mark.parametrize(
    "page",
    [
        "docs/index.html",
        "docs/scornn.html",
        "docs/denoising.html",
        "docs/notebooks/03_denoise_and_deploy.html",
        "docs/api/layers.html",
        "RESULTS.html",
        "search.html",
    ],
)
def test_a_browser_shows_it_without_complaint(page, site, tmp_path):
    """Nothing on the console, and nothing that makes a narrow window scroll sideways.

    What is wide by nature scrolls by itself.
    """
    text = (site / page).read_text("utf-8")
    width = "document.documentElement.scrollWidth"
    measured = f"document.title = {width} <= innerWidth ? 'fits' : 'too wide'"
    script = f"<script>addEventListener('load', () => {{{measured}}})</script>"
    probe = (site / page).with_name(f"probe-{Path(page).name}")
    probe.write_text(text.replace("</body>", f"{script}</body>"), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=500,900"]
    options += ["--disable-background-networking", f"--user-data-dir={tmp_path}"]
    options += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]
    try:
        shown = subprocess.run(
            [BROWSER, *options, probe.as_uri()],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
    finally:
        probe.unlink()
    assert "<title>fits</title>" in shown.stdout
    assert "CONSOLE" not in shown.stderr


def public_names():
    """The modules with public names, and those."""
    modules = {"keras_ortho": keras_ortho.__all__}
    for _, name, is_package in pkgutil.iter_modules(keras_ortho.__path__):
        full = f"keras_ortho.{name}"
        named = getattr(importlib.import_module(full), "__all__", None)
        if is_package and named and name != "backend":
            modules[full] = named
        elif name in keras_ortho.__all__ and named is None:
            members = vars(importlib.import_module(full)).items()
            modules[full] = [
                member
                for member, value in members
                if getattr(value, "__module__", None) == full
                and not member.startswith("_")
            ]
    assert {"keras_ortho.cells", "keras_ortho.losses"} <= modules.keys()
    return modules


def test_every_public_name_is_in_the_reference_with_its_source(site):
    signatures = {
        tag["id"]: tag
        for page in sorted((site / "docs" / "api").glob("*.html"))
        for tag in parsed(page).find_all("dt", class_="sig", id=True)
    }
    modules = public_names()
    described = {
        name: getattr(sys.modules[module], own)
        for name in signatures
        for module, _, own in [name.rpartition(".")]
        if module in sys.modules
    }
    for module, names in modules.items():
        for name in names:
            value = getattr(importlib.import_module(module), name)
            if inspect.ismodule(value) or name == "__version__":
                continue
            # An object that can be called has no source to link to, either.
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                assert f"{module}.{name}" in signatures
                continue
            # Some have a name of the package besides that of their module.
            found = [other for other in described if described[other] is value]
            assert found, f"{module}.{name}"
            source = signatures[found[0]].find("a", href=re.compile("_modules/"))
            assert source, f"{module}.{name}"
