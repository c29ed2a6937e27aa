import pytest

from keras_ortho.data_prep.csv_list import read_csv
from keras_ortho.data_prep.entries import Entry


def write(folder, text):
    path = folder / "list.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_columns_in_any_order_with_others_between(tmp_path):
    path = write(
        tmp_path,
        "split, text,speaker ,file,id\n"
        'test,"Well, yes",Ann, a/1.wav ,a1\n'
        '\n valid ,"He said ""no""", Jürgen,"a, b/2.wav",a2 \n',
    )
    assert read_csv(path) == [
        # A name may end with a blank.
        Entry("a/1.wav ", "Ann", "test", "a1", f"{path}, line 2"),
        Entry("a, b/2.wav", "Jürgen", "valid", "a2", f"{path}, line 4"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_spreadsheets_write(tmp_path, end, mark):
    path = write(tmp_path, mark + end.join(["file,speaker", "1.wav,ann", "2.wav,ben"]))
    assert [entry[:4] for entry in read_csv(path)] == [
        ("1.wav", "ann", None, None),
        ("2.wav", "ben", None, None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no `file`. Received: LIST, line 1: $"),
        ("speaker,path\n", "no `file`. Received: LIST, line 1: speaker, path$"),
        ("file;speaker\n", "no `file`. Received: LIST, line 1: file;speaker$"),
        ("file,Speaker\n", "no `speaker`. Received: LIST, line 1: file, Speaker$"),
        ("file,speaker,file\n", "once. Received: LIST, line 1: 'file' twice$"),
        ("file,speaker\na,b\nc\n", "first line, 2. Received: LIST, line 3$"),
        ("file,speaker\na,b,c\n", "first line, 2. Received: LIST, line 2$"),
        ('file,speaker\n"a"b,c\n', "CSV file. Received: LIST, line 2: "),
        ('file,speaker\na,"b\n', "CSV file. Received: LIST, line 2: "),
        (b"file,speaker\na,b\n\xe9,c\n", "UTF-8.* LIST, line 3: the byte 0xe9"),
    ],
)
def test_what_is_no_list(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message.replace("LIST", str(path))):
        read_csv(path)


def test_a_field_without_end(tmp_path):
    path = write(tmp_path, "file,speaker\na," + "x" * 200_000 + "\n")
    with pytest.raises(ValueError, match=f"CSV file. Received: {path}, line 2: field"):
        read_csv(path)


def test_a_list_that_is_too_large(tmp_path):
    path = write(tmp_path, "file,speaker\n")
    with path.open("r+b") as file:
        file.truncate(2**27 + 1)
    with pytest.raises(ValueError, match=f"at most .* Received: {path}"):
        read_csv(path)
