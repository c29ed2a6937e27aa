"""Removes noise from speech as it comes in, by ONNX Runtime alone.

    python examples/streaming.py out/denoise/goru-paper/seed-0/gain.keras noisy.wav
    arecord -q -t raw -f S16_LE -r 8000 | python examples/streaming.py step.onnx -

Freezes a network that computes a gain for each bin of a frame, as `denoise.py` trains
it, and exports a single time step to ONNX. ONNX Runtime then processes the speech as it
would come from a microphone, 128 samples at a time; the output lags by 32 ms. Prints
the time per frame and the real-time factor: its mean, divided by the length of a hop.
Writes step.onnx, the sound as clean.wav, and the gains as gains.npy.

`-` reads 16-bit samples at 8 kHz from standard input, to its end or until Ctrl-C. Needs
the extras `export` and `speech`.
"""

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.engine import plain_errors
from keras_ortho import audio
from keras_ortho.audio import FRAME_LENGTH, HOP_LENGTH, SAMPLE_RATE
from keras_ortho.extras import require


@plain_errors()
def main() -> None:
    """Exports the step if need be, and processes the speech hop by hop."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="gain.keras, or step.onnx")
    parser.add_argument("speech", help="an audio file, or - for standard input")
    out = Path("out/streaming")
    parser.add_argument("--out", type=Path, default=out, help=f"folder ({out})")
    options = parser.parse_args()
    path, out = options.model, options.out
    out.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".keras":
        path = export(path, out / "step.onnx")
    with np.load(path.with_suffix(".npz")) as initial:
        states = [initial[name] for name in initial]
    session = require("onnxruntime", extra="export").InferenceSession(path)
    names = [entry.name for entry in session.get_inputs()]

    def gain(spectrum: np.ndarray) -> np.ndarray:
        """Computes the gains of a frame, and keeps the states."""
        nonlocal states
        power = audio.log_power(spectrum)[None]
        given = dict(zip(names, [power, *states], strict=True))
        (gains,), *states = session.run(None, given)
        return gains

    window = np.hanning(FRAME_LENGTH + 1)[:-1]
    # The sum of the squared windows over each sample of a hop.
    weight = np.square(window).reshape(-1, HOP_LENGTH).sum(axis=0)
    heard, spoken = np.zeros(FRAME_LENGTH), np.zeros(FRAME_LENGTH)
    # The frame before the speech, which is all silence.
    gains = [gain(np.zeros(audio.NUM_BINS))]
    sound, seconds = [], []
    tqdm = require("tqdm", extra="speech").tqdm
    # Ctrl-C ends a microphone's input; what was read until then is written.
    with contextlib.suppress(KeyboardInterrupt):
        for samples in tqdm(hops(options.speech), unit="frame", disable=None):
            start = time.perf_counter()
            heard = np.concatenate([heard[HOP_LENGTH:], samples])
            spectrum = np.fft.rfft(window * heard).astype("complex64")
            gains.append(gain(spectrum))
            spoken += window * np.fft.irfft(gains[-1] * spectrum)
            sound.append(spoken[:HOP_LENGTH] / weight)
            spoken = np.concatenate([spoken[HOP_LENGTH:], np.zeros(HOP_LENGTH)])
            seconds.append(time.perf_counter() - start)
    np.save(out / "gains.npy", np.stack(gains))
    # The first frame begins one hop before the speech.
    waveform = np.concatenate(sound)[HOP_LENGTH:]
    audio.write_wav(out / "clean.wav", waveform, SAMPLE_RATE)
    budget = HOP_LENGTH / SAMPLE_RATE
    median, slow = np.percentile(seconds, [50, 99])
    print(
        f"{len(seconds)} frames, one each {1e3 * budget:.0f} ms: "
        f"median {1e3 * median:.3f} ms, 99th percentile {1e3 * slow:.3f} ms, "
        f"real-time factor {np.mean(seconds) / budget:.4f}; in {out}"
    )


def export(model: Path, path: Path) -> Path:
    """Exports a single time step of a network, the only use of Keras here."""
    import keras

    import keras_ortho

    frozen = keras_ortho.freeze(keras.saving.load_model(model, compile=False))
    keras_ortho.step_model(frozen).export(path, format="onnx", verbose=False)
    states = keras_ortho.initial_states(frozen, batch_size=1)
    np.savez(path.with_suffix(".npz"), *states)
    return path


def hops(speech: str) -> Iterator[np.ndarray]:
    """Reads speech as floats, one hop at a time, followed by a hop of silence."""
    size = 2 * HOP_LENGTH  # Bytes.
    file = sys.stdin.buffer
    if speech != "-":
        samples = audio.resample_to_int16(*audio.read_audio(speech, mono=True))
        file = io.BytesIO(samples.tobytes())
    while data := file.read(size):
        samples = np.frombuffer(data[: len(data) // 2 * 2], "<i2")
        yield audio.to_float(np.pad(samples, (0, HOP_LENGTH - len(samples))))
    yield np.zeros(HOP_LENGTH)


if __name__ == "__main__":
    main()
