import sys

import numpy as np
import pytest

from keras_ortho.tasks.images import prepared
from keras_ortho.tasks.pixels import cifar10, mnist


@pytest.fixture
def tfds(monkeypatch, tmp_path):
    """The package, with an empty folder of its own, and no network."""
    module = pytest.importorskip("tensorflow_datasets")
    module.disable_progress_bar()
    utils = module.core.utils
    monkeypatch.setattr(utils.gcs_utils, "_is_gcs_disabled", True)
    monkeypatch.setattr(utils.file_utils.constants, "DATA_DIR", str(tmp_path))
    return module


def prepare(tfds, folder, name, image, extra, examples):
    features = {"image": image, "label": tfds.features.ClassLabel(num_classes=10)}
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        version="3.0.2",
        features=tfds.features.FeaturesDict({**features, **extra}),
        split_datasets={split: list(enumerate(e)) for split, e in examples.items()},
        data_dir=folder,
    )


def test_prepared_mnist(tfds, tmp_path):
    random = np.random.default_rng(0)
    shape = (28, 28, 1)
    examples = {
        split: [
            {"image": random.integers(0, 256, shape, "uint8"), "label": label % 10}
            for label in range(size)
        ]
        for split, size in (("train", 12), ("test", 4))
    }
    prepare(tfds, tmp_path, "mnist", tfds.features.Image(shape=shape), {}, examples)
    images = prepared("mnist")
    assert images.train.shape == (12, 28, 28)
    assert images.train.dtype == "uint8"
    found = {(x.tobytes(), y) for x, y in zip(*images[:2], strict=True)}
    expected = {(e["image"].tobytes(), e["label"]) for e in examples["train"]}
    assert found == expected
    assert sorted(images.test_labels) == [0, 1, 2, 3]
    task = mnist(steps=28, valid_size=2)
    assert sum(len(x) for x, _ in task.train) == 10


def test_prepared_cifar10_has_the_order_of_the_files(tfds, tmp_path):
    shape = (32, 32, 3)
    examples = {
        split: [
            {
                "image": np.full(shape, number, "uint8"),
                "label": number % 10,
                "id": f"{split}_{number:05d}",
            }
            for number in range(size)
        ]
        for split, size in (("train", 30), ("test", 11))
    }
    extra = {"id": tfds.features.Text()}
    image = tfds.features.Image(shape=shape)
    prepare(tfds, tmp_path, "cifar10", image, extra, examples)
    images = prepared("cifar10")
    assert images.train[:, 5, 7, 1].tolist() == list(range(30))
    assert images.test_labels.tolist() == [*range(10), 0]
    x, _ = next(iter(cifar10(form="flat", valid_size=4).valid))
    np.testing.assert_allclose(x[:, 0], np.arange(4) / 255, rtol=3e-7)


@pytest.mark.parametrize(("task", "name"), [(mnist, "mnist"), (cifar10, "cifar10")])
def test_not_prepared(tfds, tmp_path, task, name):
    with pytest.raises(FileNotFoundError, match=f"builder.'{name}'"):
        prepared(name)
    message = f"`data_dir` must be the folder .* of {name}, .*https.*data_dir=None.*"
    with pytest.raises(FileNotFoundError, match=message + "download_and_prepare"):
        task()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task", [mnist, cifar10])
def test_without_tensorflow_datasets(monkeypatch, task):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    message = r"`data_dir` must be the folder.*https.*keras-ortho\[data\]"
    with pytest.raises(FileNotFoundError, match=message):
        task()
