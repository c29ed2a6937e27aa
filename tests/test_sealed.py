import json

import pytest

from keras_ortho.sealed import SEAL, file_sha256, read_sealed, write_sealed

VALUES = {"loss": [0.1, float("inf"), -0.0], "units": {"2": 3}, "name": "é", "n": None}


def test_reads_what_was_written(tmp_path):
    path = tmp_path / "values.json"
    write_sealed(path, VALUES)
    assert read_sealed(path, ["loss", "units"]) == VALUES
    assert json.loads(path.read_text("utf-8")).keys() == {*VALUES, SEAL}
    # The order of the names and the white space are not what was written.
    path.write_text(json.dumps(dict(reversed(json.loads(path.read_text()).items()))))
    assert read_sealed(path) == VALUES


def test_reads_other_json_without_a_checksum(tmp_path):
    path = tmp_path / "values.json"
    path.write_text('{"loss": 0.5}')
    assert read_sealed(path) == {"loss": 0.5}


def test_every_flipped_bit_is_found_or_changes_nothing(tmp_path):
    path = tmp_path / "values.json"
    write_sealed(path, VALUES)
    content = path.read_bytes()
    errors = []
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            path.write_bytes(flipped)
            try:
                values = read_sealed(path)
            except ValueError as error:
                errors.append(str(error))
            else:
                # White space; or the name of the checksum, then a value of its own.
                assert {name: values[name] for name in VALUES} == VALUES
    assert len(errors) > 0.7 * 8 * len(content)
    assert all(error.startswith(f"{path} is damaged: ") for error in errors)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is damaged: Expecting value"),
        (b'{"loss": 0.5', "is damaged: Expecting"),
        (b'{"loss": "\xff"}', "is damaged: 'utf-8' codec"),
        (b"[" * 10**6, "is damaged: "),
        (b"[1]", "is damaged: it must contain a JSON object. Received: list"),
        (b'{"gain": 1}', r"is damaged: it must contain loss. Received: \['gain'\]"),
    ],
)
def test_an_error_names_the_file(text, message, tmp_path):
    path = tmp_path / "values.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=f"values.json {message}"):
        read_sealed(path, ["loss"])


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_sealed(tmp_path / "values.json")


def test_what_holds_no_other_takes_one_line(tmp_path):
    path = tmp_path / "values.json"
    curves = {"loss": [0.5, -1e-09], "best": {"a": 1, "b": "c,  d\n"}, "odd": ["[ ", 2]}
    values = {"curves": curves, "none": [], "nothing": {}}
    write_sealed(path, values)
    lines = path.read_text("utf-8").splitlines()
    assert '  "loss": [0.5, -1e-09],' in lines
    assert '  "best": {"a": 1, "b": "c,  d\\n"},' in lines
    assert '   "[ ",' in lines
    assert read_sealed(path) == values


def test_all_in_one_line(tmp_path):
    path = tmp_path / "values.json"
    write_sealed(path, VALUES, one_line=True)
    assert path.read_text("utf-8").count("\n") == 1
    assert read_sealed(path) == VALUES


def test_sha256(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert file_sha256(tmp_path / "file") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
