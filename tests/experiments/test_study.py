"""The study of the defaults: its runs, its rows and its tables."""

import pytest

from experiments.options import read_task
from experiments.study import (
    BASELINES,
    MODELS,
    PROBLEMS,
    SETTINGS,
    WIDE,
    Trial,
    finals,
    screen,
)
from experiments.study_tables import add_row, outcome, read_rows, write_tables
from keras_ortho import ScoRNN, ScoRNNCell, initializers

KERNEL = "kernel_initializer"

RECORD = {
    "updates": [20, 40, 60],
    "curves": {"val_loss": [0.06, 0.04, 0.002]},
    "seconds": 3.0,
    "commit": "abc",
}


def settings_of(trial):
    run = trial.run()
    data = ["--data-dir", "data"] if run.data else []
    task = run.script.replace("_", "-")
    return read_task(task, "", ["--out", "out", *run.arguments, *data])


@pytest.mark.slow
def test_every_trial_of_the_screen_can_be_run():
    assert {trial.model for trial in screen()} == MODELS.keys()
    assert {trial.seed for trial in finals()} == {0, 1, 2}
    trials = list({*screen(), *finals()})
    assert len({trial.name for trial in trials}) == len(trials)
    # Of a model and a setting one, and one of each problem.
    some = {(trial.model, trial.setting): trial for trial in trials}
    some |= {trial.problem: trial for trial in trials}
    for trial in some.values():
        settings = settings_of(trial)
        assert settings.model == trial.model
        units = (256,) if trial.setting == WIDE else (128, 64, (102, 26))
        assert settings.units in units


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_problem_can_be_run(problem):
    assert settings_of(Trial(problem, "scornn", "common", 1)).seed == 1


def test_what_a_setting_says():
    common = settings_of(Trial("copying-200", "scornn", "common", 0))
    assert common.rates == {"others": "adam 1e-3", "recurrent": "adam 1e-3"}
    assert common.arguments == {"kernel_initializer": "glorot_uniform"}
    paper = settings_of(
        Trial("copying-200", "scornn", "two optimizers, small kernel", 0)
    )
    assert paper.rates == {"others": "adam 1e-3", "recurrent": "rmsprop 1e-4"}
    assert paper.arguments == dict(ScoRNNCell.paper_arguments)
    default = type(ScoRNN(8).kernel_initializer).__name__
    assert default == type(initializers.get(common.arguments[KERNEL])).__name__
    rebased = settings_of(Trial("copying-200", "scurnn", "rebased", 0))
    assert rebased.arguments["rebase_every"] == 100
    sorting = settings_of(Trial("addition-3", "scornn", WIDE, 0))
    assert sorting.arguments == {**common.arguments, "activation": "oplu"}
    for model in BASELINES:  # Of which only the optimizer is varied.
        clipped = settings_of(Trial("adding-200", model, "clipped", 0))
        assert clipped.rates == {"others": "adam 1e-3 clipnorm 1"}
        assert clipped.arguments == {}


def test_the_setting_of_the_papers_is_one():
    assert SETTINGS["two optimizers, small kernel"] == {
        "recurrent-rate": "rmsprop 1e-4",
        "kernel_initializer": "small_uniform",
    }


def test_outcomes():
    trial = Trial("copying-200", "scornn", "common", 0)
    found = outcome(trial, RECORD)
    # Half of what no memory costs is 0.0473, a tenth 0.0095.
    assert (found["first"], found["second"]) == (40, 60)
    assert (found["best"], found["last"], found["updates"]) == (0.002, 0.002, 60)
    assert found["milliseconds"] == 50
    never = outcome(trial, RECORD | {"curves": {"val_loss": [0.1, 0.09, 0.095]}})
    assert (never["first"], never["second"]) == (None, None)
    assert (never["best"], never["last"]) == (0.09, 0.095)


def test_rows_are_kept_and_tabulated(tmp_path):
    path = tmp_path / "defaults.csv"
    assert read_rows(path) == {}
    slow = RECORD | {"curves": {"val_loss": [0.06, 0.06, 0.05]}}
    add_row(path, outcome(Trial("copying-200", "scornn", "common", 0), RECORD))
    write_tables(tmp_path / "defaults.md", read_rows(path))
    assert "several seeds" not in (tmp_path / "defaults.md").read_text()
    for seed, record in enumerate((RECORD, slow), 1):
        trial = Trial("copying-200", "scornn", "common", seed)
        add_row(path, outcome(trial, record))
    other = Trial("copying-200", "lstm", "common", 0)
    add_row(path, outcome(other, slow))
    rows = read_rows(path)
    assert len(rows) == 4
    assert next(iter(rows)) == other  # In the order of their names.
    assert rows[trial]["first"] == ""
    write_tables(tmp_path / "defaults.md", rows)
    text = (tmp_path / "defaults.md").read_text()
    # Of three seeds one did not reach it: then the median of the last figures.
    assert "| common | (0.002) | (0.05) |" in text
    assert "| setting | scornn | lstm |" in text
    row = "| scornn | common | 3 | 2 of 3 | 2 of 3 | 0.002 (0.002 to 0.05) |"
    assert text.count("several seeds") == text.count(row) == 1
    for seed, record in enumerate((RECORD, RECORD, slow)):
        add_row(path, outcome(Trial("copying-300", "scornn", "common", seed), record))
    write_tables(tmp_path / "defaults.md", read_rows(path))
    text = (tmp_path / "defaults.md").read_text()
    # Half of what no memory costs is 0.0325, a tenth 0.0065.
    assert text.count("several seeds") == text.count(row) == 2


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "{head}\ncopying-200,scornn\n"])
def test_a_damaged_table(content, tmp_path):
    path = tmp_path / "defaults.csv"
    add_row(path, outcome(Trial("copying-200", "scornn", "common", 0), RECORD))
    path.write_text(content.format(head=path.read_text().splitlines()[0]))
    with pytest.raises(ValueError, match=r"defaults.csv is damaged: .* Received: \{"):
        read_rows(path)


def test_a_table_of_somebody_else_is_not_replaced(tmp_path):
    path = tmp_path / "defaults.md"
    path.write_text("mine")
    with pytest.raises(ValueError, match="defaults.md must be .* Received: "):
        write_tables(path, {})
    assert path.read_text() == "mine"
