import itertools

import numpy as np
import pytest

from keras_ortho.tasks.buckets import bucket_boundaries, order_in_buckets

# As the utterances of TIMIT: from 1 to 8 seconds, most about 3.
LENGTHS = np.random.default_rng(0).gamma(9, 22, 100).astype(int) + 60


def orders(number=0, batch_size=8, seed=0, lengths=LENGTHS):
    order = order_in_buckets(lengths, number, batch_size=batch_size, seed=seed)
    return order.numpy()


def padding(batches):
    steps = sum(len(batch) * LENGTHS[batch].max() for batch in batches)
    return 1 - LENGTHS.sum() / steps


@pytest.mark.parametrize("batch_size", [1, 7, 8, 100, 101])
def test_each_sequence_once(batch_size):
    assert sorted(orders(batch_size=batch_size)) == list(range(100))


def test_the_sequences_of_a_batch_are_about_equally_long():
    order = orders()
    batches = np.split(order, range(8, 100, 8))
    for batch in batches:
        # Some lengths lie between those of a batch, as they are made longer by up to a
        # tenth; none lies between that is a tenth from both.
        least, most = LENGTHS[batch].min() * 1.1, LENGTHS[batch].max() / 1.1
        between = np.flatnonzero((least < LENGTHS) & (most > LENGTHS))
        assert set(between) <= set(batch)
    assert padding(batches) < 0.1
    assert padding(np.split(np.arange(100), range(8, 100, 8))) > 0.2


def test_a_pass_has_batches_and_an_order_of_its_own():
    first, second = (
        {frozenset(batch) for batch in np.split(orders(n)[:96], 12)} for n in (0, 1)
    )
    assert len(first & second) < 6
    np.testing.assert_array_equal(orders(1), orders(1))
    assert (orders(0) != orders(0, seed=1)).any()
    # In no order of their lengths.
    means = [LENGTHS[batch].mean() for batch in np.split(orders()[:96], 12)]
    assert sorted(means) != means
    assert sorted(means, reverse=True) != means


def test_what_is_left_over_comes_last():
    by_length = np.sort(LENGTHS)
    assert LENGTHS[orders()[-4:]].min() > by_length[-8] / 1.1


def test_boundaries():
    boundaries = bucket_boundaries(400)
    assert boundaries[0] == 2
    assert boundaries[-1] >= 400
    for least, following in itertools.pairwise(boundaries):
        assert least < following
        longest = following - 1
        assert longest <= max(least, 1.2 * least)
    assert bucket_boundaries(1) == [2]
