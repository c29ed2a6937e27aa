"""Tests of the accumulating metrics."""

import numpy as np
import pytest

from keras_ortho.metrics import (
    PESQ,
    SISDR,
    STOI,
    SegmentalSNR,
    UnscoredWarning,
    pesq,
    segmental_snr,
    si_sdr,
    stoi,
)

pytest.importorskip("pesq")
pytest.importorskip("pystoi")

EVALUATORS = {
    SegmentalSNR: lambda *pair: segmental_snr(*pair).segmental,
    SISDR: lambda estimate, reference, _: si_sdr(estimate, reference),
    STOI: stoi,
    PESQ: pesq,
}


@pytest.fixture(params=EVALUATORS, ids=lambda evaluator: evaluator.__name__)
def evaluator(request):
    return request.param(8000), EVALUATORS[request.param]


@pytest.fixture
def batch(speech):
    references = np.stack([speech(2, seed=seed) for seed in range(3)])
    noise = 0.03 * np.random.default_rng(9).standard_normal(references.shape)
    return references + noise, references


def test_batches_accumulate(evaluator, batch):
    metric, function = evaluator
    estimates, references = batch
    scores = [function(e, r, 8000) for e, r in zip(*batch, strict=True)]
    metric.update(estimates[:2], references[:2])
    metric.update(list(estimates[2:]), list(references[2:]))
    np.testing.assert_array_equal(metric.per_item, scores)
    assert metric.result() == pytest.approx(np.mean(scores))
    assert metric.num_unscored == 0
    least, greatest = metric.bounds
    assert least <= metric.result() <= greatest
    metric.reset()
    assert len(metric.per_item) == 0
    assert np.isnan(metric.result())


def test_padding_is_not_scored(evaluator, batch):
    metric, function = evaluator
    estimates, references = batch
    lengths = [16000, 12000, 9000]
    expected = [
        function(estimate[:length], reference[:length], 8000)
        for estimate, reference, length in zip(
            estimates, references, lengths, strict=True
        )
    ]
    metric.update(estimates, references, lengths=lengths)
    np.testing.assert_array_equal(metric.per_item, expected)


def test_what_cannot_be_scored_is_counted(evaluator, batch):
    metric, function = evaluator
    estimates, references = batch
    references = references.copy()
    references[1] = 0
    with pytest.warns(UnscoredWarning, match="silent"):
        metric.update(estimates, references)
    scores = [function(estimates[i], references[i], 8000) for i in (0, 2)]
    assert len(metric.per_item) == 3
    assert metric.num_unscored == 1
    assert metric.result() == pytest.approx(np.mean(scores))


def test_nothing_scored(evaluator):
    metric, _ = evaluator
    with pytest.warns(UnscoredWarning):
        metric.update(np.zeros((2, 8000)), np.zeros((2, 8000)))
    assert np.isnan(metric.result())
    assert metric.num_unscored == 2


def test_a_bad_batch_leaves_the_scores(evaluator, batch):
    metric, _ = evaluator
    estimates, references = batch
    metric.update(estimates, references)
    before = metric.per_item
    estimates = estimates.copy()
    estimates[2, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        metric.update(estimates, references)
    np.testing.assert_array_equal(metric.per_item, before)


@pytest.mark.parametrize(
    ("metric", "name", "unit", "bounds"),
    [
        (SegmentalSNR(), "segmental_snr", "dB", (-np.inf, np.inf)),
        (SegmentalSNR(clamp=(-10, 35)), "segmental_snr", "dB", (-10, 35)),
        (STOI(name="estoi", extended=True), "estoi", "", (-1, 1)),
        (PESQ(scale="raw"), "pesq", "MOS", (-0.5, 4.5)),
        (PESQ(16000, mode="wb"), "pesq", "MOS", (1.0, 4.65)),
    ],
)
def test_declared(metric, name, unit, bounds):
    assert metric.higher_is_better
    assert (metric.name, metric.unit, metric.bounds) == (name, unit, bounds)


def test_options_reach_the_functions(batch):
    estimates, references = batch
    for metric, expected in [
        (
            SegmentalSNR(activity="all"),
            segmental_snr(estimates[0], references[0], 8000, activity="all").segmental,
        ),
        (STOI(extended=True), stoi(estimates[0], references[0], 8000, extended=True)),
        (PESQ(scale="raw"), pesq(estimates[0], references[0], 8000, scale="raw")),
    ]:
        metric.update(estimates[:1], references[:1])
        # ESTOI adds noise of 1e-16 to its inputs.
        assert metric.result() == pytest.approx(expected, abs=1e-9)


def test_pesq_bounds_hold_for_the_best(batch):
    _, references = batch
    metric = PESQ()
    metric.update(references, references)
    # The C code works in single precision.
    assert metric.result() == pytest.approx(metric.bounds[1], abs=1e-5)


def test_bad_options_fail_at_once():
    with pytest.raises(ValueError, match="At 8 kHz only"):
        PESQ(8000, mode="wb")
    with pytest.raises(ValueError, match="`activity`"):
        SegmentalSNR(8000, activity="vad")
