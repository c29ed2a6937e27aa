from functools import partial

import numpy as np
import pytest

from keras_ortho import audio, baselines, layers, losses, metrics, networks
from keras_ortho.audio.noises import at_level
from keras_ortho.metrics.active_level import active_level

ONES = np.ones(800)
FRAMES = np.zeros((9, audio.NUM_BINS))
WHOLE = np.zeros(10, np.int16)
PAIR = (ONES, ONES)
COMPLEX = np.ones((2, 5), "complex64")
TARGETS, WAVES = np.ones((4, 7, 3)), np.ones((2, 5))
RATIOS = (metrics.segmental_snr, metrics.segmental_snr_loizou, metrics.si_sdr)
SCORES = (*RATIOS, metrics.stoi, metrics.pesq)
callback = partial(metrics.SpeechScores, [PAIR], "mask")
CASES = [
    *(
        (partial(function, sound), message)
        for function in (
            *(audio.stft, partial(active_level, sample_rate=8000)),
            *(partial(score, reference=ONES, sample_rate=8000) for score in SCORES),
        )
        for sound, message in (
            (np.zeros((2, 3)), r"Received: float64 of shape \(2, 3\)$"),
            (np.zeros(3, "int32"), "Received: int32"),
            (np.array([np.inf]), "must be finite"),
        )
    ),
    (partial(audio.write_wav, "a.wav", ONES, 0), "`sample_rate`.*sample_rate=0$"),
    (partial(audio.excerpt, ONES, 0, None), "samples=0$"),
    (partial(audio.mix, ONES, 0 * ONES, 0.0), "`noise` must not be silent"),
    (partial(audio.mix, ONES, ONES, 1e5), "`snr` must be from -200 .* snr=100000.0$"),
    (partial(at_level, ONES, -300), "`level` must be from -200 .* level=-300$"),
    (partial(audio.resample_to_int16, ONES, 16000), "must be int16"),
    (partial(audio.resample_to_int16, WHOLE, 0), "`rate` must be a pos.*: rate=0$"),
    (partial(audio.stft, ONES, frame_length=7), "`frame_length` .*=7, "),
    (partial(audio.istft, FRAMES, length=10, hop_length=256), "`hop_length`.* 256$"),
    (partial(audio.istft, FRAMES, length=769), "`length` .* 0 .. 768 .*: 769$"),
    (partial(audio.resynthesize, FRAMES[1:], ONES), r"\(9, 129\).*\(8, 129\)$"),
    (partial(audio.resynthesize, FRAMES + np.nan, ONES), "must be finite"),
    (partial(audio.resynthesize, FRAMES, ONES, phase="zero"), "`phase` .*'zero'$"),
    (partial(active_level, ONES, 8000, voicebox="2018"), "voicebox='2018'$"),
    (partial(metrics.segmental_snr, *PAIR, 8000, activity="vad"), "activity='vad'$"),
    (partial(metrics.pesq, *PAIR, 10000), "one of .8000, 16000. .* Received: 10000$"),
    (partial(metrics.pesq, *PAIR, 8000, mode="wb"), "one of .16000,. .*: 8000$"),
    (partial(metrics.pesq, *PAIR, 16000, mode="wb", scale="raw"), "scale='raw'$"),
    (partial(metrics.score_speech, [ONES], []), "shorter"),
    (partial(metrics.Evaluator, ["mos"]), "`scores` .* Received: scores='mos'$"),
    (partial(callback, sample_rate=11025), "`sample_rate` .*PESQ .* Received: 11025$"),
    *(
        (partial(callback, **{name: 0}), f"`{name}` .* Received: {name}=0$")
        for name in ("every", "number", "batch_size", "processes")
    ),
    (partial(metrics.SpeechScores, [PAIR], "phase"), "`predicts` .*'phase'$"),
    (partial(metrics.SpeechScores, []), "`utterances` must not be empty. Received"),
    (
        lambda: callback().score(lambda x: x[:, :3]),
        r"`predicts` .*\(10, 129\). .*: \(3",
    ),
    *(
        case
        for loss in (losses.ValidFrameMSE, losses.PaddedFrameMSE)
        for case in (
            (partial(loss(), TARGETS, TARGETS, np.ones(4)), "`sample_weight` must"),
            (partial(loss(), TARGETS.swapaxes(0, 1), TARGETS), "`y_true` .*7, 4, 3"),
            (partial(loss(), COMPLEX, WAVES), "must be real: .*complex64"),
        )
    ),
    (partial(losses.NegativeSISDR(), WAVES, WAVES, np.ones(2)), "`sample_weight`"),
    # Each sample would be a perfect waveform.
    (partial(losses.NegativeSISDR(), *[WAVES[..., None]] * 2), r"`y_pred`.*2, 5, 1"),
    (partial(layers.InverseSTFT(), np.ones((2, 9, 33, 2))), "129"),
    (partial(baselines.irnn, 4, 0), "gain=0$"),
    (partial(baselines.lstm, 4, float("nan")), "forget_bias=nan$"),
    (partial(baselines.num_parameters, "rnn", 5, 1), "kind='rnn'$"),
    (partial(baselines.matched_units, "gru", 0, 1), "parameters=0$"),
    (partial(networks.mlp, "cnn", 2, 2), "kind='cnn'$"),
    (partial(networks.mlp, "mlp", 2, 2, input_shape=784), "input_shape=784$"),
    (partial(networks.mlp, "mlp", 2, 2, negative_slope=-1.0), "slope=-1.0$"),
    (partial(networks.bnp_network, "bn"), "kind='bn'$"),
    (partial(networks.bnp_network, "bnp", epsilon=0.0), "epsilon=0.0$"),
]


@pytest.mark.parametrize(("call", "message"), CASES, ids=range(len(CASES)))
def test_message(call, message):
    with pytest.raises(ValueError, match=message):
        call()
