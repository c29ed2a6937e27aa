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
from keras_ortho.metrics.active_level import ActiveLevel, active_level
from keras_ortho.metrics.evaluators import (
    Evaluator,
    MeanScore,
    SpeechScores,
    mean_scores,
    score_speech,
)
from keras_ortho.metrics.perceptual import mos_lqo_to_raw, pesq, raw_to_mos_lqo, stoi
from keras_ortho.metrics.ratios import (
    SNRScores,
    UnscoredWarning,
    segmental_snr,
    segmental_snr_loizou,
    si_sdr,
)

__all__ = [
    "ActiveLevel",
    "BitsPerCharacter",
    "ErrorRate",
    "Evaluator",
    "MeanScore",
    "PaddedFrameMSE",
    "SNRScores",
    "SpeechScores",
    "UnscoredWarning",
    "ValidFrameMSE",
    "active_level",
    "mean_scores",
    "mos_lqo_to_raw",
    "pesq",
    "raw_to_mos_lqo",
    "score_speech",
    "segmental_snr",
    "segmental_snr_loizou",
    "si_sdr",
    "stoi",
]
