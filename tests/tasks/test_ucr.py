import numpy as np
import pytest

from keras_ortho.tasks.ucr import NAMES_2018, load, read_series, step_width


def arrays(dataset):
    return [np.concatenate(parts) for parts in zip(*dataset, strict=True)]


def write(folder, name="Some", train=23, test=9, length=12, labels="123"):
    """Writes a data set; the first value of a series is its number."""
    folder.mkdir(exist_ok=True, parents=True)
    random = np.random.default_rng(0)
    for part, size in (("TRAIN", train), ("TEST", test)):
        rows = np.round(random.standard_normal((size, length)), 3).astype("float32")
        rows[:, 0] = np.arange(size)
        lines = [
            "\t".join([labels[i % len(labels)], *(repr(float(v)) for v in row)])
            for i, row in enumerate(rows)
        ]
        (folder / f"{name}_{part}.tsv").write_text("\n".join(lines))
        yield rows


@pytest.mark.parametrize(
    ("length", "depth"),
    # Table 3 of the svdRNN paper, but for 50words.
    [
        *[(176, 16), (251, 251), (470, 47), (512, 32), (128, 16), (286, 22), (300, 20)],
        *[(80, 10), (96, 12), (140, 14), (136, 17), (131, 131), (350, 25), (150, 15)],
        *[(256, 16), (24, 6), (637, 49), (1, 1), (2, 2), (9, 3)],
    ],
)
def test_steps_are_those_of_the_paper(length, depth):
    assert length // step_width(length) == depth
    assert length % step_width(length) == 0


def test_parts(tmp_path):
    train, test = write(tmp_path)
    task = load("Some", tmp_path, batch_size=4)
    assert task.num_classes == 3
    valid_x, valid_y = arrays(task.valid)
    train_x, train_y = arrays(task.train)
    test_x, test_y = arrays(task.test)
    assert len(valid_x) == 5  # a fifth of 23
    assert [len(y) for _, y in task.train] == [4] * 4 + [2]
    assert train_x.shape == (18, 4, 3)
    assert train_x.dtype == "float32"
    assert train_y.dtype == "int32"
    numbers = np.concatenate([train_x, valid_x])[:, 0, 0].astype(int)
    assert sorted(numbers) == list(range(23))
    for x, y in ((train_x, train_y), (valid_x, valid_y)):
        which = x[:, 0, 0].astype(int)
        np.testing.assert_array_equal(x.reshape(len(x), 12), train[which])
        np.testing.assert_array_equal(y, which % 3)
    np.testing.assert_array_equal(test_x.reshape(9, 12), test)
    np.testing.assert_array_equal(test_y, np.arange(9) % 3)


def numbers(dataset):
    return arrays(dataset)[0][:, 0, 0].tolist()


def test_the_seed_fixes_validation_and_order(tmp_path):
    list(write(tmp_path))
    task = load("Some", tmp_path)
    first, second = numbers(task.train), numbers(task.train)
    assert first != second
    assert sorted(first) == sorted(second)
    again = load("Some", tmp_path)
    assert [numbers(again.train), numbers(again.train)] == [first, second]
    assert numbers(again.valid) == numbers(task.valid)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["-1", "1"], [0, 1]),
        (["10", "9", "2"], [2, 1, 0]),  # as numbers, not as texts
        (["0", "1"], [0, 1]),
    ],
)
def test_classes_are_numbered_in_order(tmp_path, labels, expected):
    list(write(tmp_path, train=12, labels=labels))
    task = load("Some", tmp_path)
    x, y = arrays(task.train)
    which = x[:, 0, 0].astype(int)
    assert y.tolist() == [expected[number % len(labels)] for number in which]
    assert task.num_classes == len(labels)


def test_width(tmp_path):
    list(write(tmp_path))
    x, _ = arrays(load("Some", tmp_path, width=2).test)
    assert x.shape == (9, 6, 2)


def test_swap(tmp_path):
    train, test = write(tmp_path)
    task = load("Some", tmp_path, swap=True)
    x, _ = arrays(task.test)
    np.testing.assert_array_equal(x.reshape(23, 12), train)
    assert len(arrays(task.train)[0]) + len(arrays(task.valid)[0]) == len(test)


@pytest.mark.parametrize("names", NAMES_2018.items())
def test_names_of_both_editions_and_places(tmp_path, names):
    for stored in names:
        list(write(tmp_path / stored / stored, stored))
        for name in names:
            for folder in (tmp_path / stored, tmp_path / stored / stored):
                assert load(name, folder).num_classes == 3


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n\n"])
def test_the_format(tmp_path, newline):
    path = tmp_path / "Two_TRAIN.tsv"
    lines = ["1\t0.5\t-1.5\t2", "-1\t 1e-3\t0\t7.123456789", ""]
    path.write_bytes(newline.join(lines).encode())
    labels, values = read_series(path)
    assert labels.tolist() == [1, -1]
    assert values.dtype == "float32"
    expected = np.array([[0.5, -1.5, 2], [1e-3, 0, 7.123456789]], "float32")
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\t2\t3\n1\t2\n", "row 2"),
        ("1\t2\t3\n1\t2\tNaN\n", "series 2 has missing values"),
        ("NaN\t2\t3\n", "series 1 has missing values"),
        ("1\t2\t\n", "''"),
        ("\t2\t3\n", "''"),
        ("1\t2\tinf\n", "series 1"),
        ("1\t2\t1e39\n", "overflow"),
        ("1\t2\tx\n", "'x'"),
        ("1\t2_0\n", "'2_0'"),
        ("1,2,3\n", "'1,2,3'"),
        ("1\n", "a label and values"),
        ("", "no data"),
        ("# 1\t2\n", "'# 1'"),
    ],
)
def test_damaged_files_are_named(tmp_path, text, message):
    path = tmp_path / "Bad_TRAIN.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"Received: {path}: .*{message}"):
        read_series(path)


# Table 3 of the svdRNN paper: name, training and test series, length, classes. The
# first series of ECG5000's test file is missing in the copy at hand.
SIZES = [
    ("FiftyWords", 450, 455, 270, 50),
    ("Adiac", 390, 391, 176, 37),
    ("ArrowHead", 36, 175, 251, 3),
    ("Beef", 30, 30, 470, 5),
    ("BeetleFly", 20, 20, 512, 2),
    ("CBF", 30, 900, 128, 3),
    ("Coffee", 28, 28, 286, 2),
    ("CricketX", 390, 390, 300, 12),
    ("DistalPhalanxOutlineCorrect", 600, 276, 80, 2),
    ("DistalPhalanxTW", 400, 139, 80, 6),
    ("ECG200", 100, 100, 96, 2),
    ("ECGFiveDays", 23, 861, 136, 2),
    ("FaceAll", 560, 1690, 131, 14),
    ("FaceFour", 24, 88, 350, 4),
    ("FacesUCR", 200, 2050, 131, 14),
    ("GunPoint", 50, 150, 150, 2),
    ("InsectWingbeatSound", 220, 1980, 256, 11),
    ("ItalyPowerDemand", 67, 1029, 24, 2),
    ("Lightning2", 60, 61, 637, 2),
    ("MiddlePhalanxOutlineCorrect", 600, 291, 80, 2),
]


@pytest.mark.parametrize(("name", "train", "test", "length", "classes"), SIZES)
def test_the_files_of_the_archive(data_dir, name, train, test, length, classes):
    folder = data_dir / "ucr" / name
    for part, size in (("TRAIN", train), ("TEST", test)):
        labels, values = read_series(folder / f"{name}_{part}.tsv")
        assert values.shape == (size, length)
        assert len(set(labels)) == classes
        # The archive's series have mean 0 and standard deviation 1.
        np.testing.assert_allclose(values.mean(axis=1), 0, atol=1e-5)
        np.testing.assert_allclose(values.std(axis=1, ddof=1), 1, atol=1e-4)
