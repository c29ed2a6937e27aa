"""Command lines of the examples that are refused before anything is written."""

import pytest

from tests.examples.modules import run_example

REFUSED = [
    ("adding", "--smoke --preset paper", "exclude each other. Received: both"),
    ("adding", "--model goru --preset paper", "no paper has such settings"),
    ("adding", "--argument negative_ones", "NAME=VALUE"),
    ("adding", "--epochs 0", "--epochs must be positive. Received: 0"),
    ("adding", "--seed -1", "--seed must be in 0 .. 4294967295. Received: -1"),
    ("adding", "--units 0", "must be a positive number"),
    ("adding", "--epochs 1 --steps 1", "not allowed with"),
    ("adding", "--rate fast", "--rate: `rule`"),
    ("adding", "--recurrent-rate adam", "--recurrent-rate: `rule`"),
    ("adding", "--seeds 0", "--seeds must be positive. Received: 0"),
    ("adding", "--seeds 2 --jobs 0", "--jobs must be positive. Received: 0"),
    ("bnp", "--smoke --data-dir x", "omit --data-dir. Received: x"),
    ("bnp", "--models cnn", "invalid choice"),
    ("bnp", "--data-dir /nowhere", "/nowhere"),
    ("char_ptb", "", "--data-dir must be given"),
    ("char_ptb", "--data-dir /nowhere", "LDC99T42"),
    ("char_ptb", "--data-dir x --unroll 0", "--unroll must be positive"),
    ("deep_mlp", "--layers 40 0", "--layers must be positive. Received: 0"),
    ("deep_mlp", "--data-dir /nowhere", "/nowhere"),
    ("denoise", "--epochs 0", "--epochs must be positive. Received: 0"),
    ("denoise", "--seeds -1", "--seeds must be positive. Received: -1"),
    ("timit", "", "Give --records or --smoke"),
    ("timit", "--smoke --models transformer", "must be one of"),
    ("timit", "--smoke --epochs 0", "--epochs must be positive. Received: 0"),
    ("timit", "--smoke --best-by loss", "invalid choice: 'loss'"),
    ("timit", "--smoke --units 12 3", "--units must be one number"),
    ("timit", "--records /nowhere", "/nowhere"),
    ("timit", "--records x --preset paper --units 224", "one size for each of"),
    ("timit", "--records x --preset paper --units 225 84", "225"),
    ("timit", "--records x --preset paper --raw", "not allowed with"),
    ("timit_splits", "--corpus . --splits 0", "--splits must be positive. Received: 0"),
    ("timit_splits", "--corpus . --seeds -1", "--seeds must be positive. Received: -1"),
]


@pytest.mark.parametrize(("example", "options", "message"), REFUSED)
def test_nothing_is_written(example, options, message, tmp_path, capsys):
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as exit:
        run_example(example, "--out", out, *options.split())
    assert exit.value.code == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
