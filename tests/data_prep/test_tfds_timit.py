import numpy as np
import pytest

from keras_ortho.data_prep.pipeline import prepare
from keras_ortho.tasks.timit import utterances
from tests.data_prep.corpora import noise, write_corpus, write_sphere

tfds = pytest.importorskip("tensorflow_datasets")

from keras_ortho.data_prep.tfds_timit.timit import Timit  # noqa: E402


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    tfds.disable_progress_bar()
    # No look at the hub of data sets: the corpus is in no hub.
    monkeypatch.setattr(tfds.core.utils.gcs_utils, "_is_gcs_disabled", True)


def build(folder, config):
    builder = Timit(config=config, data_dir=folder / "data")
    builder.download_and_prepare(
        download_config=tfds.download.DownloadConfig(manual_dir=folder)
    )
    return builder


def assert_same(builder, records):
    for split in ("train", "valid", "test"):
        expected = {record.id: record for record in utterances(records, split)}
        dataset = builder.as_dataset(split=split, shuffle_files=False)
        found = {
            example["utterance_id"].decode(): example
            for example in dataset.as_numpy_iterator()
        }
        assert found.keys() == expected.keys()
        for name, record in expected.items():
            example = found[name]
            speaker, sentence = name.split("_")
            assert example["speaker"].decode() == speaker
            assert example["sentence"].decode() == sentence
            np.testing.assert_array_equal(example["log_power"], record.log_power)
            np.testing.assert_array_equal(example["audio"], record.audio)
            assert example["log_power"].dtype == np.float32
            assert example["audio"].dtype == np.int16


def test_the_same_splits_and_features_as_the_records(tmp_path):
    write_corpus(tmp_path / "timit")
    prepare(tmp_path / "timit", tmp_path / "records", mode="speakers")
    assert_same(build(tmp_path, "speakers"), tmp_path / "records")


def test_a_file_of_no_use_is_left_out_with_a_warning(tmp_path):
    for speaker in ("TRAIN/DR1/FSAH0", "TRAIN/DR2/FAAA0", "TEST/DR1/FAKS0"):
        write_sphere(tmp_path / "timit" / speaker / "SX1.WAV", noise(1))
    write_sphere(tmp_path / "timit/TEST/DR1/MDAB0/SX1.WAV", noise(2))
    write_sphere(tmp_path / "timit/TEST/DR1/MDAB0/SX2.WAV", noise(3, 100))
    prepare(tmp_path / "timit", tmp_path / "records", mode="wisdom")
    with pytest.warns(UserWarning, match=r"Left out: Too short.*MDAB0/SX2\.WAV"):
        builder = build(tmp_path, "wisdom")
    assert builder.info.splits["train"].num_examples == 1
    assert builder.info.splits["test"].num_examples == 1
    assert_same(builder, tmp_path / "records")


def test_a_missing_corpus_says_what_to_put_where(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"Received: {tmp_path / 'timit'}"):
        build(tmp_path, "timit")
    assert "LDC93S1" in Timit.MANUAL_DOWNLOAD_INSTRUCTIONS
