"""Files with bits flipped, cut short or grown: a `ValueError` or `OSError` names them.

Whatever is done to a file, it is read, or refused with its name.
"""

import gzip
import io

import hypothesis
import numpy as np
import pytest
import soundfile
from hypothesis import strategies as st

from keras_ortho.audio.files import read_audio
from keras_ortho.tasks.characters import _read
from keras_ortho.tasks.images import read_images
from keras_ortho.tasks.ucr import read_series
from tests.tasks.image_data import FILES, draw, idx

SPEECH = np.round(3000 * np.sin(np.arange(700) / 5)).astype("int16")
IMAGES = np.arange(2 * 28 * 28, dtype="uint8").reshape(2, 28, 28)


def npz(save):
    (x, y), file = draw(2, 0), io.BytesIO()
    save(file, x_train=x, y_train=y, x_test=x, y_test=y)
    return file.getvalue()


def audio(form, **options):
    file = io.BytesIO()
    soundfile.write(file, SPEECH, 16000, "PCM_16", format=form, **options)
    return file.getvalue()


def images(path):
    for name in FILES:
        if name != path.name:
            labels = np.arange(2, dtype="uint8")
            array = IMAGES if "images" in name else labels
            path.with_name(name).write_bytes(idx(array))
    return read_images("mnist", path.parent)


def cifar10(path):
    return read_images("cifar10", path)


def ptb(path):
    return _read(path.parent, "train")


SERIES = "".join(f"{k}\t1.5\t-2.25e-1\t{k}\n" for k in range(1, 4)).encode()
FORMATS = {
    "idx": (FILES[0], idx(IMAGES), images),
    "gzipped idx": (FILES[0], gzip.compress(idx(IMAGES), mtime=0), images),
    "npz": ("images.npz", npz(np.savez), cifar10),
    "compressed npz": ("images.npz", npz(np.savez_compressed), cifar10),
    "ptb": ("ptb.train.txt", b" no it was n't \n <unk> \n", ptb),
    "spaced ptb": ("ptb.char.train.txt", b"n o _ i t \n ", ptb),
    "gzipped ptb": (
        "ptb.char.train.txt.gz",
        gzip.compress(b"n o _ i t \n ", mtime=0),
        ptb,
    ),
    "ucr": ("Two_TRAIN.tsv", SERIES, read_series),
    "wav": ("speech.wav", audio("WAV"), read_audio),
    "sphere": ("speech.wav", audio("NIST"), read_audio),
    "flac": ("speech.flac", audio("FLAC"), read_audio),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_read_or_named(form, tmp_path):
    name, content, read = FORMATS[form]
    path = tmp_path / name
    path.write_bytes(content)
    assert read(path) is not None
    refused = 0
    # Half of what is changed lies in the header, where most can go wrong.
    places = st.integers(0, 120) | st.integers(0, len(content) - 1)

    @hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
    @hypothesis.given(
        bits=st.lists(st.tuples(places, st.integers(0, 7)), max_size=4),
        cut=st.none() | places,
        more=st.binary(max_size=20),
    )
    def damage(bits, cut, more):
        nonlocal refused
        damaged = bytearray(content)
        for place, bit in bits:
            damaged[place % len(content)] ^= 1 << bit
        path.write_bytes(bytes(damaged[:cut]) + more)
        said = None
        try:
            read(path)
        except (OSError, ValueError) as error:
            said = str(error)
        assert said is None or str(tmp_path) in said
        refused += said is not None

    damage()
    assert refused > 0
