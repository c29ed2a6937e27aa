import json

import keras
import numpy as np
import pytest

from experiments.layers import build, closest_units
from experiments.options import read_task
from tests.examples.modules import run_example


def network(layer):
    return keras.Sequential([keras.Input((7, 2)), layer, keras.layers.Dense(1)])


def settings_of(*arguments):
    return read_task("adding", "", ["--out", "none", *arguments])


def test_a_seed_gives_the_same_weights_whatever_was_built_before():
    given = "--units", "5", "--model", "rnn", "--seed", "3"
    first, _ = build(network, settings_of(*given))
    build(network, settings_of("--units", "9"))
    again, settings = build(network, settings_of(*given))
    for one, other in zip(first.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert settings.units == 5


def test_as_many_parameters_as_the_papers_network():
    """scoRNN has n (n - 1) / 2 + 4 n + 1, LSTM 4 n (n + 3) + n + 1."""
    of_scornn = 170 * 169 // 2 + 170 * 4 + 1
    model, settings = build(
        network, settings_of("--model", "lstm", "--match", "scornn")
    )
    n = settings.units
    counts = {k: 4 * k * (k + 3) + k + 1 for k in (n - 1, n, n + 1)}
    assert model.count_params() == counts[n]
    assert min(counts, key=lambda k: abs(counts[k] - of_scornn)) == n
    assert settings.source == "as many parameters as scornn with 170 units"


def test_units_of_two_kinds_keep_their_proportion():
    long, short = closest_units("enrnn", 10_000, lambda units: units[0] ** 2)
    assert (long, short) == (100, 25)


@pytest.mark.parametrize(
    ("model", "argument", "held"),
    [
        ("scornn", "heads=4", lambda units: units % 4 == 0),
        ("ornn", "reflections=60", lambda units: units >= 60),
        ("svdrnn", "reflections=(60, 8)", lambda units: units >= 60),
        ("scornn", "negative_ones=40", lambda units: units >= 40),
    ],
)
def test_arguments_that_bound_the_units(model, argument, held):
    given = "--model", model, "--argument", argument, "--match", "lstm", "--units", "9"
    made, settings = build(network, settings_of(*given))
    assert held(settings.units)
    wanted = 4 * 9 * (9 + 3) + 9 + 1
    apart = abs(made.count_params() - wanted)
    step = 4 if argument == "heads=4" else 1
    more, _ = build(
        network, settings_of(*given[:4], "--units", str(settings.units + step))
    )
    assert apart <= abs(more.count_params() - wanted)


def test_matching_without_a_papers_network_needs_units():
    with pytest.raises(ValueError, match="no paper has such settings.*'goru'"):
        settings_of("--match", "goru")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "lstm", "--argument", "bias=1"], "passed to LSTM"),
        (["--model", "lstm", "--recurrent-rate", "adam 1"], "Received: adam 1"),
        (["--unitary-rate", "adam 1"], "that scornn lacks"),
        (["--model", "enrnn"], "must be a pair"),
        (["--argument", "color=red"], "color"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_does_not_fit_the_layer_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        build(network, settings_of(*arguments))


@pytest.mark.slow
def test_the_fixed_order_is_that_of_the_task(tmp_path):
    """Of one batch an epoch there is no order: the same losses; of several another."""
    losses = {}
    for size in ("20", "400"):
        for order in ((), ("--fixed-order",)):
            out = tmp_path / f"{size}{order}"
            given = "--model", "rnn", "--train-size", size, "--evaluate-every", "100"
            run_example("adding", "--smoke", "--out", out, *given, *order)
            record = json.loads((out / "run.json").read_text())
            losses[size, bool(order)] = record["curves"]["val_loss"]
            assert record["settings"]["fixed_order"] is bool(order)
    # The rows of a batch are summed in another order.
    assert losses["20", True] == pytest.approx(losses["20", False], rel=1e-4)
    assert losses["400", True] != pytest.approx(losses["400", False], rel=1e-4)
