"""ITU-T P.56 and VOICEBOX's segmental SNR once more, sample by sample, from the text.

Nothing is shared with what is tested: the edges of the filters are found by trial, and
averages, maxima and bins in loops.
"""

import math

import numpy as np
import scipy.optimize
import scipy.signal


def band_pass(signal, rate):
    """Inverse Chebyshev filters of order 5: 0.25 dB at 200 Hz and 5.5 kHz."""
    bands = [("highpass", 200, (50, 200)), ("lowpass", 5500, (5500, rate / 2 - 1))]
    for kind, edge, bounds in bands[: 1 + (rate >= 2.2 * 5500)]:

        def design(stop, kind=kind):
            return scipy.signal.cheby2(5, 50, stop, kind, fs=rate, output="sos")

        def excess(stop, edge=edge, design=design):
            _, (gain,) = scipy.signal.sosfreqz(design(stop), [edge], fs=rate)
            return 20 * math.log10(abs(gain)) + 0.25

        stop = scipy.optimize.brentq(excess, *bounds, xtol=1e-12)
        signal = scipy.signal.sosfilt(design(stop), signal)
    return signal


def active(signal, rate, version):
    """The level in dB, and whether each sample is active."""
    padded = np.concatenate([signal, np.zeros(math.ceil(0.35 * rate))])
    filtered = band_pass(padded, rate)
    decay = math.exp(-1 / (0.03 * rate))
    envelope, once, twice = [], 0.0, 0.0
    for value in filtered:
        once = decay * once + (1 - decay) * abs(value)
        twice = decay * twice + (1 - decay) * once
        envelope.append(twice)
    energy = float(np.sum(filtered**2))
    scale = len(padded) / energy if version == "2022" else 1.0
    span = math.ceil(0.2 * rate) + 1
    behind = np.pad(envelope, (span - 1, 0))
    held = np.lib.stride_tricks.sliding_window_view(behind, span).max(axis=1)
    exponents = [math.frexp(scale * h * h)[1] if h else -math.inf for h in held]
    highest = max(exponents)
    levels, thresholds = [], []
    for bin in range(1, 21):
        count = sum(e >= highest + 1 - bin or bin == 20 for e in exponents)
        levels.append(10 * math.log10(energy / count))
        thresholds.append(10 * math.log10(2.0 ** (highest - bin) / scale))
    excess = [a - c - 15.9 for a, c in zip(levels, thresholds, strict=True)]
    j = next(j for j in range(19) if excess[j] < 0 <= excess[j + 1])
    part = excess[j] / (excess[j] - excess[j + 1])
    level = levels[j] + part * (levels[j + 1] - levels[j])
    threshold = 10 ** ((level - 15.9) / 20)
    return level, [value > threshold for value in held[: len(signal)]]


def segmental(estimate, reference, rate, version, vad, shift):
    """Segmental and global ratio in dB, and the frames used, of all."""
    size, margin = math.floor(rate / 100 + 0.5), int(shift)
    speech = active(reference, rate, version)[1] if vad else [True] * len(reference)
    ratios, powers, errors, frames = [], 0.0, 0.0, 0
    for start in range(margin, len(reference) - margin - size + 1, size):
        frames += 1
        if 2 * sum(speech[start : start + size]) <= size:
            continue
        r, s = (x[start : start + size] for x in (reference, estimate))
        error, power = np.sum((r - s) ** 2), np.sum(r**2)
        for step in (-1, 1) if shift else ():
            towards = estimate[start + step : start + step + size] - s
            length = np.sum(towards**2)
            part = min(max(np.sum((r - s) * towards) / length, 0), 1) if length else 0
            error = min(error, np.sum((r - s - part * towards) ** 2))
        powers, errors = powers + power, errors + error
        ratios.append(10 * math.log10(power / error) if power * error else -100)
        ratios[-1] = ratios[-1] if error else 100
    return np.mean(ratios), 10 * math.log10(powers / errors), len(ratios), frames
