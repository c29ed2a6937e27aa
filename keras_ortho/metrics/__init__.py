"""Metrics for speech, classification and text.

`BitsPerCharacter`, `ErrorRate`, `PaddedFrameMSE` and `ValidFrameMSE` are Keras metrics,
for `model.compile`. The others score complete signals.
"""

from keras_ortho.keras_metrics import (
    BitsPerCharacter,
    ErrorRate,
    PaddedFrameMSE,
    ValidFrameMSE,
)
from keras_ortho.metrics.evaluators import (
    Evaluator,
    MeanScore,
    SpeechScores,
    mean_scores,
    score_speech,
)
from keras_ortho.metrics.perceptual import pesq, stoi
from keras_ortho.metrics.ratios import (
    SNRScores,
    UnscoredWarning,
    segmental_snr,
    segmental_snr_loizou,
    si_sdr,
)

__all__ = [
    "BitsPerCharacter",
    "ErrorRate",
    "Evaluator",
    "MeanScore",
    "PaddedFrameMSE",
    "SNRScores",
    "SpeechScores",
    "UnscoredWarning",
    "ValidFrameMSE",
    "mean_scores",
    "pesq",
    "score_speech",
    "segmental_snr",
    "segmental_snr_loizou",
    "si_sdr",
    "stoi",
]
