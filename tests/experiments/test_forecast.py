import dataclasses

import pytest

from experiments.catalog import select
from experiments.forecast import (
    Cost,
    duration,
    planned,
    recorded,
    seconds,
    spread,
)

KNOWN = [
    Cost("adding", "scornn", 100, 200, 50, 1_000, 0.1),
    Cost("adding", "lstm", 100, 200, 50, 1_000, 0.3),
    Cost("mnist", "scornn", 100, 784, 50, 1_000, 0.5),
    Cost("ucr", "scornn", 100, 300, 50, 1_000, 9.0),
]


def test_what_a_run_is_to_do():
    runs = {run.name: run for run in select("full")}
    assert planned(runs["adding-t-200-an-epoch-scornn"]) == Cost(
        "adding", "scornn", 170, 200, 50, 2_000
    )
    mnist = planned(runs["pixel-mnist-as-long-as-the-papers-lstm-512"])
    assert mnist == Cost("mnist", "lstm", 512, 784, 50, 70 * 1_100)
    text = planned(runs["characters-of-the-penn-treebank-10-epochs-enrnn"])
    assert text == Cost("char-ptb", "enrnn", 1_030, 50, 32, 31_320)
    assert planned(runs["bnp-on-cifar-10"]) is None


def test_of_addition_both_are_known():
    settings = {"task": "addition", "model": "lstm", "units": 8, "batch_size": 32}
    found = recorded({"settings": settings, "updates": [1_406], "seconds": 3.0})
    assert found.steps == 12


def test_what_a_run_has_cost():
    settings = {"task": "copying", "model": "lstm", "units": [3, 4], "length": 100}
    record = {"settings": {**settings, "batch_size": 20}, "updates": [5, 10]}
    cost = recorded({**record, "seconds": 4.0})
    assert cost == Cost("copying", "lstm", 7, 120, 20, 10, 0.4)
    assert recorded({"settings": {"figure": "jacobians"}}) is None


def test_time_is_that_of_the_run_most_alike():
    run = Cost("adding", "scornn", 100, 200, 50, 30)
    assert seconds(run, KNOWN) == pytest.approx(30 * 0.1)
    longer = dataclasses.replace(run, steps=600, units=400)
    assert seconds(longer, KNOWN) == pytest.approx(30 * 0.1 * 3 * 2)
    other = dataclasses.replace(run, model="lstm", task="mnist")
    assert seconds(other, KNOWN) == pytest.approx(30 * 0.3)
    assert seconds(run, KNOWN[3:]) is None


def test_spread():
    """Of scoRNN both are judged by the other, 784 / 200 times as long."""
    factor = 0.1 * (784 / 200) / 0.5
    known = [KNOWN[0], KNOWN[2]]
    assert spread(known) == pytest.approx((1 / factor, 1 / factor))
    assert spread(KNOWN[:1]) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (30, "0.5 minutes"),
        (600, "10 minutes"),
        (5_000, "1.4 hours"),
        (90_000, "1.0 days"),
        (4_000_000, "46 days"),
    ],
)
def test_duration(number, text):
    assert duration(number) == text
