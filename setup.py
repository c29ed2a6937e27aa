"""The description of the package on an index: the README, with links from anywhere."""

import configparser
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
LINK = re.compile(r"(!\[[^]\[]*)?\]\((?!https?:)([^)\s]+)\)")


def described(readme: str, source: str, version: str) -> str:
    """Makes the links of the README those of a release on the code host."""

    def absolute(link: re.Match[str]) -> str:
        picture, path = link.groups()
        view = "raw" if picture else "blob"
        path = f"README.md{path}" if path.startswith("#") else path
        return f"{picture or ''}]({source}/{view}/v{version}/{path})"

    return LINK.sub(absolute, readme)


def long_description() -> str:
    """Gives the text, with the version and the code host that are set elsewhere."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    urls = settings["metadata"]["project_urls"].strip().splitlines()
    source = dict(re.split(r"\s*=\s*", url) for url in urls)["Source"]
    version = (ROOT / "keras_ortho/version.py").read_text("utf-8").split('"')[-2]
    return described((ROOT / "README.md").read_text("utf-8"), source, version)


if __name__ == "__main__":
    if not (ROOT / "keras_ortho/data_prep").is_dir():
        # pip would install a package without it, and say nothing.
        raise SystemExit(
            "keras_ortho/data_prep must be a link to data_prep, and this copy has "
            "lost it, as zip files do: install from a clone or a .tar.gz."
        )
    setup(long_description=long_description())
