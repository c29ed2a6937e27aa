import gzip
import json
from functools import partial

import numpy as np
import pytest

from keras_ortho.audio import write_wav
from keras_ortho.tasks import adding, addition, characters, pixels, timit, ucr
from keras_ortho.tasks.denoising import training_passes
from keras_ortho.tasks.images import read_images
from keras_ortho.tasks.mixtures import Noises, mixtures, read_recordings
from keras_ortho.tasks.timit import Record, read_manifest
from tests.tasks.image_data import FILES, draw, write_mnist, write_npz

RECORDS = [Record(f"{s}_0", s, np.zeros((1, 129)), np.ones(900, "i2")) for s in "ab"]
train_on = partial(training_passes, RECORDS, batch_size=1, batches=1)
ARGUMENTS = [
    (lambda: adding.load(2), "`length` must be at least 3. Received: length=2$"),
    (lambda: adding.load(test_size=1.5), "Received: test_size=1.5$"),
    (lambda: addition.load(1, train_size=99), "`num_sequences` must be at most 55"),
    (lambda: Noises(RECORDS[:1]), "`records` must have at least two .* Received: 1$"),
    (lambda: list(mixtures(RECORDS, ["rain"])), "`kind` must be .* 'rain'$"),
    (lambda: train_on(seconds=0), r"`seconds \* 8000` must be .*=0$"),
    (lambda: timit.load("x", pad_to="longest"), "Received: pad_to='longest'$"),
    (lambda: pixels.cifar10(form="noise-padded", length=31), "`length` .*=31$"),
]


@pytest.mark.parametrize(("call", "message"), ARGUMENTS, ids=lambda value: "call")
def test_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


OTHER_FORMAT = b'{"format": 1, "version": 2}'
SPLITS = {"train": {"shards": [{"file": "lost", "bytes": 1}]}}
MANIFEST = {"format": "keras-ortho-timit", "version": 2, "splits": SPLITS}
mnist, ucr_of = partial(read_images, "mnist"), partial(ucr.load, "A")
# A file, what it holds beside the others of its folder, and what the error says.
DAMAGED = [
    (mnist, f"{FILES[0]}.gz", gzip.compress(bytes(16), mtime=0)[:-9], "ended before"),
    (mnist, FILES[1], bytes(47), "with a class each.* 39 classes"),
    (characters.load, "ptb.valid.txt", b" % z it \n", r"valid text .*: \['%', 'z'\]$"),
    (characters.load, "ptb.test.txt", None, r"ptb\.test\.txt.*LDC99T42.*Received:"),
    (ucr_of, "A_TRAIN.tsv", b"1\t2\t3\n1\t2\n", "A_TRAIN.tsv: .*row 2"),
    (ucr_of, "A_TRAIN.tsv", b"1\tNaN\n", "A_TRAIN.tsv: .*missing values"),
    (ucr_of, "A_TEST.tsv", b"3\t2\n", r"trained on.*Received: \[3.0\]"),
    (ucr_of, "A_TEST.tsv", None, "https.*Received: data_dir=/"),
    (read_manifest, "manifest.json", OTHER_FORMAT, "version 2: create"),
    (read_manifest, "manifest.json", json.dumps(MANIFEST).encode(), "lost"),
    (read_manifest, "lost", b"", "has no manifest.json.*keras-ortho-data"),
    (read_recordings, "0.wav", b"", "two files.* Received: 1"),
]


@pytest.mark.parametrize("place", range(len(DAMAGED)))
def test_files(tmp_path, place):
    read, name, content, message = DAMAGED[place]
    if read is mnist:
        write_mnist(tmp_path, zipped=False)
    for other in ("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"):
        (tmp_path / other).write_bytes(b" a b it \n" * 300)
    for other in ("A_TRAIN.tsv", "A_TEST.tsv"):
        (tmp_path / other).write_text("1\t2\n2\t3\n")
    (tmp_path / name).write_bytes(content or b"")
    if content is None:
        (tmp_path / name).unlink()
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read(tmp_path)


def test_sizes_of_files(tmp_path):
    write_npz(tmp_path / "images.npz", draw((32, 32, 3), 5, 3))
    with pytest.raises(ValueError, match="the 5 images .* valid_size=4, train_s"):
        pixels.cifar10(tmp_path, valid_size=4, train_size=2)
    with pytest.raises(ValueError, match="uint8 of shape .*, 28, 28.* classes in /"):
        mnist(tmp_path)
    write_wav(tmp_path / "0.wav", np.ones(9), 8000)
    write_wav(tmp_path / "1.wav", np.zeros(9), 8000)
    with pytest.raises(ValueError, match="not be silent. Received: .*1.wav"):
        read_recordings(tmp_path)
