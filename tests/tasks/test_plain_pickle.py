import collections
import os
import pickle

import numpy as np
import pytest

from keras_ortho.tasks.plain_pickle import read_plain_pickle

PLAIN = {
    "labels": [3, 1, -7, 2**40, -(2**80), 1.5, None, True, False],
    "texts": ["a", "\u00fc", "long" * 100],
    "nested": {"tuple": (), "more": [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), []]},
}


@pytest.mark.parametrize("protocol", range(5))
def test_plain_values(protocol):
    assert read_plain_pickle(pickle.dumps(PLAIN, protocol)) == PLAIN


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays(protocol):
    array = np.arange(12, dtype="uint8").reshape(3, 4)
    content = {"data": array, "raw": b"\0\xff", "empty": np.zeros((0, 4), "uint8")}
    found = read_plain_pickle(pickle.dumps(content, protocol))
    assert found["data"].dtype == "uint8"
    np.testing.assert_array_equal(found["data"], array)
    assert found["empty"].shape == (0, 4)
    assert found["raw"] == b"\0\xff"


def test_shared_values():
    shared = [1, 2]
    found = read_plain_pickle(pickle.dumps({"a": shared, "b": shared}, 2))
    assert found["a"] is found["b"]


# What would make an array of objects over a pointer of one's choice.
POINTERS = (
    b"\x80\x02cnumpy\nndarray\n(K\x01\x85cnumpy\ndtype\nU\x02O8\x85RU\x08AAAAAAAAtR."
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (POINTERS, "must be uint8"),
        (POINTERS.replace(b"O8", b"u1"), "a call of numpy.ndarray is not allowed"),
        (pickle.dumps(os.getcwd), "getcwd is not allowed"),
        (pickle.dumps(collections.Counter("ab")), "Counter is not allowed"),
        (pickle.dumps({1, 2}, 4), "EMPTY_SET is not allowed"),
        (pickle.dumps(np.zeros(3), 4), "must be uint8, not another type 'f8'"),
        (pickle.dumps(np.zeros((2, 3), "uint8").T, 4), "in C order"),
        (pickle.dumps({(1, 2): 3}, 2), "neither text nor bytes"),
        (b"\x80\x02]q\x00h\x00a", "exhausted before"),
        (b"(.", "damaged: a name without a value"),
        (b"a.", "damaged"),
        (b"K\x01K\x02a.", "no list"),
        (b"t.", "no mark"),
        (b"h\x05.", "damaged"),
        (b"K\x01K\x02.", "2 values at its end"),
        (b".", "0 values"),
        (b"(K\x01d.", "a key without a value"),
        (b"cnumpy\ndtype\n.", "a name without a value"),
        (b"\x8e" + b"\xff" * 8 + b".", "bytes"),
        (b"T\xff\xff\xff\x7fabc.", "expected 2147483647 bytes"),
    ],
)
def test_what_is_not_plain(content, message):
    with pytest.raises(ValueError, match=message):
        read_plain_pickle(content)


def test_so_many_instructions(monkeypatch):
    monkeypatch.setattr("keras_ortho.tasks.plain_pickle.MOST_OPCODES", 100)
    assert len(read_plain_pickle(b"(" + b"N" * 97 + b"l.")) == 97
    with pytest.raises(ValueError, match="more than 100 instructions"):
        read_plain_pickle(b"(" + b"N" * 98 + b"l.")


def test_lists_of_lists_of_lists_are_no_trouble():
    """Ten levels of ten references each: ten billion items, were they looked at."""
    value = "x"
    for _ in range(10):
        value = [value] * 10
    found = read_plain_pickle(pickle.dumps({"labels": value}, 2))
    assert len(found["labels"]) == 10
    itself = []
    itself.append(itself)
    found = read_plain_pickle(pickle.dumps({"labels": itself}, 2))["labels"]
    assert found[0] is found
