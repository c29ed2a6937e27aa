import csv
import io
import json
import os
import re
import threading

import numpy as np
import pytest
import soundfile

from keras_ortho.data_prep import pipeline
from keras_ortho.data_prep.pipeline import prepare
from keras_ortho.files import file_sha256
from keras_ortho.locks import locked
from keras_ortho.tasks.timit import utterances
from tests.data_prep.corpora import contents, noise, write_corpus, write_sphere

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
    for name, speakers in (("train", 2), ("valid", 2), ("test", 2)):
        split = manifest["splits"][name]
        records = list(utterances(out, name))
        frames = {record.id: len(record.log_power) for record in records}
        assert split["frames"] == frames
        assert list(split["frames"]) == sorted(frames)
        assert split["num_utterances"] == len(records) == 3 * speakers
        assert split["num_frames"] == sum(frames.values())
        assert split["max_frames"] == max(frames.values())
        assert split["seconds"] == sum(len(r.audio) for r in records) / 8000
        for shard in split["shards"]:
            assert shard["sha256"] == file_sha256(out / shard["file"])
            assert shard["bytes"] == (out / shard["file"]).stat().st_size
            named |= {shard["file"], shard["file"].replace(".tfrecord", ".json")}
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


def test_a_second_run_writes_nothing_but_the_manifest(corpus):
    first = run(corpus)
    out = corpus.parent / "out"
    before = contents(out)
    times = {p.name: p.stat().st_mtime_ns for p in out.glob("*.tfrecord")}
    second = run(corpus)
    assert (first.written, second.written) == (len(times), 0)
    assert contents(out) == before
    assert {p.name: p.stat().st_mtime_ns for p in out.glob("*.tfrecord")} == times


@pytest.mark.parametrize("change", ["changed", "added", "removed"])
def test_a_change_of_one_file_writes_one_shard(corpus, change):
    shards = run(corpus).written
    path = corpus / "dr1-faaa0" / "sx2.wav"
    if change == "changed":
        write_sphere(path, noise(99))
    elif change == "added":
        write_sphere(path.with_name("sx3.wav"), noise(99))
    else:
        path.unlink()
    outcome = run(corpus)
    assert outcome.written == 1
    files = {p.name for p in (corpus.parent / "out").glob("*.tfrecord")}
    assert len(files) == shards
    run(corpus, out="fresh")
    assert contents(corpus.parent / "out") == contents(corpus.parent / "fresh")


def test_damaged_shards_are_written_again(corpus):
    run(corpus)
    out = corpus.parent / "out"
    before = contents(out)
    damaged, cut, missing, bare, *_ = sorted(out.glob("*.tfrecord"))
    damaged.write_bytes(b"!" + damaged.read_bytes()[1:])
    cut.write_bytes(cut.read_bytes()[:-5])
    missing.unlink()
    bare.with_suffix(".json").unlink()
    assert run(corpus).written == 4
    assert contents(out) == before


def test_other_splits_replace_the_old_ones_and_leave_other_files(corpus):
    run(corpus)
    out = corpus.parent / "out"
    (out / "notes.txt").write_text("mine")
    (out / "train.tfrecord").write_text("mine too")
    (out / "tmp-77-train-00000-of-00003-0123456789abcdef.tfrecord").write_text("old")
    run(corpus, seed=1)
    found = contents(out)
    assert found.pop("notes.txt") == b"mine"
    assert found.pop("train.tfrecord") == b"mine too"
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


def test_folders_with_the_names_of_files_are_left_alone(corpus):
    out = corpus.parent / "out"
    folder = out / "train-00000-of-00003-0123456789abcdef.tfrecord"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    run(corpus)
    assert (folder / "notes.txt").read_text() == "mine"
    for name in ("manifest.json", "report.csv"):
        (out / name).unlink()
        (out / name).mkdir()
        with pytest.raises(IsADirectoryError, match=f"Received: {out / name}"):
            run(corpus)
        (out / name).rmdir()
        run(corpus)


def test_the_old_manifest_names_whole_shards_until_the_new_one_is_there(
    corpus, monkeypatch
):
    run(corpus)
    out = corpus.parent / "out"
    before = contents(out)

    def crash(path, value, largest):
        raise RuntimeError("broken off")

    monkeypatch.setattr(pipeline, "write_json", crash)
    with pytest.raises(RuntimeError, match="broken off"):
        run(corpus, seed=1)
    after = contents(out)
    assert set(before) < set(after)
    assert {name: after[name] for name in before} == before


# Every way in which a file can be of no use, and what must be said of it.
FAULTS = {
    "truncated": "The file is truncated or damaged: its header states 1256 samples, "
    "but it holds 1206",
    "header": "The file cannot be read as audio",
    "empty": "The file is empty",
    "no_samples": "The file contains no samples",
    "text": "The file cannot be read as audio",
    "zero": "Silent: all samples are 0",
    "constant": "Silent: all samples are -3",
    "short": "Too short: 250 samples at 8000 Hz",
    "stereo": "The file must have one channel, not 2",
    "channels": "The file is truncated or damaged: its header states 1256 samples, "
    "but it holds 628",
    "rate": "The sampling rate must lie in 8000 .. 192000 Hz, not 4000",
    "pipe": "Not a regular file",
    "count": "A SPHERE header must state the number of samples once",
    "flac": "The file is damaged or too long: its header states 68719476735 samples",
    "mp3": "The file (is truncated or damaged|cannot be read as audio)",
    "large": "Too large: 300000000 bytes",
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
    if fault == "truncated":
        path.write_bytes(data[:-100])
    elif fault == "header":
        path.write_bytes(data[:900])
    elif fault == "empty":
        path.touch()
    elif fault == "no_samples":
        write_sphere(path, noise(0, 0))
    elif fault == "text":
        path.write_text("Error 404: not found")
    elif fault == "zero":
        write_sphere(path, np.zeros(2000, np.int16))
    elif fault == "constant":
        write_sphere(path, np.full(2000, -3, np.int16))
    elif fault == "short":
        write_sphere(path, noise(0, 500))
    elif fault == "stereo":
        write_sphere(path, noise(0, 2000).reshape(-1, 2))
    elif fault == "channels":
        path.write_bytes(data.replace(b"channel_count -i 1", b"channel_count -i 2"))
    elif fault == "rate":
        write_sphere(path, noise(0, 2000), rate=4000)
    elif fault == "count":
        path.write_bytes(data.replace(b"sample_count -i", b"sample_count -x"))
    elif fault == "flac":
        path.write_bytes(flac_of_unlimited_length())
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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_of_no_use_is_named_and_skipped(corpus, fault):
    damage(corpus / "dr1-faaa0" / "si7.wav", "stereo")
    damage(corpus / "dr1-faaa0" / "sx1.wav", fault)
    outcome = run(corpus)
    out = corpus.parent / "out"
    report = dict(read_report(out))
    assert list(report) == ["dr1-faaa0/si7.wav", "dr1-faaa0/sx1.wav"]
    assert re.match(FAULTS[fault], report["dr1-faaa0/sx1.wav"])
    assert {r.path: r.reason for r in outcome.rejected} == report
    assert {r["path"]: r["reason"] for r in outcome.manifest["rejected"]} == report
    ids = {u.id for name in NUM_SHARDS for u in utterances(out, name)}
    assert len(ids) == 16
    assert not ids & {"faaa0_si7", "faaa0_sx1"}


def test_strict_names_all_faults_and_leaves_the_result_as_it_was(corpus):
    write_corpus(corpus, sentences=("sx3", "sx4"))
    run(corpus)
    before = contents(corpus.parent / "out")
    # At least one sound file is left of each speaker.
    paths = [p for p in sorted(corpus.glob("*/*.wav")) if p.stem not in ("sa1", "sx4")]
    damaged = dict(zip(FAULTS, paths, strict=False))
    assert len(damaged) == len(FAULTS)
    for fault, path in damaged.items():
        damage(path, fault)
    with pytest.raises(ValueError, match=rf"cannot be used: {len(FAULTS)}\n") as error:
        run(corpus, strict=True)
    for fault, path in damaged.items():
        name = path.relative_to(corpus)
        # The number of samples differs from file to file.
        reason = FAULTS[fault].split(" states ")[0]
        assert re.search(f"\n  {name}: ({reason})", str(error.value))
    after = contents(corpus.parent / "out")
    assert {name: after[name] for name in before} == before
    # What the failed run has made serves the next one.
    outcome = run(corpus)
    assert outcome.written == 0
    assert len(outcome.rejected) == len(FAULTS)


def test_strict_on_a_sound_corpus(corpus):
    assert run(corpus, strict=True).rejected == ()


def test_copies_are_reported_and_no_fault(corpus):
    for path in sorted(corpus.glob("*/sx1.wav")):
        path.with_name("sx1.wav.wav").write_bytes(path.read_bytes())
    outcome = run(corpus, strict=True)
    assert len(outcome.passed_over) == 6
    assert outcome.rejected == ()
    assert read_report(corpus.parent / "out")[0] == (
        "dr1-faaa0/sx1.wav.wav",
        "Another copy of dr1-faaa0/sx1.wav",
    )
    splits = outcome.manifest["splits"].values()
    assert sum(split["num_utterances"] for split in splits) == 18


def test_a_name_that_is_not_unicode(corpus):
    os.rename(corpus / "dr1-faaa0", os.fsencode(corpus) + b"/dr1-faaa\xff")
    odd = os.fsencode(corpus) + b"/\xfe"
    os.mkdir(odd)
    os.rename(corpus / "dr2-fbbb0", odd + b"/dr2-fbbb0")
    with open(odd + b"/dr2-fbbb0/sx1.wav", "wb"):
        pass
    for speaker in ("fddd0", "feee0"):
        write_corpus(corpus, (speaker,))
    run(corpus)
    paths = [path for path, _ in read_report(corpus.parent / "out")]
    assert r"\udcfe/dr2-fbbb0/sx1.wav" in paths
    assert r"dr1-faaa\udcff/sx1.wav" in paths


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


def test_a_file_that_changes_during_the_run_is_an_error(corpus, monkeypatch):
    find_all = pipeline._find_all

    def change_and_find(shards, out):
        write_sphere(corpus / "dr1-faaa0" / "sx1.wav", noise(99))
        return find_all(shards, out)

    monkeypatch.setattr(pipeline, "_find_all", change_and_find)
    with pytest.raises(OSError, match=r"changed during the run.*sx1\.wav"):
        run(corpus)
    assert not (corpus.parent / "out" / "manifest.json").exists()


def test_one_run_at_a_time(corpus):
    out = corpus.parent / "out"
    with locked(out), pytest.raises(BlockingIOError, match=f"Received: {out}"):
        run(corpus)
    assert not list(contents(out))


@pytest.mark.parametrize("out", ["corpus", "corpus/out", "corpus/dr1-faaa0", "."])
def test_out_and_corpus_lie_apart(corpus, out):
    before = sorted(corpus.rglob("*"))
    with pytest.raises(ValueError, match="`out` must lie apart from `corpus`"):
        run(corpus, out=out)
    assert sorted(corpus.rglob("*")) == before


def test_out_through_a_link_lies_apart_too(corpus):
    (corpus.parent / "link").symlink_to(corpus)
    with pytest.raises(ValueError, match="`out` must lie apart"):
        run(corpus, out="link/out")


def test_arguments(corpus):
    (corpus.parent / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"Received: .*file"):
        run(corpus, out="file")
    with pytest.raises(FileNotFoundError, match="corpus folder does not exist"):
        run(corpus.parent / "nowhere")
    with pytest.raises(ValueError, match="No utterances"):
        run(corpus / "dr1-faaa0")
    with pytest.raises(ValueError, match="`mode` must be"):
        run(corpus, mode="random")
    whole = {"train": 1, "valid": 1, "test": 1}
    for bad in ({"train": 1}, whole | {"valid": 0}, whole | {"train": 2.0}, 3):
        with pytest.raises(ValueError, match="`num_shards` must give each"):
            run(corpus, num_shards=bad)
    with pytest.raises(ValueError, match="`seed` must be .* Received: seed='x'"):
        run(corpus, seed="x")
    assert not (corpus.parent / "out").exists()


def test_dying_at_any_rename_is_made_good(corpus):
    """A process that ends at its n-th rename, for all n; then a whole run."""
    run(corpus, out="whole")
    expected = contents(corpus.parent / "whole")
    run(corpus, seed=1)
    renames = 0
    while True:
        exit_status = _run_and_die(corpus, at_rename=renames)
        manifest = json.loads((corpus.parent / "out" / "manifest.json").read_bytes())
        for split in manifest["splits"].values():
            for shard in split["shards"]:
                path = corpus.parent / "out" / shard["file"]
                assert file_sha256(path) == shard["sha256"]
        if exit_status == 0:
            break
        assert exit_status == 9
        renames += 1
        # Each time from the state of another seed, all shards are to be made.
        if renames % 2:
            run(corpus, seed=1)
    assert contents(corpus.parent / "out") == expected
    assert renames > 2


def _run_and_die(corpus, at_rename):
    child = os.fork()
    if child == 0:
        count = 0
        replace = os.replace

        def replace_or_die(source, target):
            nonlocal count
            if count == at_rename:
                os._exit(9)
            count += 1
            replace(source, target)

        os.replace = replace_or_die
        try:
            run(corpus)
        finally:
            os._exit(0 if count and count <= at_rename else 1)
    watchdog = threading.Timer(60, os.kill, (child, 9))
    watchdog.start()
    _, status = os.waitpid(child, 0)
    watchdog.cancel()
    return os.waitstatus_to_exitcode(status)


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
    assert outcome.rejected == outcome.passed_over == ()
    records = [r for name in splits for r in utterances(tmp_path, name)]
    assert len({r.speaker for r in records}) == 16
    for record in records:
        assert len(record.log_power) == -(-len(record.audio) // 128) + 3
        assert record.log_power.min() >= -50
