import pytest

from keras_ortho.data_prep.entries import Entry
from keras_ortho.data_prep.kaldi_list import read_kaldi


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")


def test_the_two_files(tmp_path):
    write(
        tmp_path,
        wav_scp="ann-1 ann/1.wav\nben-1\tben's/take 1.wav \nann-2  /d/2\u2028.flac\n",
        utt2spk="ann-1 ann\nann-2 ann\nben-1 ben\n",
    )
    assert read_kaldi(tmp_path) == [
        Entry("ann/1.wav", "ann", None, "ann-1", f"{tmp_path}/wav.scp, line 1"),
        Entry("ben's/take 1.wav", "ben", None, "ben-1", f"{tmp_path}/wav.scp, line 2"),
        Entry("/d/2\u2028.flac", "ann", None, "ann-2", f"{tmp_path}/wav.scp, line 3"),
    ]


@pytest.mark.parametrize(
    ("wav_scp", "utt2spk", "message"),
    [
        ("a 1.wav\nb 2.wav", "a s", "utt2spk does not have. Received: WAV, line 2: b$"),
        ("a 1.wav", "a s\nb s", "wav.scp does not have. Received: SPK, line 2: b$"),
        ("a 1.wav\na 2.wav", "a s", "twice. Received: WAV, line 2: a$"),
        ("a 1.wav", "a s\na t", "twice. Received: SPK, line 2: a$"),
        ("a 1.wav\n\nb 2.wav", "a s\nb s", "what belongs.* WAV, line 2: ''$"),
        ("a", "a s", "what belongs to it. Received: WAV, line 1: 'a'$"),
        ("", "", "what belongs to it. Received: WAV, line 1: ''$"),
        ("a 1.wav", "a s t", "no blanks. Received: SPK, line 1: s t$"),
        (
            "a flac -c -d -s 1.flac |",
            "a s",
            r"not commands.* Received: WAV, line 1: flac -c -d -s 1.flac \|$",
        ),
    ],
)
def test_files_that_do_not_fit(tmp_path, wav_scp, utt2spk, message):
    write(tmp_path, wav_scp=wav_scp, utt2spk=utt2spk)
    message = message.replace("WAV", f"{tmp_path}/wav.scp")
    with pytest.raises(ValueError, match=message.replace("SPK", f"{tmp_path}/utt2spk")):
        read_kaldi(tmp_path)


@pytest.mark.parametrize("missing", ["wav.scp", "utt2spk"])
def test_a_missing_file_is_named(tmp_path, missing):
    write(tmp_path, wav_scp="a 1.wav\n", utt2spk="a s\n")
    (tmp_path / missing).unlink()
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}/{missing}"):
        read_kaldi(tmp_path)


def test_segments_of_recordings_are_refused(tmp_path):
    write(tmp_path, wav_scp="a 1.wav\n", utt2spk="a-1 s\n", segments="a-1 a 0.0 1.5\n")
    with pytest.raises(ValueError, match=f"Received: {tmp_path}/segments$"):
        read_kaldi(tmp_path)
