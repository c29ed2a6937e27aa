"""An estimate of the number of utterances that PESQ finds in a recording."""

import numpy as np

# Windows, of 4 ms, per second; the fewest in a burst of speech, a pause, an utterance.
_RATE = 250
_BURST, _PAUSE, _UTTERANCE = 5, 51, 50
# The telephone band, in Hz.
_BAND = (300, 3_400)


def count_utterances(speech: np.ndarray, sample_rate: int) -> int:
    """Counts stretches of speech between pauses, as P.862 detects them.

    A band-pass filter replaces those of P.862, so the count may differ by a few.

    Args:
        speech: Floating point, `[samples]`.
        sample_rate: 8000 or 16000 Hz.

    Returns:
        The number of utterances of at least 0.2 s that are separated by pauses of more
        than 0.2 s.

    Example:
    >>> tone = np.sin(np.arange(4000))
    >>> count_utterances(np.concatenate([tone, 0 * tone, tone]), 8000)
    2

    Reference:

    - ITU-T Recommendation P.862, and its reference software
    """
    window = sample_rate // _RATE
    whole = len(speech) // window * window
    if not whole:
        return 0
    spectrum = np.fft.rfft(speech[:whole])
    frequency = np.fft.rfftfreq(whole, 1 / sample_rate)
    spectrum[(frequency < _BAND[0]) | (frequency > _BAND[1])] = 0
    filtered = np.fft.irfft(spectrum, whole).reshape(-1, window)
    power = np.mean(np.square(filtered), axis=1)
    power = np.maximum(power, 1e-4 * power.max())
    active = power > _threshold(power)
    active[[0, -1]] = False
    for start, end in _runs(active):
        if end - start < _BURST:
            active[start:end] = False
    for start, end in _runs(~active):
        if end - start < _PAUSE and start and end < len(active):
            active[start:end] = True
    return sum(end - start >= _UTTERANCE for start, end in _runs(active))


def _threshold(power: np.ndarray) -> float:
    """Finds a threshold between the power of speech and that of pauses, iteratively."""
    threshold = power.mean()
    for _ in range(12):
        noise = power[power <= threshold]
        threshold = 1.001 * (noise.mean() + 2 * noise.std())
    return float(threshold)


def _runs(active: np.ndarray) -> list[tuple[int, int]]:
    """Returns where each stretch of `True` begins and ends."""
    edges = np.flatnonzero(np.diff(active.astype(int), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
