"""Small data sets, written to a folder; returned are the settings that load them."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.engine import run_python


def sequences(length: int, folder: Path) -> dict[str, Any]:
    """Returns the settings of a few short sequences, which need no files."""
    sizes = {"train_size": 400, "valid_size": 40, "test_size": 40}
    return {"length": length, "evaluate_every": 20, **sizes}


def images(name: str, shape: tuple[int, ...], folder: Path) -> dict[str, Any]:
    """Writes images as Keras does; the number of lit rows tells the class."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {}
    for part, size in (("train", 120), ("test", 20)):
        labels = (np.arange(size) % 10).astype("uint8")
        lit = np.arange(shape[0]) < 2 * labels[:, None] + 2
        x = np.zeros((size, *shape), "uint8")
        x[lit] = 200
        arrays |= {f"x_{part}": x, f"y_{part}": labels}
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    return {"data_dir": folder, "valid_size": 20}


mnist = functools.partial(images, "mnist", (28, 28))
cifar10 = functools.partial(images, "cifar10", (32, 32, 3))


def ucr(folder: Path) -> dict[str, Any]:
    """Writes sines of two frequencies as a data set of the UCR archive."""
    name = "Sines"
    (folder / name).mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    time = np.linspace(0, 2 * np.pi, 36)
    for part, size in (("TRAIN", 40), ("TEST", 20)):
        labels = np.arange(size)[:, None] % 2 + 1
        series = np.sin(3 * labels * time + random.uniform(0, 2 * np.pi, (size, 1)))
        rows = np.hstack([labels, series])
        np.savetxt(folder / name / f"{name}_{part}.tsv", rows, "%.8g", delimiter="\t")
    return {"data_dir": folder, "name": name, "evaluate_every": 2}


def ptb(folder: Path) -> dict[str, Any]:
    """Writes sentences of a few words as the files of the Penn Treebank."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    words = ["<unk>", "the", "N", "of", "shares", "n't", "a", "company", "said"]
    for part, sentences in (("train", 150), ("valid", 30), ("test", 30)):
        lines = [" ".join(random.choice(words, 8)) for _ in range(sentences)]
        text = "".join(f" {line} \n" for line in lines)
        (folder / f"ptb.{part}.txt").write_text(text, "utf-8")
    return {"data_dir": folder, "unroll": 10, "evaluate_every": 10}


def speech(folder: Path) -> dict[str, Any]:
    """Synthesizes a few sentences, and prepares them like TIMIT."""
    few = ["--speakers", "5", "--sentences", "3"]
    return {"data_dir": synthesize(folder, few), "batch_size": 2}


def synthesize(folder: Path, few: Sequence[str]) -> Path:
    """Synthesizes speech, and prepares it like TIMIT."""
    corpus, records = (folder.resolve() / name for name in ("corpus", "records"))
    run_python(["-m", "keras_ortho.data_prep.demo_corpus", str(corpus), *few])
    run_python(["-m", "keras_ortho.data_prep", str(corpus), str(records)])
    return records
