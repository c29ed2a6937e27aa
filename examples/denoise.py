"""Removes noise from speech: trains, scores and applies recurrent networks.

    python examples/denoise.py --apply noisy.wav --to clean.wav
    python examples/denoise.py --out out/denoise
    python examples/denoise.py --records out/timit/records --out out/denoise
    python examples/denoise.py --run out/denoise --apply noisy.wav --to clean.wav

A network reads the log power of noisy speech, 129 bins every 16 ms, and outputs a gain
between 0 and 1 for each bin, from this frame and those before it: `streaming.py` runs
it while the sound comes in. It is trained on the scale-invariant signal-to-distortion
ratio (SI-SDR). Networks with equal parameter counts are compared with a Wiener filter.

The speech comes from the records that `keras-ortho-data` makes; without `--records`, a
small corpus is synthesized. The noises are synthetic; `--noise-dir` adds recorded ones.
The test has other speakers and noises than the training, among them wind and a siren.

Writes results.md, scores.csv, results.json, curves and spectrograms as PNG, wav/, and
for each model and seed a folder with best.keras, from waveform to waveform, and
gain.keras, from frames to gains. If the command is run again, it resumes; models and
seeds can be added.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from experiments import speech
from experiments.denoising import Denoiser, score, show, tables
from experiments.engine import plain_errors
from experiments.layers import title_of, trained_parameters
from experiments.optimizers import make_optimizer
from experiments.options import Settings, check_values, settle
from experiments.records import check_record, digest, run_record
from experiments.smoke import synthesize
from keras_ortho import audio
from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import replacing, write_csv, write_json
from keras_ortho.layers import STFT, InverseSTFT
from keras_ortho.losses import NegativeSISDR
from keras_ortho.metrics import SpeechScores
from keras_ortho.tasks import denoising, mixtures, timit
from keras_ortho.training import MODEL, best_epoch, train

RESULTS, SCORES, TABLE = "results.json", "scores.csv", "results.md"
NOISY, WIENER = "noisy", "Wiener filter"
TRAINED = Path(__file__).with_name("denoiser.keras")  # `docs/speech.md` says how.
USUAL = {
    "models": ["goru-paper", "lstm"],
    "units": 128,
    "epochs": 15,
    "updates": 100,  # In an epoch: new mixtures never run out.
    "batch_size": 16,
    "snrs": mixtures.SNRS,
}
# Of 3e-4, 1e-3 and 3e-3, the best for LSTM, GRU and GORU: see docs/goru.md.
RATE = 3e-3
SMOKE = {"units": 12, "epochs": 2, "updates": 4, "batch_size": 4, "snrs": (0.0, 10.0)}


@plain_errors()
def main() -> None:
    """Builds, trains and scores the networks, or applies a trained one."""
    if "--apply" in sys.argv:
        apply()
        return
    settings = parse()
    record, out = run_record(settings.record()), settings.out
    check_record(out, RESULTS, "models", [SCORES, TABLE])
    few = ["--speakers", "12", "--sentences", "3"] if settings.smoke else []
    records = settings.records or synthesize(out, few)
    utterances = {part: list(timit.utterances(records, part)) for part in timit.SPLITS}
    kinds: list[str] = [*mixtures.TRAINED]
    recorded: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    if settings.noise_dir:
        kinds.append(mixtures.RECORDED)
        recorded = mixtures.read_recordings(settings.noise_dir)

    mix = partial(mixtures.mixtures, seed=settings.seed)
    valid = list(mix(utterances["valid"], kinds, (0.0, 10.0), recordings=recorded[0]))
    every = [*kinds, *mixtures.UNHEARD]
    test = list(mix(utterances["test"], every, settings.snrs, recordings=recorded[1]))
    pairs = [(mixture.noisy, mixture.clean) for mixture in valid]
    scores = SpeechScores(pairs, "waveform", number=16)  # After each epoch.

    # By name and seed.
    systems: dict[tuple[str, int | str], Denoiser] = {
        (NOISY, ""): lambda noisy: noisy,
        (WIENER, ""): lambda noisy: np.stack([audio.wiener(x) for x in noisy]),
    }
    untrained = {name: system for (name, _), system in systems.items()}
    models: dict[str, list[dict[str, Any]]] = {}
    histories = {}
    for row in speech.matched_rows(settings.models, settings.units, rate=RATE):
        name = title_of(row.model)
        for seed in range(settings.seed, settings.seed + settings.seeds):
            passes = denoising.training_passes(
                utterances["train"],
                kinds,
                batch_size=settings.batch_size,
                batches=settings.updates,
                recordings=recorded[0],
                seed=seed,
            )
            keras.utils.set_random_seed(seed)
            mean, std = statistics(passes)
            model = denoiser(speech.layer_of(row), mean, std)
            model.compile(make_optimizer(row.rates, settings.updates), NegativeSISDR())
            entry = speech.describe(row) | {
                "seed": seed,
                "folder": f"{row.model.rpartition(':')[2]}/seed-{seed}",
                "parameters": trained_parameters(model),
            }
            print(f"\n{name}: {entry['parameters']:,} trained parameters, {seed=}")
            history = train(
                model,
                passes,
                out / entry["folder"],
                epochs=settings.epochs,
                validation_data=denoising.padded_batches(valid, settings.batch_size),
                callbacks=[scores],
                settings={
                    **entry,
                    "records": timit.fingerprint(records),
                    "kinds": kinds,
                    "recordings": digest(recorded[0]),
                    "validation_seed": settings.seed,
                    "batch_size": settings.batch_size,
                },
            )
            model.get_layer("gain").save(out / entry["folder"] / "gain.keras")
            best = history[best_epoch([epoch["val_loss"] for epoch in history])]
            entry |= {"epoch": best["epoch"], "validation_si_sdr": -best["val_loss"]}
            models.setdefault(name, []).append(entry)
            systems[name, seed] = model.predict_on_batch
            title = f"{name}, seed {seed}" if settings.seeds > 1 else name
            histories[title] = history

    rows = []
    for number, ((name, own), system) in enumerate(systems.items(), start=1):
        found = score(system, test, f"Scoring {name} ({number}/{len(systems)})")
        rows += [{"system": name, "seed": own, **means} for means in found]
    record["data"] = {
        "records": str(records),
        "utterances": {part: len(utterances[part]) for part in utterances},
        "mixtures": len(test),
    }
    write_json(out / RESULTS, record | {"models": models})
    write_csv(
        out / SCORES,
        (
            {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in each.items()}
            for each in rows
        ),
    )
    text = tables(rows)
    with replacing(out / TABLE) as aside:
        aside.write_text(text, "utf-8")
    of_all = SpeechScores(pairs, "waveform", ["si_sdr"], processes=1)
    plot_curves(
        out / "curves.png",
        {n: [-epoch["val_loss"] for epoch in h] for n, h in histories.items()},
        baselines={name: of_all.score(f)["si_sdr"] for name, f in untrained.items()},
        ylabel=f"validation SI-SDR, dB, {of_all.number} mixtures",
    )
    speech.draw_scores(out, histories, scores, untrained)
    middle = min(settings.snrs, key=abs)
    heard = [m for m in test if m.utterance == test[0].utterance and m.snr == middle]
    ours = ("", settings.seed)
    first = {name: system for (name, own), system in systems.items() if own in ours}
    show(out, first, heard, pictured="pink")
    print(f"\n{text}\nTables, figures and sound are in {out}")


def denoiser(layer: keras.layers.Layer, mean: Any, std: Any) -> keras.Model:
    """Makes the network, from noisy waveforms to clean ones."""
    frames = keras.Input((None, audio.NUM_BINS), name="log_power")
    # Not `Normalization`: its export to ONNX turns its constants into inputs.
    x = keras.layers.Rescaling(1 / std, -mean / std)(frames)
    x = layer(x)
    gains = keras.layers.Dense(audio.NUM_BINS, activation="sigmoid")(x)
    gain = keras.Model(frames, gains, name="gain")

    noisy = keras.Input((None,), name="noisy")
    spectrum = STFT()(noisy)
    power = ops.sum(ops.square(spectrum), axis=-1)
    decibels = 10 * ops.log10(audio.POWER_FLOOR + power)
    clean = InverseSTFT()(gain(decibels)[..., None] * spectrum, noisy)
    return keras.Model(noisy, clean)


def statistics(passes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Computes the mean and standard deviation of each bin of noisy speech, in dB."""
    batches = passes(0).take(4).as_numpy_iterator()
    frames = [audio.log_power(audio.stft(x)) for noisy, _ in batches for x in noisy]
    every = np.concatenate(frames).astype("float64")
    return every.mean(axis=0), every.std(axis=0)


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Reads the command line, and fills in what it leaves open."""
    parser = speech.speech_parser(__doc__)
    add = parser.add_argument
    add("--noise-dir", type=Path, help="folder of recorded noises, to add to the made")
    add("--seeds", type=int, default=1, metavar="N", help="train from N seeds (1)")
    given = parser.parse_args(argv)
    check_values(given, "speech")
    return settle(vars(given), SMOKE if given.smoke else {}, USUAL)


def apply() -> None:
    """Cleans a recording with the network that comes along, or the first of a run."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--run", type=Path)
    for name in ("--apply", "--to"):
        parser.add_argument(name, type=Path, required=True)
    given = parser.parse_args()
    if given.to.resolve() == given.apply.resolve():
        raise ValueError(
            f"`--to` must be another file than `--apply`. Received: {given.to}"
        )
    networks = [*given.run.glob(f"*/*/{MODEL}")] if given.run else [TRAINED]
    if not networks:
        raise FileNotFoundError(
            f"`--run` must be the folder of a run with a trained network, {MODEL}. "
            f"Received: {given.run}"
        )
    first = min(networks, key=lambda path: path.stat().st_mtime)
    recorded, rate = audio.read_audio(given.apply, mono=True)
    samples = audio.to_float(audio.resample_to_int16(recorded, rate))
    model = keras.saving.load_model(first, compile=False)
    cleaned = model.predict(samples[None], verbose=0)[0]
    audio.write_wav(given.to, cleaned, audio.SAMPLE_RATE)
    print(f"Cleaned by {first}: {given.to}, at 8 kHz")


if __name__ == "__main__":
    main()
