"""The builder: the same splits and features as `keras-ortho-data` makes."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from keras_ortho.audio.stft import NUM_BINS, SAMPLE_RATE
from keras_ortho.extras import require

from ..corpus import Utterance, discover
from ..features import extract
from ..splits import MODES, split

tfds: Any = require("tensorflow_datasets", extra="data")

FOLDER = "timit"


class Timit(tfds.core.GeneratorBasedBuilder):
    """TIMIT at 8 kHz, with its log power in dB.

    The configurations are the modes of `keras_ortho.data_prep.splits.split`: `timit`,
    `wisdom` and `speakers`. The corpus is licensed and must be put in place by hand;
    see `README.md`. Files that cannot be used are left out with a warning.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES: ClassVar = {"1.0.0": "First release."}
    BUILDER_CONFIGS: ClassVar = [tfds.core.BuilderConfig(name=mode) for mode in MODES]
    MANUAL_DOWNLOAD_INSTRUCTIONS = (
        "Get TIMIT (LDC93S1) from the Linguistic Data Consortium, and put the folder "
        f"that holds TRAIN and TEST into `manual_dir` under the name `{FOLDER}`."
    )

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description="Read American English of 630 speakers, resampled to 8 kHz.",
            homepage="https://catalog.ldc.upenn.edu/LDC93S1",
            features=tfds.features.FeaturesDict(
                {
                    "utterance_id": tfds.features.Text(),
                    "speaker": tfds.features.Text(),
                    "sentence": tfds.features.Text(),
                    "dialect": tfds.features.Text(),
                    "log_power": tfds.features.Tensor(
                        shape=(None, NUM_BINS), dtype=np.float32
                    ),
                    "audio": tfds.features.Audio(
                        shape=(None,), sample_rate=SAMPLE_RATE, dtype=np.int16
                    ),
                }
            ),
            citation=(
                "J. S. Garofolo et al., TIMIT Acoustic-Phonetic Continuous Speech "
                "Corpus, LDC93S1, Linguistic Data Consortium, 1993"
            ),
        )

    def _split_generators(
        self, dl_manager: tfds.download.DownloadManager
    ) -> dict[str, Any]:
        corpus = discover(Path(dl_manager.manual_dir, FOLDER))
        splits = split(corpus.utterances, self.builder_config.name)
        return {
            name: self._generate_examples(corpus.root, members)
            for name, members in splits.items()
        }

    def _generate_examples(
        self, root: Path, utterances: list[Utterance]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for utterance in utterances:
            try:
                data = (root / utterance.path).read_bytes()
                features = extract(data, name=utterance.path)
            except (OSError, ValueError) as error:
                warnings.warn(f"Left out: {error}", stacklevel=1)
                continue
            yield (
                utterance.id,
                {
                    "utterance_id": utterance.id,
                    "speaker": utterance.speaker,
                    "sentence": utterance.sentence,
                    "dialect": utterance.dialect,
                    "log_power": features.log_power,
                    "audio": features.audio,
                },
            )
