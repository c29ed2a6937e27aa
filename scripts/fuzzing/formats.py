"""The file formats that the project reads: small valid files, and their readers.

Nothing here needs Keras. Only the reader of the shards needs TensorFlow.
"""

import contextlib
import gzip
import io
import json
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile

from keras_ortho.audio.files import read_audio
from keras_ortho.data_prep.corpus import Utterance
from keras_ortho.data_prep.features import Features
from keras_ortho.data_prep.listed import list_corpus
from keras_ortho.data_prep.plan import Shard
from keras_ortho.data_prep.shards import encode, find_shard
from keras_ortho.sealed import json_sha256
from keras_ortho.tasks import ptb_files
from keras_ortho.tasks.cifar_batches import read_binary, read_pickled
from keras_ortho.tasks.cifar_files import read_npz
from keras_ortho.tasks.mnist_files import read_idx
from keras_ortho.tasks.timit_records import SPLITS, read_manifest, utterances
from keras_ortho.tasks.ucr_files import read_series


class Seed(NamedTuple):
    """A valid file.

    Attributes:
        content: Its bytes, or the contents from which `wrap` makes them.
        wrap: Makes a file from its contents, with correct checksums. Default: `None`,
            the contents are the file.
    """

    content: bytes
    wrap: Callable[[bytes], bytes] | None = None

    @property
    def file(self) -> bytes:
        """The bytes of the file."""
        return self.wrap(self.content) if self.wrap else self.content


class Format(NamedTuple):
    """A file format.

    Attributes:
        file: Name of the file that is changed.
        seeds: Makes valid files.
        read: Reads a file of that name.
        prepare: Writes the other files of the folder. Default: none.
        weight: Share of the mutations, relative to other formats. Default: 1.
        tensorflow: Whether the reader needs TensorFlow. Default: `False`.
    """

    file: str
    seeds: Callable[[], Sequence[Seed]]
    read: Callable[[Path], Any]
    prepare: Callable[[Path], Any] = lambda folder: None
    weight: float = 1.0
    tensorflow: bool = False


_RANDOM = np.random.default_rng(0)
_SPEECH = (3000 * np.sin(np.arange(700) / 5) + _RANDOM.normal(0, 300, 700)).astype("i2")
_IMAGES = _RANDOM.integers(0, 256, (2, 3072), "uint8")


# --- Audio


def _audio(*options: dict[str, Any]) -> Callable[[], list[Seed]]:
    def make(
        format: str, subtype: str | None = None, channels: int = 1, **more: Any
    ) -> Seed:
        samples = np.stack([_SPEECH] * channels, axis=1)
        if subtype in ("FLOAT", "DOUBLE"):
            samples = samples / 2**15
        file = io.BytesIO()
        soundfile.write(file, samples, 16000, subtype, format=format, **more)
        return Seed(file.getvalue())

    return lambda: [make(**option) for option in options]


# --- Images


def _idx(*shape: int) -> list[Seed]:
    header = b"\0\0\x08" + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
    values = np.resize(_IMAGES, shape) % 10
    content = header + values.tobytes()
    return [Seed(content), Seed(content, lambda data: gzip.compress(data, 1, mtime=0))]


def _batches() -> list[Seed]:
    content = {
        "batch_label": "training batch 1 of 5",
        "labels": [3, 7],
        "data": _IMAGES,
        "filenames": ["a.png", "b.png"],
    }
    as_python_2 = (
        b"\x80\x02}q\x01(U\x06labelsq\x02]q\x03(K\x03K\x07eU\x04dataq\x04"
        b"cnumpy.core.multiarray\n_reconstruct\nq\x05cnumpy\nndarray\nq\x06"
        b"K\x00\x85U\x01b\x87Rq\x07(K\x01K\x02M\x00\x0c\x86cnumpy\ndtype\nq\x08"
        b"U\x02u1K\x00K\x01\x87Rq\x09(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
        b"K\x00tb\x89T" + struct.pack("<I", 6144) + _IMAGES.tobytes() + b"tbu."
    )
    return [Seed(as_python_2), *(Seed(pickle.dumps(content, p)) for p in (3, 4))]


def _archives() -> list[Seed]:
    images = _IMAGES.reshape(2, 32, 32, 3)
    arrays = {"x_train": images, "y_train": np.array([3, 7])}
    arrays |= {"x_test": images[:1], "y_test": np.array([1])}
    members = {}
    for name, array in arrays.items():
        file = io.BytesIO()
        np.save(file, array)
        members[f"{name}.npy"] = file.getvalue()

    def packed(name: str, method: int) -> Callable[[bytes], bytes]:
        def wrap(content: bytes) -> bytes:
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
                for member, value in (members | {name: content}).items():
                    archive.writestr(member, value)
            return file.getvalue()

        return wrap

    return [
        Seed(members[name], packed(name, method))
        for name in ("x_train.npy", "y_test.npy")
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    ]


# --- Text


def _words() -> list[Seed]:
    return [Seed(b" no it was n't black monday \n but while the <unk> did n't fall \n")]


def _spaced() -> list[Seed]:
    content = b"n o _ i t _ w a s \n b u t _ w h i l e \n " * 3
    return [Seed(content, lambda data: gzip.compress(data, 1, mtime=0))]


def _series(separator: str) -> list[Seed]:
    values = [f"{value:.6e}" for value in _SPEECH[:40] / 1000]
    lines = [separator.join([label, *values]) for label in ("1", "-1", "1")]
    return [Seed("\n".join(lines).encode() + b"\n")]


def _sktime() -> list[Seed]:
    values = ",".join(f"{value:.3f}" for value in _SPEECH[:40] / 1000)
    head = "#About the data\n@problemName Two\n@univariate true\n@classLabel true 1 2\n"
    return [Seed(f"{head}@data\n{values}:1\n{values}:2\n".encode())]


_SPOKEN = ("ann/1.wav", "ann/2.wav", "ben/1.wav")


def _spoken_list() -> list[Seed]:
    lines = [
        f'"{file}",{file[:3]},{split},{file[0]}{file[4]}'
        for file, split in zip(_SPOKEN, SPLITS, strict=True)
    ]
    short = "".join(f"{file},{file[:3]}\n" for file in _SPOKEN)
    return [
        Seed("\n".join(["file,speaker,split,id", *lines]).encode()),
        Seed(f"file,speaker\n{short}".encode()),
    ]


def _spoken_table() -> list[Seed]:
    return [Seed("".join(f"{file[0]}{file[4]} {file}\n" for file in _SPOKEN).encode())]


def _write_spoken(folder: Path) -> None:
    for file in _SPOKEN:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()
    speakers = "".join(f"{file[0]}{file[4]} {file[:3]}\n" for file in _SPOKEN)
    (folder / "utt2spk").write_text(speakers)


# --- Records

_SHARD_SIZE = 6000
_SHARD = Shard("train", 0, 1, (), "0123456789abcdef" * 4)


def _framed(*records: bytes) -> bytes:
    """Encodes records as in a TFRecord file, with their checksums."""
    parts = []
    for record in records:
        length = struct.pack("<Q", len(record))
        parts += [length, _checksum(length), record, _checksum(record)]
    return b"".join(parts)


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def _checksum(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _split(name: str, size: int) -> dict[str, Any]:
    return {
        "shards": [{"file": f"{name}.tfrecord", "sha256": "00", "bytes": size}],
        "frames": {f"faem0_sx{number}": 2 + number for number in range(2)},
        "num_utterances": 2,
        "num_frames": 5,
        "max_frames": 3,
        "seconds": 0.1,
    }


def _manifest(size: int) -> bytes:
    content = {
        "format": "keras-ortho-timit",
        "version": 2,
        "parameters": {"splits": "speakers"},
        "statistics": {"mean": [-30.5] * 129, "std": [15.25] * 129},
        "splits": {name: _split(name, size) for name in SPLITS},
        "rejected": [{"path": "a.wav", "reason": "The file is empty"}],
    }
    return json.dumps(content, indent=1).encode()


def _write_shards(folder: Path) -> None:
    for name in SPLITS:
        (folder / f"{name}.tfrecord").write_bytes(_framed(bytes(_SHARD_SIZE - 16)))


def _sidecars() -> list[Seed]:
    contents = {
        "shard": f"{_SHARD.stem}.tfrecord",
        "signature": _SHARD.signature,
        "sha256": "00",
        "bytes": 1,
        "utterances": [{"id": "faem0_sx42", "samples": 500, "frames": 7}],
        "moments": [[-200.0] * 129, [6000.0] * 129],
        "rejected": [],
    }
    whole = contents | {"sidecar_sha256": json_sha256(contents)}
    return [Seed(json.dumps(whole, indent=1).encode())]


def _examples() -> list[Seed]:
    utterance = Utterance("faem0_sx42", "faem0", "sx42", "dr2", None, "a.wav")
    frames = _RANDOM.normal(size=(5, 129)).astype("float32")
    record = encode(utterance, Features(_SPEECH[:300], frames))
    return [Seed(record, lambda data: _framed(data, record))]


def _read_shards(path: Path) -> list[Any]:
    content = _manifest(_SHARD_SIZE).replace(
        b'"train.tfrecord",\n     "sha256": "00",\n     "bytes": %d' % _SHARD_SIZE,
        b'"train.tfrecord",\n     "sha256": "00",\n     "bytes": %d'
        % path.stat().st_size,
    )
    path.with_name("manifest.json").write_bytes(content)
    return list(utterances(path.parent, "train"))


FORMATS = {
    "sphere": Format(
        "SX1.WAV",
        _audio(
            {"format": "NIST", "subtype": "PCM_16"},
            {"format": "NIST", "subtype": "PCM_16", "endian": "BIG"},
            {"format": "NIST", "subtype": "ULAW"},
        ),
        read_audio,
    ),
    "riff": Format(
        "speech.wav",
        _audio(
            {"format": "WAV", "subtype": "PCM_16"},
            {"format": "WAV", "subtype": "PCM_24", "channels": 2},
            {"format": "WAV", "subtype": "FLOAT"},
            {"format": "WAV", "subtype": "DOUBLE"},
            {"format": "WAV", "subtype": "ULAW"},
            {"format": "WAV", "subtype": "IMA_ADPCM"},
            {"format": "WAV", "subtype": "GSM610"},
            {"format": "WAVEX", "subtype": "PCM_16", "channels": 2},
            {"format": "RF64", "subtype": "PCM_16"},
        ),
        read_audio,
    ),
    "flac": Format(
        "speech.flac",
        _audio(
            {"format": "FLAC", "subtype": "PCM_16"},
            {"format": "FLAC", "subtype": "PCM_24", "channels": 2},
        ),
        read_audio,
    ),
    "mp3": Format("speech.mp3", _audio({"format": "MP3"}), read_audio),
    "ogg": Format(
        "speech.ogg",
        _audio({"format": "OGG", "subtype": "VORBIS"}),
        read_audio,
        weight=0.5,
    ),
    "other audio": Format(
        "speech.aiff",
        _audio(
            {"format": "AIFF"},
            {"format": "AU"},
            {"format": "CAF", "subtype": "PCM_16"},
            {"format": "RF64"},
        ),
        read_audio,
        weight=0.5,
    ),
    "idx": Format(
        "images-idx3-ubyte", lambda: _idx(2, 28, 28), lambda p: read_idx(p, 3)
    ),
    "idx labels": Format(
        "labels-idx1-ubyte",
        lambda: _idx(30),
        lambda path: read_idx(path, 1),
        weight=0.5,
    ),
    "cifar batch": Format("data_batch_1", _batches, read_pickled, weight=2.0),
    "cifar binary": Format(
        "data_batch_1.bin",
        lambda: [Seed(bytes([3]) + bytes(3072) + bytes([7]) + bytes(3072))],
        read_binary,
        weight=0.5,
    ),
    "npz": Format("images.npz", _archives, read_npz),
    "ptb words": Format(
        "ptb.train.txt",
        _words,
        lambda path: ptb_files.read(path.parent, "train"),
        weight=0.5,
    ),
    "ptb characters": Format(
        "ptb.char.train.txt.gz",
        _spaced,
        lambda path: ptb_files.read(path.parent, "train"),
        weight=0.5,
    ),
    "ucr tsv": Format("Two_TRAIN.tsv", lambda: _series("\t"), read_series, weight=0.5),
    "ucr txt": Format("Two_TRAIN.txt", lambda: _series("  "), read_series, weight=0.5),
    "ucr ts": Format("Two_TRAIN.ts", _sktime, read_series, weight=0.5),
    "list": Format(
        "list.csv",
        _spoken_list,
        lambda path: list_corpus(path.parent, [path]),
        _write_spoken,
        weight=0.5,
    ),
    "list of kaldi": Format(
        "wav.scp",
        _spoken_table,
        lambda path: list_corpus(path.parent, [path.parent]),
        _write_spoken,
        weight=0.5,
    ),
    "manifest": Format(
        "manifest.json",
        lambda: [Seed(_manifest(_SHARD_SIZE))],
        lambda path: read_manifest(path.parent),
        _write_shards,
    ),
    "sidecar": Format(
        f"{_SHARD.stem}.json",
        _sidecars,
        lambda path: find_shard(_SHARD, path.parent),
        lambda folder: (folder / f"{_SHARD.stem}.tfrecord").write_bytes(b"x"),
        weight=0.5,
    ),
    "shard": Format(
        "train.tfrecord",
        _examples,
        _read_shards,
        _write_shards,
        weight=0.2,  # Each file takes as long as a hundred of another format.
        tensorflow=True,
    ),
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppresses the warnings of libraries about damaged files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
