"""Recordings that a list names, from the files to the records."""

import csv
import json
import random
import wave

import numpy as np
import pytest
import soundfile

from keras_ortho.data_prep.corpus import Unused
from keras_ortho.data_prep.listed import ListFile
from keras_ortho.data_prep.pipeline import prepare
from keras_ortho.data_prep.plan import MOST_UTTERANCES
from keras_ortho.data_prep.shards import LARGEST_SIDECAR
from keras_ortho.tasks.timit import load, utterances
from keras_ortho.tasks.timit_records import LARGEST_MANIFEST
from tests.data_prep.corpora import contents, noise

NUM_SHARDS = {"train": 3, "valid": 2, "test": 1}
SPLITS = tuple(NUM_SHARDS)


SPLIT_OF = {"ann": "train", "ben": "train", "cleo": "valid", "dan": "test"}
RATES = {"a.wav": 8000, "b.flac": 8000, "c.wav": 48000}
ROWS = [
    [f"{speaker}/{name}", speaker, split]
    for speaker, split in SPLIT_OF.items()
    for name in RATES
]


@pytest.fixture
def corpus(tmp_path):
    """Noise, each recording of another length, and one that is in no list."""
    for number, (path, _, _) in enumerate(ROWS):
        file = tmp_path / "corpus" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        rate = RATES[file.name]
        soundfile.write(file, noise(number, (700 + 50 * number) * rate // 8000), rate)
    (tmp_path / "corpus" / "ann" / "unlisted.wav").write_bytes(b"not looked at")
    return tmp_path / "corpus"


def write(path, rows, columns=("file", "speaker", "split")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *(row[: len(columns)] for row in rows)])
    return path


def run(corpus, rows=ROWS, **options):
    out = corpus.parent / options.pop("out", "out")
    columns = options.pop("columns", ("file", "speaker", "split"))
    path = write(corpus.parent / "list.csv", rows, columns)
    options = {"num_shards": NUM_SHARDS, "strict": True} | options
    return prepare(corpus, out, lists=[path], **options)


def test_the_records_are_those_of_the_list(corpus):
    outcome = run(corpus)
    out = corpus.parent / "out"
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert manifest == outcome.manifest
    assert outcome.passed_over == outcome.rejected == ()
    parameters = manifest["parameters"]
    assert (parameters["splits"], parameters["seed"]) == ("list", None)
    assert len(parameters["list_sha256"]) == 64
    found = {r.id: (name, r) for name in SPLITS for r in utterances(out, name)}
    assert len(found) == len(ROWS)
    for path, speaker, split in ROWS:
        samples, rate = soundfile.read(corpus / path, dtype="int16")
        name, record = found[path.partition(".")[0].replace("/", "_")]
        assert (name, record.speaker) == (split, speaker)
        if rate == 8000:
            np.testing.assert_array_equal(record.audio, samples)
        assert len(record.audio) == len(samples) * 8000 // rate
        frames = manifest["splits"][split]["frames"][record.id]
        assert frames == len(record.log_power) == -(-len(record.audio) // 128) + 3


def test_any_order_of_the_lines_gives_the_same_bytes(corpus):
    run(corpus)
    expected = contents(corpus.parent / "out")
    for seed in range(3):
        rows = random.Random(seed).sample(ROWS, len(ROWS))
        run(corpus, rows, out=f"out{seed}")
        assert contents(corpus.parent / f"out{seed}") == expected
    assert not any(str(corpus.parent).encode() in data for data in expected.values())


def test_folders_of_kaldi_for_each_split(corpus):
    rows = [(*row, f"{row[1]}-{number}") for number, row in enumerate(ROWS)]
    run(corpus, rows, columns=("file", "speaker", "split", "id"))
    lists = []
    for split in SPLITS:
        folder = corpus.parent / split
        folder.mkdir()
        mine = [row for row in rows if row[2] == split]
        files = "".join(f"{name} {file}\n" for file, _, _, name in mine)
        (folder / "wav.scp").write_text(files)
        speakers = "".join(f"{name} {speaker}\n" for _, speaker, _, name in mine)
        (folder / "utt2spk").write_text(speakers)
        lists.append(ListFile(folder, split))
    prepare(corpus, corpus.parent / "kaldi", lists=lists, num_shards=NUM_SHARDS)
    assert contents(corpus.parent / "kaldi") == contents(corpus.parent / "out")


def test_a_change_of_the_list_or_of_a_file_writes_what_it_touches(corpus):
    shards = run(corpus).written
    assert run(corpus).written == 0
    soundfile.write(corpus / "ann" / "a.wav", noise(99), 8000)
    assert run(corpus).written == 1
    # The audio is the same, the record is not.
    renamed = [[path, speaker.title(), split] for path, speaker, split in ROWS[:1]]
    outcome = run(corpus, [*renamed, *ROWS[1:]])
    assert outcome.written == 1
    assert "Ann" in {r.speaker for r in utterances(corpus.parent / "out", "train")}
    run(corpus, [*renamed, *ROWS[1:]], out="fresh")
    assert contents(corpus.parent / "out") == contents(corpus.parent / "fresh")
    assert len(list((corpus.parent / "out").glob("*.tfrecord"))) == shards


def test_speakers_by_seed_where_the_list_has_no_splits(corpus):
    outcome = run(corpus, columns=("file", "speaker"), seed=2)
    parameters = outcome.manifest["parameters"]
    assert (parameters["splits"], parameters["seed"]) == ("speakers", 2)
    speakers = [
        {r.speaker for r in utterances(corpus.parent / "out", name)} for name in SPLITS
    ]
    assert [len(each) for each in speakers] == [2, 1, 1]
    assert set.union(*speakers) == set(SPLIT_OF)


def test_a_file_of_no_use_is_named_and_skipped_or_an_error(corpus):
    (corpus / "ben" / "a.wav").write_bytes(b"")
    with pytest.raises(ValueError, match="1\n  ben/a.wav: The file is empty."):
        run(corpus)
    outcome = run(corpus, strict=False)
    assert outcome.rejected == (Unused("ben/a.wav", "The file is empty."),)
    assert outcome.manifest["splits"]["train"]["num_utterances"] == 5
    report = (corpus.parent / "out" / "report.csv").read_text()
    assert report == "path,reason\nben/a.wav,The file is empty.\n"


def test_an_error_in_the_list_comes_before_any_work(corpus):
    rows = [*ROWS, ["dan/d.wav", "dan", "test"]]
    with pytest.raises(ValueError, match=r"list\.csv, line 14: dan/d\.wav"):
        run(corpus, rows)
    with pytest.raises(ValueError, match="`mode` must be .* Received: 'timit'"):
        run(corpus, mode="timit")
    with pytest.raises(ValueError, match="every split: nothing for test"):
        run(corpus, ROWS[:9])
    with pytest.raises(ValueError, match="`out` must lie apart"):
        run(corpus, out="corpus/out")
    assert not (corpus.parent / "out").exists()


# --- A large corpus

LIBRISPEECH = {
    "train-clean-100": 28539,
    "train-clean-360": 104014,
    "train-other-500": 148688,
    "dev-clean": 2703,
    "dev-other": 2864,
    "test-clean": 2620,
    "test-other": 2939,
}


def size(value):
    return len(json.dumps(value, indent=1, sort_keys=True))


def test_manifest_and_sidecars_of_librispeech_are_small_enough(corpus):
    manifest = run(corpus).manifest
    sidecar = json.loads(
        next((corpus.parent / "out").glob("train-*.json")).read_bytes()
    )
    # Paths at least as long as the corpus has them, and ids from them.
    paths = [
        f"LibriSpeech/{part}/1006/135212/1006-135212-{number:06}.flac"
        for part, count in LIBRISPEECH.items()
        for number in range(count)
    ]
    assert len(paths) == 292_367
    ids = [path.removesuffix(".flac").replace("/", "_") for path in paths]
    # The longest that a recording may be: 600 seconds.
    frames = {"frames": dict.fromkeys(ids, 37503)}
    assert size(manifest) + size(frames) < LARGEST_MANIFEST / 5
    rejected = [{"path": path, "reason": "x" * 120} for path in paths]
    assert size(manifest) + size(rejected) < LARGEST_MANIFEST / 2
    one = sidecar["utterances"][0] | {"id": ids[0], "source": paths[0]}
    assert size(sidecar) + size(one) * MOST_UTTERANCES < LARGEST_SIDECAR


# --- Recordings of spoken digits


def digits(folder):
    """Rows of a list, by the authors' rule and with one take for validation."""
    for path in sorted((folder / "recordings").glob("*.wav")):
        _, speaker, take = path.stem.split("_")
        split = "test" if int(take) < 5 else "valid" if take == "5" else "train"
        yield [f"recordings/{path.name}", speaker, split, path.stem]


def log_power(samples):
    """Log power in dB by NumPy's transform in float64, and what float32 may miss by.

    An FFT of n values errs, over all bins, by at most about log2(n) roundings of the
    norm of what it gives; four times that is allowed for a bin alone. From the power
    it goes to dB by the derivative, and the record rounds dB to float32.
    """
    signal = np.pad(samples / 32768, (256, 256 + -len(samples) % 128))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256)
    frames = np.lib.stride_tricks.sliding_window_view(signal, 256)[::128] * window
    magnitude = np.abs(np.fft.rfft(frames))
    norm = np.linalg.norm(np.fft.fft(frames), axis=1, keepdims=True)
    error = 4 * np.log2(256) * 2.0**-24 * norm
    change = (2 * magnitude * error + error**2) / (1e-5 + magnitude**2)
    decibels = 10 * np.log10(1e-5 + magnitude**2)
    # Where the change is no longer small the derivative says nothing: there is a floor.
    tolerance = 10 / np.log(10) * change / np.maximum(1 - change, 0.01)
    return decibels, tolerance + 2.0**-23 * np.abs(decibels)


def test_spoken_digits(data_dir, tmp_path):
    folder = data_dir / "fsdd"
    rows = list(digits(folder))
    path = write(tmp_path / "list.csv", rows, ("file", "speaker", "split", "id"))
    with pytest.warns(UserWarning, match="Received: 6 of 6 speakers in several splits"):
        outcome = prepare(folder, tmp_path / "out", lists=[path], strict=True)
    splits = outcome.manifest["splits"]
    counts = {name: split["num_utterances"] for name, split in splits.items()}
    assert counts == {"train": 240, "valid": 60, "test": 300}
    found = {
        record.id: (record, split)
        for split in SPLITS
        for record in utterances(tmp_path / "out", split)
    }
    assert len(found) == len(rows) == 600
    for file, speaker, split, name in rows:
        record, where = found[name]
        assert (record.speaker, where) == (speaker, split)
        with wave.open(str(folder / file)) as recording:
            samples = np.frombuffer(recording.readframes(10**6), "<i2")
        np.testing.assert_array_equal(record.audio, samples)
        expected, tolerance = log_power(samples)
        assert record.log_power.shape == expected.shape
        assert np.all(np.abs(record.log_power - expected) <= tolerance)
        assert np.median(tolerance) < 0.01


@pytest.mark.slow
def test_spoken_digits_of_kaldi_by_seed(data_dir, tmp_path):
    folder = data_dir / "fsdd"
    rows = list(digits(folder))
    (tmp_path / "data").mkdir()
    # Kaldi's recipes write absolute paths.
    files = "".join(f"{name} {folder.absolute()}/{file}\n" for file, _, _, name in rows)
    (tmp_path / "data" / "wav.scp").write_text(files)
    speakers = "".join(f"{name} {speaker}\n" for _, speaker, _, name in rows)
    (tmp_path / "data" / "utt2spk").write_text(speakers)
    prepare(folder, tmp_path / "kaldi", lists=[tmp_path / "data"], seed=1)
    path = write(
        tmp_path / "list.csv",
        [(f, s, n) for f, s, _, n in rows],
        ("file", "speaker", "id"),
    )
    prepare(folder, tmp_path / "csv", lists=[path], seed=1)
    assert contents(tmp_path / "kaldi") == contents(tmp_path / "csv")
    data = load(tmp_path / "kaldi", batch_size=50)
    assert data.num_utterances == {"train": 400, "valid": 100, "test": 100}
    everyone = [
        {record.speaker for record in utterances(tmp_path / "kaldi", name)}
        for name in SPLITS
    ]
    assert [len(each) for each in everyone] == [4, 1, 1]
    assert len(set.union(*everyone)) == 6
    x, y, weight = next(iter(data.valid))
    assert x.shape == y.shape == (50, data.max_frames["valid"], 129)
    assert int(weight.numpy().sum()) > 0
