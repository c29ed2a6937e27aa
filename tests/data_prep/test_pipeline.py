"""From the files of TIMIT, or of a list, to the records."""

import csv
import io
import json
import os
import random
import re
import wave

import numpy as np
import pytest
import soundfile

from keras_ortho.data_prep.pipeline import prepare
from keras_ortho.files import file_sha256, locked
from keras_ortho.tasks.timit import utterances
from tests.data_prep.corpora import (
    SENTENCES,
    contents,
    noise,
    write_corpus,
    write_sphere,
)

NUM_SHARDS = {"train": 3, "valid": 2, "test": 1}


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    write_corpus(folder)
    return folder


def run(corpus, **options):
    out = corpus.parent / options.pop("out", "out")
    return prepare(corpus, out, **({"num_shards": NUM_SHARDS} | options))


def read_report(folder):
    with (folder / "report.csv").open(newline="") as file:
        return [(row["path"], row["reason"]) for row in csv.DictReader(file)]


def test_the_manifest_says_what_is_there(corpus):
    outcome = run(corpus)
    out = corpus.parent / "out"
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert manifest == outcome.manifest
    assert manifest["parameters"] == {
        "frame_length": 256,
        "hop_length": 128,
        "num_bins": 129,
        "num_shards": NUM_SHARDS,
        "power_floor": 1e-5,
        "sample_rate": 8000,
        "seed": 0,
        "splits": "speakers",
    }
    named = {"manifest.json", "report.csv"}
    ids = []
    for name in NUM_SHARDS:
        split = manifest["splits"][name]
        records = list(utterances(out, name))
        frames = {record.id: len(record.log_power) for record in records}
        assert split["frames"] == frames
        assert split["num_utterances"] == len(records) == 3 * 2
        assert split["num_frames"] == sum(frames.values())
        assert split["max_frames"] == max(frames.values())
        assert split["seconds"] == sum(len(r.audio) for r in records) / 8000
        for shard in split["shards"]:
            assert shard["sha256"] == file_sha256(out / shard["file"])
            assert shard["bytes"] == (out / shard["file"]).stat().st_size
            named.add(shard["file"])
        ids += frames
    assert len(ids) == len(set(ids)) == 18
    assert not any("_sa" in name for name in ids)
    assert set(contents(out)) == named
    assert read_report(out) == []
    assert manifest["rejected"] == []


def test_nothing_depends_on_where_or_when(corpus):
    run(corpus)
    run(corpus, out="elsewhere")
    again = contents(corpus.parent / "elsewhere")
    assert contents(corpus.parent / "out") == again
    assert not any(str(corpus.parent).encode() in data for data in again.values())


def test_a_second_run_writes_what_is_missing_or_damaged(corpus):
    run(corpus)
    out = corpus.parent / "out"
    before = contents(out)
    times = {p.name: p.stat().st_mtime_ns for p in out.glob("*.tfrecord")}
    assert run(corpus).written == 0
    assert {p.name: p.stat().st_mtime_ns for p in out.glob("*.tfrecord")} == times
    damaged, cut, missing, *_ = sorted(out.glob("*.tfrecord"))
    damaged.write_bytes(b"!" + damaged.read_bytes()[1:])
    cut.write_bytes(cut.read_bytes()[:-5])
    missing.unlink()
    assert run(corpus).written == 3
    assert contents(out) == before


def test_other_splits_replace_the_old_ones_and_leave_other_files(corpus):
    run(corpus)
    out = corpus.parent / "out"
    mine = [
        "train.tfrecord",
        "train-00000-of-00002.tfrecord",
        "train-00000-of-00002-0123456789abcdef.tfrecord.bak",
        "timit-train-00000-of-00002-0123456789abcdef.tfrecord",
        "notes.json",
    ]
    for name in mine:
        (out / name).write_text("mine")
    (out / "tmp-77-train-00000-of-00003-0123456789abcdef.tfrecord").write_text("old")
    (out / "train-00000-of-00003-0123456789abcdef.json").write_text("of a version")
    folder = out / "train-00000-of-00003-0123456789abcdef.tfrecord"
    folder.mkdir()
    run(corpus, seed=1)
    folder.rmdir()  # It is there.
    found = contents(out)
    assert {found.pop(name) for name in mine} == {b"mine"}
    run(corpus, seed=1, out="fresh")
    assert found == contents(corpus.parent / "fresh")


def test_records_of_another_corpus_are_left_alone(corpus):
    run(corpus)
    before = contents(corpus.parent / "out")
    for folder in list(corpus.iterdir()):
        folder.rename(folder.with_name(folder.name[:-1] + "7"))
    with pytest.raises(ValueError, match="another corpus.* none of them in this"):
        run(corpus)
    assert contents(corpus.parent / "out") == before
    (corpus.parent / "out" / "manifest.json").write_text("{}")
    run(corpus)  # What is damaged is nobody's.


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manifest.json", '{"name": "my web app", "version": "1"}'),
        ("manifest.json", '["mine"]'),
        ("report.csv", "quarter,sales\nQ1,10\n"),
    ],
)
def test_files_of_something_else_are_left_alone(name, text, corpus):
    out = corpus.parent / "out"
    out.mkdir()
    (out / name).write_text(text)
    with pytest.raises(ValueError, match=f"without {name}.*Received: .*{name}"):
        run(corpus)
    assert contents(out) == {name: text.encode()}


# Files of no use, besides those whose sound is, and what must be said of them.
FAULTS = {
    "truncated": "The file is truncated or damaged: its header states",
    "empty": "The file is empty",
    "no_samples": "The file contains no samples",
    "text": "The file cannot be read as audio",
    "pipe": "`path` must be that of a regular file",
    "flac": "The file is damaged or too long: its header states 68719476735 samples",
    "mp3": "The file (is truncated or damaged|cannot be read as audio)",
    "large": "`path` must have at most 268435456 bytes",
    "link": "Cannot be read: No such file or directory",
}


def flac_of_unlimited_length():
    """A file of FLAC with all 36 bits of its number of samples set."""
    file = io.BytesIO()
    soundfile.write(file, noise(0, 2000), 16000, format="FLAC")
    data = bytearray(file.getvalue())
    data[21] |= 0x0F
    data[22:26] = b"\xff" * 4
    return bytes(data)


def damage(path, fault):
    data = path.read_bytes()
    path.unlink()
    contents = {
        "truncated": data[:-100],
        "empty": b"",
        "text": b"Error 404: not found",
        "flac": flac_of_unlimited_length(),
    }
    if fault in contents:
        path.write_bytes(contents[fault])
    elif fault == "no_samples":
        write_sphere(path, noise(0, 0))
    elif fault == "mp3":
        file = io.BytesIO()
        soundfile.write(file, noise(0, 9000), 16000, format="MP3")
        path.write_bytes(file.getvalue()[:700])
    elif fault == "large":
        with path.open("wb") as file:
            file.truncate(300_000_000)  # A hole: it takes no room.
    elif fault == "pipe":
        os.mkfifo(path)
    elif fault == "link":
        path.symlink_to("nowhere")


def test_files_of_no_use_are_named_and_skipped_or_an_error(corpus):
    write_corpus(corpus, sentences=("sx3", "sx4"))
    run(corpus)
    before = contents(corpus.parent / "out")
    # At least one sound file is left of each speaker.
    paths = [p for p in sorted(corpus.glob("*/*.wav")) if p.stem not in ("sa1", "sx4")]
    damaged = dict(zip(FAULTS, paths, strict=False))
    assert len(damaged) == len(FAULTS)
    for fault, path in damaged.items():
        damage(path, fault)
    with pytest.raises(ValueError, match=rf"cannot be used: {len(FAULTS)}\n"):
        run(corpus, strict=True)
    after = contents(corpus.parent / "out")
    assert {name: after[name] for name in before} == before
    # What the failed run has made serves the next one.
    outcome = run(corpus)
    assert outcome.written == 0
    report = dict(read_report(corpus.parent / "out"))
    for fault, path in damaged.items():
        reason = report.pop(path.relative_to(corpus).as_posix())
        # The number of samples differs from file to file.
        assert re.match(FAULTS[fault].split(" states ")[0], reason)
    assert not report
    assert len(outcome.rejected) == len(outcome.manifest["rejected"]) == len(FAULTS)
    ids = {u.id for name in NUM_SHARDS for u in utterances(corpus.parent / "out", name)}
    assert len(ids) == 6 * 5 - len(FAULTS)


def test_a_split_without_a_usable_file_is_an_error(corpus):
    test = run(corpus).manifest["splits"]["test"]["frames"]
    before = contents(corpus.parent / "out")
    for name in test:
        speaker, sentence = name.split("_")
        (path,) = corpus.glob(f"*-{speaker}/{sentence}.wav")
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="No usable utterance for 'test'"):
        run(corpus)
    after = contents(corpus.parent / "out")
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("out", ["corpus", "corpus/out", ".", "link/out"])
def test_out_and_corpus_lie_apart(corpus, out):
    (corpus.parent / "link").symlink_to(corpus)
    before = sorted(corpus.rglob("*"))
    with pytest.raises(ValueError, match="`out` must lie apart from `corpus`"):
        run(corpus, out=out)
    assert sorted(corpus.rglob("*")) == before


def test_what_is_refused(corpus):
    with pytest.raises(ValueError, match="`mode` must be"):
        run(corpus, mode="random")
    with pytest.raises(ValueError, match="`num_shards` must be a positive integer"):
        run(corpus, num_shards=NUM_SHARDS | {"valid": 0})
    out = corpus.parent / "out"
    assert not out.exists()
    with locked(out), pytest.raises(BlockingIOError, match=f"Received: {out}"):
        run(corpus)
    assert not contents(out)


def test_dying_at_any_rename_is_made_good(corpus, monkeypatch):
    """The n-th file is not put in place, for all n; then a whole run."""
    run(corpus, out="whole")
    expected = contents(corpus.parent / "whole")
    run(corpus, seed=1)
    out, replace, left = corpus.parent / "out", os.replace, 0

    def replace_or_die(source, target):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_or_die)
    for renames in range(20):
        left = renames
        try:
            run(corpus)
            break
        except KeyboardInterrupt:
            pass
        manifest = json.loads((out / "manifest.json").read_bytes())
        for split in manifest["splits"].values():
            for shard in split["shards"]:
                assert file_sha256(out / shard["file"]) == shard["sha256"]
        if renames % 2:  # From another seed's records, all shards are to be made.
            left = 20
            run(corpus, seed=1)
    assert contents(out) == expected
    assert renames > 2


def test_the_statistics_are_those_of_the_training_frames(corpus):
    outcome = run(corpus)
    out = corpus.parent / "out"
    frames = np.concatenate(
        [u.log_power for u in utterances(out, "train")], dtype=float
    )
    statistics = outcome.manifest["statistics"]
    assert set(statistics) == {"mean", "std"}
    # The variance is the difference of the mean square and the square of the mean, each
    # of which has a relative error of about n eps.
    error = len(frames) * np.finfo(float).eps
    mean, std = frames.mean(axis=0), frames.std(axis=0)
    np.testing.assert_allclose(statistics["mean"], mean, rtol=4 * error)
    square = (frames**2).mean(axis=0)
    allowed = 4 * error * square / std
    assert (np.abs(statistics["std"] - std) <= allowed).all()


def test_the_nltk_sample_end_to_end(data_dir, tmp_path):
    outcome = prepare(data_dir / "timit_nltk_sample", tmp_path)
    splits = outcome.manifest["splits"]
    assert {name: split["num_utterances"] for name, split in splits.items()} == {
        "train": 96,
        "valid": 16,
        "test": 16,
    }
    assert outcome.rejected == outcome.passed_over == []
    records = [r for name in splits for r in utterances(tmp_path, name)]
    assert len({r.speaker for r in records}) == 16
    for record in records:
        assert len(record.log_power) == -(-len(record.audio) // 128) + 3
        assert record.log_power.min() >= -50


# --- Recordings that a list names


def write_list(folder, rows):
    path = folder / "list.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("file", "speaker", "split", "id"), *rows])
    return [path]


@pytest.fixture
def rows(corpus):
    parts = ("train", "train", "valid", "test", "train", "train")
    return [
        [f"{folder.name}/{name}.wav", folder.name, part, f"{folder.name}-{name}"]
        for folder, part in zip(sorted(corpus.iterdir()), parts, strict=True)
        for name in SENTENCES
    ]


def test_a_change_of_the_list_writes_what_it_touches(corpus, rows, tmp_path):
    outcome = run(corpus, lists=write_list(tmp_path, rows))
    parameters = outcome.manifest["parameters"]
    assert (parameters["splits"], parameters["seed"]) == ("list", None)
    assert len(parameters["list_sha256"]) == 64
    expected = contents(tmp_path / "out")
    assert not any(str(tmp_path).encode() in data for data in expected.values())
    random.Random(0).shuffle(rows)
    assert run(corpus, lists=write_list(tmp_path, rows)).written == 0
    assert contents(tmp_path / "out") == expected
    rows[0][1] = "Ann"  # The audio is the same, the record is not.
    assert run(corpus, lists=write_list(tmp_path, rows)).written == 1
    run(corpus, lists=write_list(tmp_path, rows), out="fresh")
    assert contents(tmp_path / "out") == contents(tmp_path / "fresh")


def test_an_error_in_the_list_comes_before_any_work(corpus, rows, tmp_path):
    with pytest.raises(ValueError, match="`mode` must be .* Received: 'timit'"):
        run(corpus, lists=write_list(tmp_path, rows), mode="timit")
    with pytest.raises(ValueError, match="every split: nothing for valid, test"):
        run(corpus, lists=write_list(tmp_path, rows[:8]))
    lists = write_list(tmp_path, [*rows, ["ann/d.wav", "ann", "test", "x"]])
    with pytest.raises(ValueError, match=r"list\.csv, line 26: ann/d\.wav"):
        run(corpus, lists=lists)
    assert not (tmp_path / "out").exists()


def test_spoken_digits(data_dir, tmp_path):
    """By the rule of the recordings' authors, with one take for validation."""
    folder, rows = data_dir / "fsdd", []
    for path in sorted((folder / "recordings").glob("*.wav")):
        _, speaker, take = path.stem.split("_")
        split = "test" if int(take) < 5 else "valid" if take == "5" else "train"
        rows.append([f"recordings/{path.name}", speaker, split, path.stem])
    out, lists = tmp_path / "out", write_list(tmp_path, rows)
    with pytest.warns(UserWarning, match="Received: 6 of 6 speakers in several splits"):
        prepare(folder, out, lists=lists, strict=True)
    found = {
        record.id: (record, split)
        for split in NUM_SHARDS
        for record in utterances(out, split)
    }
    assert len(found) == len(rows) == 600
    for file, speaker, split, name in rows:
        record, where = found[name]
        assert (record.speaker, where) == (speaker, split)
        with wave.open(str(folder / file)) as recording:
            samples = np.frombuffer(recording.readframes(10**6), "<i2")
        np.testing.assert_array_equal(record.audio, samples)
        # Periodic Hann windows of 256 samples every 128, with 256 zeros at the ends.
        signal = np.pad(samples / 32768, (256, 256 + -len(samples) % 128))
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256)
        frames = np.lib.stride_tricks.sliding_window_view(signal, 256)[::128]
        power = 1e-5 + np.abs(np.fft.rfft(frames * window)) ** 2
        # Weak bins beside strong ones have the rounding of the strong ones.
        np.testing.assert_allclose(record.log_power, 10 * np.log10(power), atol=0.1)
