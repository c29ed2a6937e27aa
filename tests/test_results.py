"""What the documents say of results is what the records say."""

import re
from pathlib import Path

import pytest

from experiments import report

ROOT = Path(__file__).resolve().parent.parent


def test_the_report_is_that_of_the_records(tmp_path, monkeypatch):
    """`python examples/reproduce.py --report` writes it anew."""
    monkeypatch.setattr(report, "draw", lambda *args, **kwargs: None)
    (tmp_path / "results").symlink_to(ROOT / "results")
    report.write_report(tmp_path)
    written = (tmp_path / "RESULTS.md").read_text("utf-8")
    assert written == (ROOT / "RESULTS.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("timit-sample-three-divisions-of-its-speakers", "README.md"),
        ("denoising-timit-sample", "README.md"),
        ("denoising-timit-sample", "docs/denoising.md"),
    ],
)
def test_tables_are_those_of_the_records(name, page):
    lines = (ROOT / page).read_text("utf-8").splitlines()
    first, *_ = (ROOT / f"results/{name}-results.md").read_text("utf-8").split("\n\n")
    head, _, *rows = first.splitlines()
    places = [i for i, line in enumerate(lines) if line == head]
    assert rows in [lines[i + 2 : i + 2 + len(rows)] for i in places]


def test_commits_that_the_readme_names_are_those_of_records():
    text = (ROOT / "README.md").read_text("utf-8")
    commits = re.findall(r"Seeds? 0[0-9a-z ]*, commit (\w+)", text)
    assert len(commits) == 2
    records = " ".join(
        path.read_text("utf-8")
        for path in (ROOT / "results").glob("*.json")
        if path.stem
        in ("timit-sample-three-divisions-of-its-speakers", "denoising-timit-sample")
    )
    for commit in commits:
        assert f'"commit": "{commit}"' in records
