import os

import pytest

from keras_ortho.data_prep.corpus import Unused, Utterance, discover


def touch(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("TRAIN/DR2/FAEM0/SX42.WAV", "train"),
        ("train/dr2/faem0/sx42.wav", "train"),
        ("TIMIT/TEST/DR2/FAEM0/SX42.WAV", "test"),
        ("data/timit/TRAIN/DR2/FAEM0/SX42.WAV.wav", "train"),
        ("Test/dr2/faem0/sx42.sph", "test"),
        ("dr2-faem0/sx42.wav", None),
        ("timit/dr2-faem0/sx42.flac", None),
        ("train_set/dr2/faem0/sx42.wav", None),
    ],
)
def test_layouts(tmp_path, path, part):
    touch(tmp_path, path)
    utterance = Utterance("faem0_sx42", "faem0", "sx42", "dr2", part, path)
    corpus = discover(tmp_path)
    assert corpus.utterances == [utterance]
    assert corpus.passed_over == []


def test_copies_are_one_utterance(tmp_path):
    touch(
        tmp_path,
        "TRAIN/DR1/FAAA0/SA1.WAV.wav",
        "TRAIN/DR1/FAAA0/SA1.WAV",
        "TRAIN/DR1/FAAA0/SA2.WAV.wav",
        "other/TRAIN/DR1/FAAA0/SA1.WAV",
        "dr1-faaa0/sa1.wav",
    )
    corpus = discover(tmp_path)
    assert [utterance.path for utterance in corpus.utterances] == [
        "TRAIN/DR1/FAAA0/SA1.WAV",
        "TRAIN/DR1/FAAA0/SA2.WAV.wav",
    ]
    reason = "Another copy of TRAIN/DR1/FAAA0/SA1.WAV"
    assert corpus.passed_over == [
        Unused("TRAIN/DR1/FAAA0/SA1.WAV.wav", reason),
        Unused("dr1-faaa0/sa1.wav", reason),
        Unused("other/TRAIN/DR1/FAAA0/SA1.WAV", reason),
    ]


def test_audio_that_is_no_utterance_is_named_and_other_files_are_not(tmp_path):
    touch(
        tmp_path,
        "TRAIN/DR1/FAAA0/SX1.WAV",
        "TRAIN/DR1/FAAA0/SX1.PHN",
        "TRAIN/DR1/FAAA0/._SX1.WAV",
        "TRAIN/DR9/FAAA0/SX1.WAV",
        "TRAIN/DR1/XAAA0/SX1.WAV",
        "TRAIN/DR1/FAAA0/SX1.WAV.txt",
        "calibration.wav",
    )
    corpus = discover(tmp_path)
    assert len(corpus.utterances) == 1
    assert [unused.path for unused in corpus.passed_over] == [
        "TRAIN/DR1/XAAA0/SX1.WAV",
        "TRAIN/DR9/FAAA0/SX1.WAV",
        "calibration.wav",
    ]


def test_links_to_folders_are_followed_once(tmp_path):
    touch(tmp_path, "disc/DR1/FAAA0/SX1.WAV", "corpus/readme.txt")
    os.symlink(tmp_path / "disc", tmp_path / "corpus" / "TRAIN")
    os.symlink(tmp_path / "corpus", tmp_path / "disc" / "DR1" / "loop")
    paths = [u.path for u in discover(tmp_path / "corpus").utterances]
    assert paths == ["TRAIN/DR1/FAAA0/SX1.WAV"]


def test_folders_that_will_not_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Received: .*nowhere"):
        discover(tmp_path / "nowhere")
    touch(tmp_path, "file/readme.txt")
    with pytest.raises(NotADirectoryError, match=r"Received: .*readme\.txt"):
        discover(tmp_path / "file" / "readme.txt")
    with pytest.raises(ValueError, match=r"No utterances.*--list.*Received: .*file"):
        discover(tmp_path / "file")


def test_the_nltk_sample(data_dir):
    corpus = discover(data_dir / "timit_nltk_sample")
    assert len(corpus.utterances) == 160
    assert len({utterance.speaker for utterance in corpus.utterances}) == 16
    assert {utterance.part for utterance in corpus.utterances} == {None}
    assert corpus.passed_over == []
