import numpy as np
import pytest

from keras_ortho.tasks.ucr import NAMES_2018, load, step_width


def arrays(dataset):
    return [np.concatenate(parts) for parts in zip(*dataset, strict=True)]


def write(folder, name="Some", labels=(1, 2, 3)):
    """Writes 23 series to train on and 9 for the test; each begins with its number."""
    folder.mkdir(exist_ok=True, parents=True)
    written = []
    for part, size in (("TRAIN", 23), ("TEST", 9)):
        values = np.random.default_rng(0).normal(size=(size, 12)).astype("float32")
        values[:, 0] = np.arange(size)
        rows = np.column_stack([np.resize(labels, size), values.astype(float)])
        np.savetxt(folder / f"{name}_{part}.tsv", rows, "%.9g", delimiter="\t")
        written.append(values)
    return written


def test_steps_are_those_of_table_3_of_the_paper():
    depths = {176: 16, 251: 251, 470: 47, 512: 32, 286: 22, 136: 17, 24: 6}
    for length, depth in depths.items():
        assert divmod(length, step_width(length)) == (depth, 0)


@pytest.mark.parametrize("swap", [False, True])
def test_parts_and_classes(tmp_path, swap):
    labels, expected = [10, 9, -2], [2, 1, 0]  # As numbers, not as texts.
    train, test = write(tmp_path, labels=labels)[:: -1 if swap else 1]
    task = load("Some", tmp_path, batch_size=4, swap=swap)
    parts = [arrays(data) for data in (task.valid, task.train, task.test)]
    count = 2 if swap else 5  # A fifth of 9 or 23.
    assert [len(x) for x, _ in parts] == [count, len(train) - count, len(test)]
    seen = []
    for (x, y), rows in zip(parts, (train, train, test), strict=True):
        assert x.shape[1:] == (4, 3)
        assert (x.dtype, y.dtype) == ("float32", "int32")
        which = x[:, 0, 0].astype(int)
        np.testing.assert_array_equal(x.reshape(len(x), 12), rows[which])
        assert y.tolist() == [expected[number % len(labels)] for number in which]
        seen.append(which.tolist())
    assert sorted(seen[0] + seen[1]) == list(range(len(train)))
    assert seen[2] == list(range(len(test)))
    assert task.num_classes == len(labels)


def test_the_seed_fixes_validation_and_order(tmp_path):
    write(tmp_path)

    def numbers(dataset):
        return arrays(dataset)[0][:, 0, 0].tolist()

    task, again = load("Some", tmp_path), load("Some", tmp_path, width=2)
    first, second = numbers(task.train), numbers(task.train)
    assert first != second
    assert [numbers(again.train), numbers(again.train)] == [first, second]
    assert numbers(again.valid) == numbers(task.valid)
    assert again.valid.element_spec[0].shape[1:] == (6, 2)
    assert numbers(load("Some", tmp_path, seed=1).valid) != numbers(task.valid)


@pytest.mark.parametrize("names", list(NAMES_2018.items())[:2])
def test_names_of_both_editions_and_places(tmp_path, names):
    for stored in names:
        write(tmp_path / stored / stored, stored)
        for name in names:
            for folder in (tmp_path / stored, tmp_path / stored / stored):
                assert load(name, folder).num_classes == 3
