import numpy as np
import pytest

from keras_ortho.tasks.ucr_files import read_series

TSV = "1\t0.5\t-1.5\t2\n-1\t1e-3\t0\t7\n"
COMMAS = "1,0.5,-1.5,2\n-1,1e-3,0,7\n"
SPACES = (
    "  1.0000000e+00   5.0000000e-01  -1.5000000e+00   2.0\n"
    " -1.0000000e+00   1.0000000e-03   0.0             7.0\n\n"
)
TS = (
    "#Über die Daten\n@problemName Two\n@timeStamps false\n@univariate true\n\n"
    "@classLabel true 1 -1\n@data\n0.5,-1.5,2:1\n1e-3,0,7:-1\n"
)


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("Two_TRAIN.tsv", TSV, [1, 2]),
        ("Two_TRAIN.tsv", TSV.replace("\n", "\r\n"), [1, 2]),
        ("Two_TRAIN.tsv", TSV.strip(), [1, 2]),
        ("Two_TRAIN.txt", COMMAS, [1, 2]),
        ("Two_TRAIN", COMMAS.replace(",", ", "), [1, 2]),
        ("Two_TRAIN.txt", SPACES, [1, 2]),
        ("Two_TRAIN.ts", TS, [8, 9]),
        ("Two_TRAIN.ts", TS.replace("@data", "@DATA "), [8, 9]),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin1"])
def test_formats(tmp_path, name, text, lines, encoding):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    series = read_series(path)
    assert series.path == path
    assert series.lines == lines
    assert series.labels == [1, -1]
    assert series.values.dtype == "float32"
    expected = np.array([[0.5, -1.5, 2], [1e-3, 0, 7]], "float32")
    np.testing.assert_array_equal(series.values, expected)


def test_labels_may_be_words(tmp_path):
    path = tmp_path / "Two_TRAIN.ts"
    path.write_text("@data\n1,2:left hand\n3,4: right\n5,6:3\n")
    assert read_series(path).labels == ["left hand", "right", 3]


@pytest.mark.parametrize(("suffix", "text"), [("tsv", "1\t2\n"), ("ts", "@data\n2:1")])
def test_a_file_that_begins_with_a_byte_order_mark(tmp_path, suffix, text):
    path = tmp_path / f"One_TRAIN.{suffix}"
    path.write_text(text, encoding="utf-8-sig")
    series = read_series(path)
    assert series.labels == [1]
    assert series.values.tolist() == [[2]]


def test_underscores_are_no_part_of_a_number(tmp_path):
    path = tmp_path / "One_TRAIN.tsv"
    path.write_text("1_0\t2\n")
    assert read_series(path).labels == ["1_0"]


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        ("tsv", "1\t1_0\n", "finite number. .*tsv, line 1: '1_0' as value 1"),
        ("tsv", "-nan\t2\t3\n", "must have a label. .*tsv, line 1"),
        ("tsv", "1\t2\t3\n1\t2\n", "as that of line 1. .*tsv, line 2: 1 values"),
        ("tsv", "1\t2\t3\n\n1\t2\t3\t4\n", "tsv, line 3: 3 values"),
        ("tsv", "1\t2\t3\n1\t2\tNaN\n", "no missing .*tsv, line 2: 'NaN' as value 2"),
        ("tsv", "1\t2\t\n", "no missing value. .*tsv, line 1: '' as value 2"),
        ("tsv", "\t2\t3\n", "must have a label. .*tsv, line 1: ''"),
        ("tsv", "NaN\t2\t3\n", "must have a label. .*tsv, line 1"),
        ("tsv", "1\t2\tinf\n", "finite number. .*tsv, line 1: 'inf' as value 2"),
        ("tsv", "1\t2\t1e39\n", "finite number. .*tsv, line 1: '1e39' as value 2"),
        ("tsv", "1\t2\n1" + "\t2" * 2**19 + "\n", "1048576 characters. .*tsv, line 2"),
        ("tsv", "1\t2\tx\n", "finite number. .*tsv, line 1: 'x' as value 2"),
        ("tsv", "1\n", "must have values. .*tsv, line 1"),
        ("tsv", "", "must contain series. .*tsv: none"),
        ("txt", "1,2,,3\n", "no missing value. .*txt, line 1: '' as value 2"),
        ("txt", "1 2 3\n1 2 x\n", "finite number. .*txt, line 2: 'x' as value 2"),
        ("ts", "@data\n1,?,3:1\n", "no missing value. .*ts, line 2: .* as value 2"),
        (
            "ts",
            "@data\n1,2:1\n1,2,3:1\n",
            "2 values, as that of line 2. .*ts, line 3: 3 values",
        ),
        ("ts", "@data\n1,2:3,4:1\n", "one channel.* .*ts, line 2: 2 colons"),
        ("ts", "@data\n1,2\n", "a label. .*ts, line 2: 0 colons"),
        ("ts", "@data\n1,2:\n", "must have a label. .*ts, line 2"),
        ("ts", "@data\n:1\n", "no missing value. .*ts, line 2: '' as value 1"),
        ("ts", "1,2:1\n", "before @data.* .*ts, line 1: '1,2:1'"),
        ("ts", "@univariate true\n", "must contain series. .*ts: none"),
    ],
)
def test_bad_lines_are_named(tmp_path, suffix, text, message):
    path = tmp_path / f"Bad_TRAIN.{suffix}"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{message}"):
        read_series(path)


def test_so_many_series(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_ortho.tasks.ucr_files.MOST_SERIES", 3)
    path = tmp_path / "Many_TRAIN.tsv"
    path.write_text("1\t2\n" * 3)
    assert read_series(path).values.shape == (3, 1)
    path.write_text("1\t2\n" * 4)
    with pytest.raises(ValueError, match="at most 3 series. .*tsv, line 4"):
        read_series(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"None_TRAIN\.tsv"):
        read_series(tmp_path / "None_TRAIN.tsv")


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
def test_the_archive(data_dir, name, train, test, length, classes):
    folder = data_dir / "ucr" / name
    for part, size in (("TRAIN", train), ("TEST", test)):
        series = read_series(folder / f"{name}_{part}.tsv")
        assert series.values.shape == (size, length)
        assert len(set(series.labels)) == classes
        # The archive's series have mean 0 and standard deviation 1.
        np.testing.assert_allclose(series.values.mean(axis=1), 0, atol=1e-5)
        np.testing.assert_allclose(series.values.std(axis=1, ddof=1), 1, atol=1e-4)
