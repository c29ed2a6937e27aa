"""Independent random generators."""

from itertools import combinations

import numpy as np

from keras_ortho.data_prep.demo_corpus.streams import Stream, generator


def test_same_key_same_numbers_any_other_key_other_numbers():
    keys = [
        (seed, stream, *rest)
        for seed in (0, 1)
        for stream in Stream
        for rest in ((0,), (1,), (0, 0), (0, 1), (1, 0))
    ]
    drawn = [generator(*key).standard_normal(4) for key in keys]
    for key, numbers in zip(keys, drawn, strict=True):
        np.testing.assert_array_equal(generator(*key).standard_normal(4), numbers)
    assert all(not np.array_equal(a, b) for a, b in combinations(drawn, 2))
