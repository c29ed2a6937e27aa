"""Removes noise from speech: trains, scores and applies recurrent networks.

    python examples/denoise.py --out out/denoise
    python examples/denoise.py --records out/timit/records --out out/denoise
    python examples/denoise.py --run out/denoise --apply noisy.wav --to clean.wav

A network reads the log power of noisy speech frame by frame, 129 bins every 16 ms, and
outputs a gain between 0 and 1 for each bin. It sees only the current frame and those
before it, so it can run while the sound comes in: see `examples/streaming.py`. It is
trained on the scale-invariant signal-to-distortion ratio (SI-SDR) of its output.

The speech comes from the records that `keras-ortho-data` makes of TIMIT or of any
folder of recordings; without `--records`, a small corpus is synthesized. The noises are
synthetic; `--noise-dir` adds recorded ones. The test uses speakers and noises that are
not in the training, among them wind and a siren, which resemble no training noise.

Scores the SI-SDR, segmental SNR, STOI and PESQ of the noisy speech, of a Wiener filter,
and of the paper's GORU and an LSTM with equal parameter counts, or of the layers that
`--models` names. Writes results.md, scores.csv, results.json, curves.png,
curves_stoi.png, curves_pesq.png, spectrograms.png, wav/, and for each model and seed a
folder with best.keras, from waveform to waveform, and gain.keras, from frames to gains.
If the command is run again, it resumes; models and seeds can be added.
"""

import argparse
import itertools
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from experiments.denoising import (
    NOISY,
    UNTRAINED,
    WIENER,
    Denoiser,
    score,
    show,
    tables,
    write_scores,
)
from experiments.errors import plain_errors
from experiments.layers import LAYERS, trained_parameters
from experiments.optimizers import make_optimizer
from experiments.options import (
    Settings,
    check_values,
    new_parser,
    settle,
)
from experiments.own_layers import is_own
from experiments.presets import Preset
from experiments.records import check_record, digest, run_record
from experiments.smoke import synthesize
from experiments.speech import (
    FEED_FORWARD,
    check_titles,
    describe,
    make_frame_layer,
    matched_rows,
    read_frame_model,
    title_of_frame_model,
)
from keras_ortho.audio import (
    NUM_BINS,
    POWER_FLOOR,
    SAMPLE_RATE,
    log_power,
    read_audio,
    resample_to_int16,
    stft,
    to_float,
    wiener,
    write_wav,
)
from keras_ortho.checks import check_decibels
from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import replacing, write_json
from keras_ortho.layers import STFT, InverseSTFT
from keras_ortho.locks import locked
from keras_ortho.losses import NegativeSISDR
from keras_ortho.metrics import SpeechScores
from keras_ortho.tasks import denoising, timit
from keras_ortho.tasks.mixtures import (
    RECORDED,
    SNRS,
    TRAINED,
    UNHEARD,
    Mixture,
    mixtures,
    read_recordings,
)
from keras_ortho.tasks.timit_records import fingerprint
from keras_ortho.training import MODEL, best_epoch, train

RESULTS, SCORES, TABLE = "results.json", "scores.csv", "results.md"
GAIN = "gain.keras"
SCORED = 16  # Validation mixtures that are scored after each epoch.
STEPS = 100  # Updates per epoch: new mixtures never run out.
USUAL: dict[str, Any] = {"units": 128, "epochs": 15, "batch_size": 16}
SMOKE: dict[str, Any] = {"units": 12, "epochs": 2, "batch_size": 4}


@plain_errors()
def main() -> None:
    """Trains and scores networks, or applies a trained one."""
    if "--apply" in sys.argv:
        apply(*parse_application())
        return
    settings = parse()
    record, out = run_record(settings.record()), settings.out
    check_record(out, RESULTS, "models", [SCORES, TABLE])
    rows = matched_rows(settings.models, settings.units)
    kinds: tuple[str, ...] = TRAINED
    recorded: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    if settings.noise_dir:
        kinds, recorded = (*kinds, RECORDED), read_recordings(settings.noise_dir)
    with locked(out, ".corpus.lock"):
        few = ["--speakers", "12", "--sentences", "3"] if settings.smoke else []
        records = settings.records or synthesize(out, few)
    shared = {
        "records": fingerprint(records),
        "kinds": kinds,
        "recordings": digest(recorded[0]),
        "validation_seed": settings.seed,
        "batch_size": settings.batch_size,
    }
    speech = {split: list(timit.utterances(records, split)) for split in timit.SPLITS}
    known = check_speakers(records, speech)
    mix = partial(mixtures, seed=settings.seed)
    valid = list(mix(speech["valid"], kinds, (0.0, 10.0), recordings=recorded[0]))
    # Before the training, so that an error in the test mixtures shows early.
    every = (*kinds, *UNHEARD)
    test = list(mix(speech["test"], every, settings.snrs, recordings=recorded[1]))
    passes = partial(
        denoising.training_passes,
        speech["train"],
        kinds,
        batch_size=settings.batch_size,
        batches=4 if settings.smoke else STEPS,
        recordings=recorded[0],
    )

    pairs = [(each.noisy, each.clean) for each in valid]
    callback = SpeechScores(pairs, "waveform", number=SCORED)
    trained: dict[str, list[Trained]] = {}
    for row in rows:
        trained[title_of_frame_model(row.model)] = [
            fit(row, seed, passes(seed=seed), valid, callback, shared, settings)
            for seed in range(settings.seed, settings.seed + settings.seeds)
        ]
    systems = denoisers(trained, settings)
    passes_over_test = sum(map(len, systems.values()))
    number, scores = itertools.count(1), {}
    for name, several in systems.items():
        scores[name] = [
            score(denoise, test, f"Scoring {name} ({next(number)}/{passes_over_test})")
            for denoise in several
        ]
    sizes = {split: len(utterances) for split, utterances in speech.items()}
    data = {
        "records": str(records),
        "utterances": sizes,
        "mixtures": len(test),
        "test_speakers_in_training": known,
    }
    entries = {name: [one.entry for one in each] for name, each in trained.items()}
    write_json(out / RESULTS, record | {"data": data, "models": entries})
    write_scores(out / SCORES, scores, settings.seed)
    text = tables(scores)
    if known:
        text += f"\nOf the speakers of the test {known} are in the training, too.\n"
    with replacing(out / TABLE) as aside:
        aside.write_text(text, "utf-8")
    of_all = SpeechScores(pairs, "waveform", ["si_sdr"], processes=1)
    drawn = {
        "val_loss": ("curves.png", "SI-SDR, dB", "si_sdr", of_all),
        "val_stoi": ("curves_stoi.png", "STOI", "stoi", callback),
        "val_pesq": ("curves_pesq.png", "PESQ MOS-LQO", "pesq", callback),
    }
    for figure, (file, title, key, scored) in drawn.items():
        plot_curves(
            out / file,
            curves(trained, figure),
            baselines={name: scored.score(systems[name][0])[key] for name in UNTRAINED},
            ylabel=f"validation {title}, {scored.number} mixtures",
        )
    middle = min(settings.snrs, key=abs)
    heard = [m for m in test if m.utterance == test[0].utterance and m.snr == middle]
    shown = {name: several[0] for name, several in systems.items() if name != NOISY}
    show(out, shown, heard, pictured="pink")
    print(f"\n{text}\nTables, figures and sound are in {out}")


def check_speakers(records: Path, speech: Mapping[str, Sequence[Any]]) -> int:
    """Checks that each split has another speaker for the babble."""
    speakers = {
        split: {utterance.speaker for utterance in utterances}
        for split, utterances in speech.items()
    }
    for split, of_split in speakers.items():
        if len(of_split) < 2:
            raise ValueError(
                "--records must have two speakers in each split, for the babble of "
                "others: a list of files may say who is in which. "
                f"Received: {records}, with {len(of_split)} in {split}"
            )
    return len(speakers["train"] & speakers["test"])


class Trained(NamedTuple):
    """A network trained from one seed, its entry in the results, and its epochs."""

    model: keras.Model
    entry: dict[str, Any]
    history: list[dict[str, float]]


def fit(
    row: Preset,
    seed: int,
    passes: Any,
    valid: list[Mixture],
    callback: SpeechScores,
    shared: Mapping[str, Any],
    settings: Settings,
) -> Trained:
    """Trains a network from a seed, in its own folder."""
    keras.utils.set_random_seed(seed)
    model = network(row, *statistics(passes))
    name = title_of_frame_model(row.model)
    entry = describe(row) | {
        "seed": seed,
        "folder": f"{name if is_own(row.model) else row.model}/seed-{seed}",
        "parameters": trained_parameters(model),
    }
    print(f"\n{name}: {entry['parameters']:,} trained parameters, {seed=}")
    history = train(
        model,
        passes,
        settings.out / entry["folder"],
        epochs=settings.epochs,
        validation_data=denoising.padded_batches(valid, settings.batch_size),
        callbacks=[callback],
        settings={**entry, **shared},
    )
    losses = [epoch["val_loss"] for epoch in history]
    best = best_epoch(losses)
    entry["epoch"] = best + 1
    entry["validation_si_sdr"] = -losses[best]
    return Trained(model, entry, history)


def denoisers(
    trained: Mapping[str, list[Trained]], settings: Settings
) -> dict[str, list[Denoiser]]:
    """Returns the systems to score: the noisy speech, a Wiener filter, the networks.

    Saves the part of each network that maps frames to gains in the network's folder.
    """
    systems: dict[str, list[Denoiser]] = {
        NOISY: [lambda noisy: noisy],
        WIENER: [lambda noisy: np.stack([wiener(x) for x in noisy])],
    }
    for name, several in trained.items():
        systems[name] = []
        for one in several:
            folder = settings.out / one.entry["folder"]
            with replacing(folder / GAIN) as aside:
                one.model.get_layer("gain").save(aside)
            systems[name].append(one.model.predict_on_batch)
    return systems


def curves(trained: Mapping[str, list[Trained]], figure: str) -> dict[str, list[float]]:
    """Returns a figure of each epoch by label; the loss is the negative SI-SDR."""
    return {
        f"{name}, seed {one.entry['seed']}" if len(several) > 1 else name: [
            -epoch[figure] if figure == "val_loss" else epoch[figure]
            for epoch in one.history
        ]
        for name, several in trained.items()
        for one in several
    }


def network(row: Preset, mean: np.ndarray, std: np.ndarray) -> keras.Model:
    """Makes the network, from noisy waveforms to clean ones."""
    frames = keras.Input((None, NUM_BINS), name="log_power")
    # Not `Normalization`: its export to ONNX turns its constants into inputs.
    x = keras.layers.Rescaling(1 / std, -mean / std)(frames)
    x = make_frame_layer(row.model, row.units, row.arguments)(x)
    gains = keras.layers.Dense(NUM_BINS, activation="sigmoid")(x)
    gain = keras.Model(frames, gains, name="gain")

    noisy = keras.Input((None,), name="noisy")
    spectrum = STFT()(noisy)
    power = ops.sum(ops.square(spectrum), axis=-1)
    decibels = 10 * ops.log10(POWER_FLOOR + power)
    clean = InverseSTFT()(gain(decibels)[..., None] * spectrum, noisy)
    model = keras.Model(noisy, clean)
    model.compile(make_optimizer(row.rates, STEPS), NegativeSISDR())
    return model


def statistics(passes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Computes the mean and standard deviation of each bin of noisy speech, in dB."""
    batches = passes(0).take(4).as_numpy_iterator()
    frames = [log_power(stft(waveform)) for noisy, _ in batches for waveform in noisy]
    every = np.concatenate(frames).astype("float64")
    return every.mean(axis=0), every.std(axis=0)


def apply(run: Path, noisy: Path, clean: Path) -> None:
    """Cleans a recording with the first network of a run, which may still go on."""
    if clean.suffix.lower() != ".wav":
        raise ValueError(f"--to must name a .wav file. Received: {clean}")
    if clean.resolve() == noisy.resolve():
        raise ValueError(f"--to must not be the noisy file. Received: {clean}")
    networks = sorted(run.glob(f"*/*/{MODEL}"), key=lambda path: path.stat().st_mtime)
    if not networks:
        raise FileNotFoundError(
            f"`--run` must be the folder of a run with a trained network, {MODEL}. "
            f"Received: {run}"
        )
    recorded, rate = read_audio(noisy, mono=True)
    if rate < SAMPLE_RATE:
        raise ValueError(
            f"--apply must have {SAMPLE_RATE} samples a second at least. "
            f"Received: {noisy}, with {rate}"
        )
    model = keras.saving.load_model(networks[0], compile=False)
    samples = to_float(resample_to_int16(recorded, rate))
    write_wav(clean, model.predict(samples[None], verbose=0)[0], SAMPLE_RATE)
    print(f"Cleaned by {networks[0].parent}: {clean}, at 8 kHz")


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Reads the command line, and fills in what it leaves open."""
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("--records", type=Path, help="from `keras-ortho-data` (synthetic speech)")
    add("--noise-dir", type=Path, help="folder of recorded noises, to add to the made")
    add(
        "--models",
        nargs="+",
        type=read_frame_model,
        default=["goru-paper", "lstm"],
        metavar="MODEL",
        help=f"some of {', '.join(LAYERS)}, or layers or cells of your own: "
        f"package.module:Name, file.py:Name; or {FEED_FORWARD} (goru-paper lstm)",
    )
    add("--units", type=int, help="of scoRNN, whose parameters all models match (128)")
    add("--epochs", type=int, help=f"of {STEPS} updates each (15)")
    add("--batch-size", type=int, help="mixtures in a batch, 2 s each (16)")
    add("--seeds", type=int, default=1, metavar="N", help="train from N seeds (1)")
    ratios = "of the test (-5 0 5 10 15)"
    add("--snrs", type=float, nargs="+", default=SNRS, metavar="DB", help=ratios)
    given = parser.parse_args(argv)
    check_values(given, "speech")
    if given.smoke and (given.records or given.noise_dir):
        raise ValueError(
            "--smoke generates its own data: omit --records and --noise-dir. "
            f"Received: {given.records or given.noise_dir}"
        )
    for snr in given.snrs:
        check_decibels("--snrs", snr)
    check_titles(given.models)
    return settle(vars(given), SMOKE if given.smoke else {}, USUAL)


def parse_application(argv: Sequence[str] | None = None) -> tuple[Path, Path, Path]:
    """Reads the command line that applies a network."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--run", "--apply", "--to"):
        parser.add_argument(name, type=Path, required=True)
    given = parser.parse_args(argv)
    return given.run, given.apply, given.to


if __name__ == "__main__":
    main()
