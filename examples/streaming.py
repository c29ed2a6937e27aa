"""Removes noise from speech as it comes in, by ONNX Runtime alone.

    python examples/streaming.py out/denoise/goru-paper/seed-0/gain.keras noisy.wav
    arecord -q -t raw -f S16_LE -r 8000 | python examples/streaming.py step.onnx -

Freezes a network that computes a gain for each bin of a frame, as trained by
`examples/denoise.py`, and exports a single time step to ONNX, in a separate process.
ONNX Runtime then processes the speech as it would come from a microphone, 128 samples
at a time; the output lags by one window, 32 ms. Prints the median and the 99th
percentile of the time per frame, and the real-time factor: the mean time per frame,
divided by the length of a hop. Writes step.onnx, the sound as clean.wav, and the gains
as gains.npy.

`-` reads 16-bit samples at 8 kHz from standard input, to its end or until Ctrl-C. Needs
the extras `export` and `speech`.
"""

import argparse
import contextlib
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from experiments.errors import plain_errors
from keras_ortho.audio import (
    FRAME_LENGTH,
    HOP_LENGTH,
    NUM_BINS,
    SAMPLE_RATE,
    log_power,
    read_audio,
    resample_to_int16,
    to_float,
    write_wav,
)
from keras_ortho.extras import require
from keras_ortho.files import replacing


class Step:
    """An exported time step that keeps its states."""

    def __init__(self, path: Path) -> None:
        runtime = require("onnxruntime", extra="export")
        with np.load(path.with_suffix(".npz")) as states:
            self.states = [states[name] for name in states]
        self.session = runtime.InferenceSession(path)
        self.names = [entry.name for entry in self.session.get_inputs()]

    def __call__(self, frame: np.ndarray) -> np.ndarray:
        """Returns the gains of a frame, from its log power, both of shape `(bins,)`."""
        given = dict(zip(self.names, [frame[None], *self.states], strict=True))
        (output,), *self.states = self.session.run(None, given)
        return output


class Speech:
    """A streaming short-time Fourier transform and its inverse.

    The frames are those of `keras_ortho.audio.stft` without the first, which is all
    silence. The output lags one hop behind the input.
    """

    def __init__(self) -> None:
        self.window = np.hanning(FRAME_LENGTH + 1)[:-1]
        self.heard = np.zeros(FRAME_LENGTH)
        self.spoken = np.zeros(FRAME_LENGTH)
        # The sum of the squared windows over each sample of a hop.
        self.weight = np.square(self.window).reshape(-1, HOP_LENGTH).sum(axis=0)

    def analyze(self, samples: np.ndarray) -> np.ndarray:
        """Computes the spectrum of the frame that a hop of samples completes."""
        self.heard = np.concatenate([self.heard[HOP_LENGTH:], samples])
        return np.fft.rfft(self.window * self.heard).astype("complex64")

    def synthesize(self, spectrum: np.ndarray) -> np.ndarray:
        """Computes the hop of samples that a spectrum completes."""
        self.spoken += self.window * np.fft.irfft(spectrum)
        samples = self.spoken[:HOP_LENGTH] / self.weight
        self.spoken = np.concatenate([self.spoken[HOP_LENGTH:], np.zeros(HOP_LENGTH)])
        return samples


@plain_errors()
def main() -> None:
    """Runs the command."""
    options = parse()
    path = options.model
    if path.suffix not in (".keras", ".onnx"):
        raise ValueError(f"`model` must be a .keras or an .onnx file. Received: {path}")
    if not path.is_file():
        raise FileNotFoundError(f"`model` must be a file. Received: {path}")
    tqdm = require("tqdm", extra="speech").tqdm
    speech_in = hops(options.speech)
    options.out.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".keras":
        model, path = path, options.out / "step.onnx"
        # In a separate process, because a library cannot be unloaded.
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawn, max_tasks_per_child=1) as process:
            process.submit(export, model, path).result()
    step, speech = Step(path), Speech()
    # The frame before the speech, which is all silence.
    gains = [step(log_power(np.zeros((1, NUM_BINS)))[0])]
    sound, seconds = [], []
    # Ctrl-C ends a microphone's input; what was read until then is written.
    with contextlib.suppress(KeyboardInterrupt):
        for samples in tqdm(speech_in, unit="frame", disable=None):
            start = time.perf_counter()
            spectrum = speech.analyze(samples)
            gain = step(log_power(spectrum))
            cleaned = speech.synthesize(gain * spectrum)
            gains.append(gain)
            sound.append(cleaned)
            seconds.append(time.perf_counter() - start)
    if not sound:
        raise ValueError("There must be speech. Received: none before the end")
    # The first frame begins one hop before the speech.
    waveform = np.concatenate(sound)[HOP_LENGTH:]
    with replacing(options.out / "gains.npy") as aside, aside.open("wb") as file:
        np.save(file, np.stack(gains))
    write_wav(options.out / "clean.wav", waveform, SAMPLE_RATE)
    report(np.array(seconds), options.out)


def export(model: Path, path: Path) -> None:
    """Exports a single time step of a network. Imports Keras."""
    require("onnx", extra="export")
    import keras

    import keras_ortho

    trained = keras.saving.load_model(model, compile=False)
    frozen = keras_ortho.freeze(trained)
    step = keras_ortho.step_model(frozen)
    step.export(path, format="onnx", verbose=False)
    np.savez(
        path.with_suffix(".npz"), *keras_ortho.initial_states(frozen, batch_size=1)
    )


def hops(speech: str) -> Iterator[np.ndarray]:
    """Reads speech as floats, one hop at a time, followed by a hop of silence.

    A file is read at once, standard input as it arrives.
    """
    if speech == "-":
        return _padded(_from_input())
    samples = resample_to_int16(*read_audio(speech, mono=True))
    starts = range(0, len(samples), HOP_LENGTH)
    return _padded(samples[start : start + HOP_LENGTH] for start in starts)


def _from_input() -> Iterator[np.ndarray]:
    data = sys.stdin.buffer.read(2 * HOP_LENGTH)
    if len(data) < 2:
        raise ValueError(
            f"Standard input must hold a sample. Received: {len(data)} bytes"
        )
    while data:
        yield np.frombuffer(data[: len(data) // 2 * 2], "<i2")
        data = sys.stdin.buffer.read(2 * HOP_LENGTH)


def _padded(pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    for piece in pieces:
        yield to_float(np.pad(piece, (0, HOP_LENGTH - len(piece))))
    yield np.zeros(HOP_LENGTH)


def report(seconds: np.ndarray, out: Path) -> None:
    """Prints the computation times of the frames."""
    budget = HOP_LENGTH / SAMPLE_RATE
    median, slow = np.percentile(seconds, [50, 99])
    print(
        f"{len(seconds)} frames, one each {1e3 * budget:.0f} ms: "
        f"median {1e3 * median:.3f} ms, 99th percentile {1e3 * slow:.3f} ms, "
        f"real-time factor {seconds.mean() / budget:.4f}; in {out}"
    )


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="gain.keras, or step.onnx")
    parser.add_argument("speech", help="an audio file, or - for standard input")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/streaming"),
        help="folder for what is written (out/streaming)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
