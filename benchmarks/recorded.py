"""The recorded data of the comparison, below the folder in `KERAS_ORTHO_DATA`."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_ortho import audio
from keras_ortho.tasks.images import read_images
from keras_ortho.tasks.ucr import read_series, step_width

Data = tuple[np.ndarray, np.ndarray]
PER_SPEAKER = 15  # excerpts of each of TIMIT's speakers
SIMPLEST = "nearest sequence, or linear map of a frame"


def folder(name: str) -> Path:
    """Returns the folder of a data set."""
    found = Path(os.environ.get("KERAS_ORTHO_DATA", ""), name)
    if not found.is_dir():
        raise FileNotFoundError(
            f"`KERAS_ORTHO_DATA` must name a folder with {name}. Received: {found}"
        )
    return found


def draw(
    read: Callable[[Any], Data], together: int, _: int, size: Any, seed: Any
) -> Data:
    """Returns all data in an order of the seed, some of each speaker together."""
    data = read(size)
    places = np.arange(len(data[0])).reshape(-1, together)
    order = np.random.default_rng(seed).permutation(places).reshape(-1)
    return data[0][order], data[1][order]


@functools.cache
def series(name: str) -> Data:
    """Reads the training series of a data set of the UCR archive, and their classes."""
    labels, values = read_series(folder("ucr") / name / f"{name}_TRAIN.tsv")
    x = values.reshape(len(values), -1, step_width(values.shape[1]))
    return x, np.unique(labels, return_inverse=True)[1].astype("uint8")


@functools.cache
def pixels(number: int) -> Data:
    """Reads training images of MNIST, in the papers' permutation of the pixels."""
    found = read_images("mnist", folder("mnist"))
    order = np.random.RandomState(92916).permutation(784)
    x = found.train[:number].reshape(-1, 784, 1)[:, order]
    return x.astype("float32") / 255, found.train_labels[:number]


@functools.cache
def speech(length: int) -> Data:
    """Reads excerpts of TIMIT, in bel above -40 dB; wanted is the frame after each."""
    excerpts = []
    for speaker in sorted(folder("timit_nltk_sample").glob("dr*")):
        own = []
        for path in sorted(speaker.glob("*.wav")):
            samples = audio.resample_to_int16(*audio.read_audio(path))
            frames = audio.log_power(audio.stft(samples)) / 10 + 4
            starts = range(0, len(frames) - length, length)
            own += [frames[start : start + length + 1] for start in starts]
        if len(own) < PER_SPEAKER:
            raise ValueError(
                f"Of each speaker there must be {PER_SPEAKER} excerpts of {length} "
                f"frames. Received: {len(own)} in {speaker}"
            )
        excerpts += own[:PER_SPEAKER]
    cut = np.stack(excerpts)
    return cut[:, :-1], cut[:, 1:]


def simplest(task: Any, seed: int) -> float:
    """Returns the error of the nearest series or image, or of a frame's linear map."""
    of_valid, _ = np.random.SeedSequence(seed).spawn(2)
    x, y = task.generate(0, task.size, of_valid)
    if y.ndim == 1:
        x = x.reshape(len(x), -1)
        train, valid = np.split(x, [task.fixed])
        distances = np.sum(train**2, axis=1) - 2 * valid @ train.T
        return float(np.mean(y[distances.argmin(axis=1)] != y[task.fixed :]))
    x = np.pad(x, ((0, 0), (0, 0), (0, 1)), constant_values=1)
    frame, after = (part[: task.fixed].reshape(-1, part.shape[2]) for part in (x, y))
    weights = np.linalg.lstsq(frame, after, rcond=None)[0]
    return float(np.mean((x[task.fixed :] @ weights - y[task.fixed :]) ** 2))
