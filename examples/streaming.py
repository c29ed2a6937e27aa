"""Runs a trained network frame by frame, without TensorFlow and Keras.

    python examples/streaming.py out/demo/scornn/best.keras speech.wav
    arecord -q -t raw -f S16_LE -r 8000 | python examples/streaming.py step.onnx -

Takes a network of recurrent layers and of layers that see each frame by itself, which
predicts the next frame of speech, such as `examples/timit.py --raw` trains, freezes it
and exports a single step to ONNX, in a process of its own. Then speech goes through it
as it would come from a microphone, 128 samples at a time, in ONNX Runtime: what the
network expects of the next frame is heard, with the phase of the frame that came.
Prints how long a frame took, its median and the 99th percentile, and the real-time
factor, the share of the time that there is for it. It writes step.onnx, the sound as
predicted.wav and the log power as predicted.npy.

`-` reads 16-bit samples at 8 kHz from standard input. Needs the extra `export`, and for
files `speech`.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from keras_ortho.audio import (
    FRAME_LENGTH,
    HOP_LENGTH,
    NUM_BINS,
    SAMPLE_RATE,
    log_power,
    magnitude,
    read_audio,
    resample_to_int16,
    write_wav,
)
from keras_ortho.extras import require
from keras_ortho.files import replacing

EXPORT = """
import sys, keras, numpy as np, keras_ortho
model = keras.saving.load_model(sys.argv[1], compile=False)
frozen = keras_ortho.freeze(model)
keras_ortho.step_model(frozen).export(sys.argv[2], format="onnx", verbose=False)
np.savez(sys.argv[3], *keras_ortho.initial_states(frozen, batch_size=1))
"""


class Step:
    """An exported step that keeps its states.

    Args:
        path: The ONNX file; the states to begin with stand beside it, as `.npz`.
    """

    def __init__(self, path: Path) -> None:
        runtime = require("onnxruntime", extra="export")
        self.session = runtime.InferenceSession(path)
        self.names = [entry.name for entry in self.session.get_inputs()]
        with np.load(path.with_suffix(".npz")) as states:
            self.states = [states[name] for name in states]

    def __call__(self, frame: np.ndarray) -> np.ndarray:
        """Takes a frame, of shape `(bins,)`, and gives the prediction of the next."""
        given = dict(zip(self.names, [frame[None], *self.states], strict=True))
        (output,), *self.states = self.session.run(None, given)
        return output


class Speech:
    """The spectrum of speech that comes, and speech of the spectrum that goes out.

    The frames are those of `keras_ortho.audio.stft`, but for the first, which is of
    silence alone. What goes out is a hop behind what comes in.
    """

    def __init__(self) -> None:
        self.window = np.hanning(FRAME_LENGTH + 1)[:-1]
        self.heard = np.zeros(FRAME_LENGTH)
        self.spoken = np.zeros(FRAME_LENGTH)
        # The squared windows that lie over each sample of a hop.
        self.weight = np.square(self.window).reshape(-1, HOP_LENGTH).sum(axis=0)

    def analyze(self, samples: np.ndarray) -> np.ndarray:
        """Gives the spectrum of the frame that a hop of samples completes."""
        self.heard = np.concatenate([self.heard[HOP_LENGTH:], samples])
        return np.fft.rfft(self.window * self.heard).astype("complex64")

    def synthesize(self, spectrum: np.ndarray) -> np.ndarray:
        """Gives the hop of samples that a spectrum completes."""
        self.spoken += self.window * np.fft.irfft(spectrum)
        samples = self.spoken[:HOP_LENGTH] / self.weight
        self.spoken = np.concatenate([self.spoken[HOP_LENGTH:], np.zeros(HOP_LENGTH)])
        return samples


def main() -> None:
    """Runs the command."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.model
    if path.suffix == ".keras":
        path = export(path, options.out / "step.onnx")
    step, speech = Step(path), Speech()
    # The frame before the speech, of silence alone.
    expected = step(log_power(np.zeros((1, NUM_BINS)))[0])
    predicted, sound, seconds = [expected], [], []
    for samples in tqdm(hops(options.speech), unit="frame", disable=None):
        start = time.perf_counter()
        spectrum = speech.analyze(samples)
        heard = magnitude(expected) * np.exp(1j * np.angle(spectrum))
        sound.append(speech.synthesize(heard))
        expected = step(log_power(spectrum))
        seconds.append(time.perf_counter() - start)
        predicted.append(expected)
    # The first frame begins a hop before the speech.
    waveform = np.concatenate(sound)[HOP_LENGTH:]
    with replacing(options.out / "predicted.npy") as aside, aside.open("wb") as file:
        np.save(file, np.stack(predicted))
    write_wav(options.out / "predicted.wav", waveform, SAMPLE_RATE)
    report(np.array(seconds), options.out)


def export(model: Path, path: Path) -> Path:
    """Exports a step, where Keras is loaded, and gives its path."""
    command = [sys.executable, "-c", EXPORT, str(model), str(path)]
    subprocess.run([*command, str(path.with_suffix(".npz"))], check=True)
    return path


def hops(speech: str) -> Iterator[np.ndarray]:
    """Reads speech as floats, a hop at a time, and one of silence behind it."""
    if speech == "-":
        while data := sys.stdin.buffer.read(2 * HOP_LENGTH):
            yield _hop(np.frombuffer(data[: len(data) // 2 * 2], "<i2"))
    else:
        samples, rate = read_audio(speech)
        samples = resample_to_int16(samples, rate)
        for start in range(0, len(samples), HOP_LENGTH):
            yield _hop(samples[start : start + HOP_LENGTH])
    yield np.zeros(HOP_LENGTH)


def _hop(samples: np.ndarray) -> np.ndarray:
    return np.pad(samples, (0, HOP_LENGTH - len(samples))) / 32768


def report(seconds: np.ndarray, out: Path) -> None:
    """Prints how long the frames took."""
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
    parser.add_argument("model", type=Path, help="a .keras file, or step.onnx")
    parser.add_argument("speech", help="an audio file, or - for standard input")
    parser.add_argument("--out", type=Path, default=Path("out/streaming"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
