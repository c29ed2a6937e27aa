"""What tasks refuse, and how the message begins and ends."""

import gzip
from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from keras_ortho.audio import write_wav
from keras_ortho.tasks import (
    adding,
    addition,
    characters,
    copying,
    denoising,
    mixtures,
    pixels,
    timit,
    ucr,
)
from keras_ortho.tasks.images import read_images
from keras_ortho.tasks.sharing import Share, evaluation_share, training_share
from keras_ortho.tasks.timit_records import Record
from tests.tasks.image_data import write_mnist

ONES = np.ones(9)
RECORDS = [
    Record(f"{s}_0", s, np.zeros((1, 129)), np.ones(300, np.int16)) for s in "ab"
]
ALONE = [record for record in RECORDS if record.speaker == "a"]
SMALL = {"train_size": 20, "valid_size": 1, "test_size": 1}
FEW = tf.data.Dataset.range(8).batch(4)
train_on = partial(denoising.training_passes, RECORDS, batch_size=1, batches=1)
mix = partial(mixtures.mixtures, RECORDS)
add = partial(mixtures.Noises(RECORDS).mix, random=np.random.default_rng(0))
# A call, its arguments, and the message.
CASES = [
    *(
        (
            partial(adding.load, **{"length": 20, **SMALL, name: value}),
            f"{name}={value}",
        )
        for name, value in (
            *(("length", 2), ("batch_size", 0), ("train_size", -1)),
            *(("test_size", 1.5), ("seed", -1)),
        )
    ),
    *(
        (partial(addition.load, **SMALL | options), f"Received: {received}$")
        for options, received in (
            ({"digits": 0}, "digits=0"),
            ({"digits": 10}, "digits=10"),
            ({"valid_size": 0}, "valid_size=0"),
            ({"seed": "a"}, "seed='a'"),
            (
                {"digits": 1, "train_size": 54},
                "train_size=54, valid_size=1, test_size=1",
            ),
        )
    ),
    (lambda: addition.generate(56, 1), "`num_sequences` .* num_sequences=56$"),
    (lambda: copying.generate(2, 5, 1.5), "`seed` must be .* Received: seed=1.5$"),
    *(
        (partial(copying.load, n, **SMALL), "`delay` must be a positive integer")
        for n in (0, -20, 2.5, True)
    ),
    (lambda: characters.windows(ONES, 4, 3), "Received: 9 characters, batch_size=4"),
    (lambda: mixtures.Noises(ALONE), "`records` must have at .* Received: 1$"),
    (lambda: mixtures.mixtures(ALONE, ["pink"]), "`records` must have at least two"),
    (lambda: add("rain", ONES, "a", 0.0), "`kind` .* Received: 'rain'$"),
    (lambda: add("recorded", ONES, "a", 0.0), "`kind` .*: 'recorded'$"),
    (lambda: mix(["rain"]), "`kind` must be .* 'rain'$"),
    (lambda: mix(["pink"], [1e6]), "`snrs` .* Received: snrs=1"),
    (lambda: list(mix(["reverberation"])), "'reverberation'.*Received: a_0$"),
    (lambda: denoising.padded_batches([], 0), "`batch_size` must be .*batch_size=0$"),
    *(
        (partial(train_on, **{name: value}), message)
        for name, value, message in (
            ("batch_size", 0, "`batch_size` must be"),
            ("seconds", 0, "`seconds` must be .* Received: seconds=0$"),
            ("seconds", 1e-5, r"`seconds \* 8000` must be .*=0$"),
            ("seed", -1, "`seed` must be .* Received: seed=-1$"),
            ("kinds", ["pink", "rain"], "`kind` must be .* 'rain'$"),
            ("kinds", [], "`kinds` must contain at least one.* Received: "),
            ("snrs", (5.0, -5.0), "`snrs` .* Received: snrs=.5.0, -5.0"),
            ("snrs", (0.0, 1e4), "`snrs` .* 200 dB. Received: snrs=1"),
        )
    ),
    (lambda: timit.load("x", batch_size=0), "`batch_size` .* batch_size=0$"),
    (lambda: timit.load("x", splits=["dev"]), r"`splits` .* Received: \['dev'\]$"),
    (lambda: timit.load("x", splits=[]), r"`splits` .* Received: \[\]$"),
    (lambda: timit.load("x", pad_to="longest"), "Received: pad_to='longest'$"),
    (lambda: timit.utterances("x", "dev"), "Received: split='dev'$"),
    (lambda: read_images("emnist"), "Received: name='emnist'$"),
    (lambda: ucr.step_width(0), "Received: length=0$"),
    (lambda: ucr.load("x", None, batch_size=0), "Received: batch_size=0$"),
    (lambda: ucr.load("x", None, width=0), "Received: width=0$"),
    *(
        (partial(cut, FEW, share), f"{name}.*Received: ")
        for cut in (training_share, evaluation_share)
        for share, name in (
            (Share(0), "`replicas`"),
            (Share(2, 0), "`processes`"),
            (Share(3, processes=2), "`replicas`"),
            (Share(2, 2, 2), "`process`"),
            (Share(2, 2, -1), "`process`"),
        )
    ),
    (lambda: evaluation_share(FEW, Share(2)), "batches of `data` must be.*Received: "),
    (
        lambda: evaluation_share(tf.data.Dataset.zip(FEW, FEW).repeat(), Share(2)),
        "`data` must be finite.*Received: ",
    ),
]


@pytest.mark.parametrize("place", range(len(CASES)))
def test_message(place):
    call, message = CASES[place]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("steps", 5), ("steps", 0), ("batch_size", 0), ("valid_size", 0)),
        *(("valid_size", 40), ("train_size", 30), ("test_size", 11), ("seed", 1.5)),
    ],
)
def test_images(tmp_path, name, value):
    write_mnist(tmp_path, 40, 10)
    with pytest.raises(ValueError, match=f"`{name}` must .* {name}={value}$"):
        pixels.mnist(tmp_path, **{"valid_size": 11, name: value})
    for options in ({"form": "rows"}, {"form": "noise-padded", "length": 31}):
        with pytest.raises(ValueError, match=f"={list(options.values())[-1]!r}$"):
            pixels.cifar10(tmp_path, **options)


TEXTS = {"train": b" a b it \n", "valid": b" a \n", "test": b" it \n"}


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"test.txt": None}, {}, r"ptb\.test\.txt.*LDC99T42.*Received:"),
        ({"valid.txt": b" % z it \n"}, {}, r"valid text .* Received: \['%', 'z'\]$"),
        ({}, {"unroll": 2, "valid_size": 2}, "valid text is too short.* 2 characters"),
        ({}, {"batch_size": 0}, "Received: batch_size=0$"),
        ({}, {"train_size": 0}, "Received: train_size=0$"),
        ({}, {"test_size": 10**6}, "Received: test_size=1000000$"),
        ({"train.txt": b"\xff\xfe"}, {}, "train.txt: .*'utf-8' codec"),
        (
            {"train.txt": None, "char.train.txt": b"ab c"},
            {},
            "a space after each character",
        ),
        (
            {
                "train.txt": None,
                "char.train.txt.gz": gzip.compress(b"a b ", mtime=0)[:-9],
            },
            {},
            "train.txt.gz: .*ended before",
        ),
    ],
)
def test_texts(tmp_path, files, options, message):
    for name, content in ({f"{k}.txt": v for k, v in TEXTS.items()} | files).items():
        if content is not None:
            (tmp_path / f"ptb.{name}").write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        characters.load(tmp_path, **{"batch_size": 1, "unroll": 1} | options)


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ("1\t2\n2\t3\n", "1\t2\n3\t4\n", r"Received: \[3.0\] in .*Some_TEST.tsv"),
        ("1\t2\n2\t3\n", "1\t2\t3\n", "have 1 values.*Received: 2 in .*Some_TEST"),
        ("1\t2\n", "1\t2\n", "two series.* Received: 1 in .*Some_TRAIN.tsv"),
        ("1\t2\t4\t3\n", "1\t2\t4\t3\n", "`width` must .* 3. Received: width=2$"),
        ("1\t2\n1\t?\n", "1\t2\n", "Received: .*Some_TRAIN.tsv: .*'[?]'"),
        ("1\t2\n", None, "https.*Received: data_dir=/"),
    ],
)
def test_series(tmp_path, train, test, message):
    (tmp_path / "Some_TRAIN.tsv").write_text(train)
    if test is not None:
        (tmp_path / "Some_TEST.tsv").write_text(test)
    width = 2 if "width" in message else 1
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        ucr.load("Some", tmp_path, width=width)


def test_recordings(tmp_path):
    with pytest.raises(FileNotFoundError, match="noises does not exist. Received"):
        mixtures.read_recordings(tmp_path / "none")
    write_wav(tmp_path / "0.wav", ONES, 8000)
    with pytest.raises(ValueError, match="two files.* Received: 1"):
        mixtures.read_recordings(tmp_path)
    write_wav(tmp_path / "1.wav", 0 * ONES, 8000)
    with pytest.raises(ValueError, match="not be silent. Received: .*1.wav"):
        mixtures.read_recordings(tmp_path)
