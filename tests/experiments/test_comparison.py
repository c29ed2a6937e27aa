"""The table and the figure of runs beside those on record."""

import pytest

from experiments.catalog import SECTIONS
from experiments.comparison import model_table, recorded, write_comparison
from experiments.records import add_record, run_record

(ADDING,) = (s for s in SECTIONS if s.title == "Adding, T = 200")
SETTINGS = {"task": "adding", "model": "rnn", "units": 4, "epochs": 2, "length": 200}


def made(test, *, seed=0, epochs=2, **settings):
    """The record of a run whose test figures are given, and the validated ones."""
    own = {**SETTINGS, "seed": seed, "epochs": epochs, **settings}
    return run_record(own) | {
        "figures": {"test mse there": test[-1]},
        "monitor": "loss",
        "parameters": 29,
        "updates": [10 * (i + 1) for i in range(len(test))],
        "seconds": 30.0 * epochs,
        "curves": {"val_loss": [2 * value for value in test], "test_loss": test},
    }


@pytest.fixture
def results(tmp_path):
    """The record of two models, one of other sequences."""
    folder = tmp_path / "results"
    folder.mkdir()
    for row, length in (("scornn", 200), ("lstm", 400)):
        record = made([0.5, 0.25], length=length, model=row)
        add_record(folder / ADDING.records, ADDING.run_names(row)[0], record)
    return folder


def rows(text):
    head, _, *lines = (line.strip("| ").split(" | ") for line in text.splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_stands_beside_what_has_the_same_data(tmp_path, results):
    own = [made([0.4, 0.2]), made([0.6, 0.1, 0.3], seed=1)]
    text = write_comparison(tmp_path, own, results)
    assert (tmp_path / "comparison.md").read_text() == text + "\n"
    first, second = rows(text)
    assert first["model, mse"] == "RNN (here)"
    assert first["seeds"] == "2"
    # 0.2 and 0.3.
    assert first["test"] == "0.25 ± 0.071"
    assert second["model, mse"] == "scoRNN"
    assert second["test"] == "0.25"
    assert (tmp_path / "comparison.png").stat().st_size > 1000


def test_other_settings_of_the_data_are_no_comparison(results):
    for other in ({"length": 199}, {"train_size": 50}, {"fixed_order": True}):
        assert not recorded(made([0.5], **other), results)
    assert recorded(made([0.5], fixed_order=False), results)


def test_one_run_alone_is_not_compared(tmp_path, results):
    assert write_comparison(tmp_path, [made([0.5], length=7)], results) == ""
    assert not (tmp_path / "comparison.md").exists()


def test_a_damaged_record_is_named(tmp_path, results):
    path = results / ADDING.records
    path.write_text(path.read_text()[:-9])
    with pytest.raises(ValueError, match=f"is damaged.* Received: {path}"):
        write_comparison(tmp_path, [made([0.5])], results)


def test_the_last_epoch_has_no_column_and_the_published_figure_has():
    titles, (row,) = model_table({"RNN": [made([0.5, 0.4])]}, {"RNN": "0.1"})
    assert dict(zip(titles, row, strict=True))["published"] == "0.1"
    assert not any(title.startswith("last ") for title in titles)
