"""The training of one network on the devices and hosts that the options name."""

import contextlib
import os
import shutil
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import keras

from experiments.errors import plain_errors
from experiments.settings import Settings
from keras_ortho.backend.processes import process_count, process_index
from keras_ortho.distribution import own_share
from keras_ortho.training import MODEL


@contextlib.contextmanager
def distributed(settings: Settings) -> Iterator[None]:
    """Trains on the devices of the settings what is trained in it.

    Of several processes only the first comes out of it, alone; the others end there. An
    error in one of them ends that at once, and the others for want of it.

    Args:
        settings: The settings, which `experiments.device_options.set_up` has seen.

    Raises:
        ValueError: If the devices do not divide the batches.
    """
    if settings.distribute == "none":
        yield
        return
    with _scope(settings):
        _check_batches(settings)
        if process_count() == 1:
            yield
            return
        first = process_index() == 0
        try:
            with plain_errors():
                yield
        except BaseException as error:
            _end_at_once(error, None if first else settings.out)
    import jax

    # Else the end of a process would wait for the others.
    jax.distributed.shutdown()
    if not first:
        raise SystemExit


def on_one_device(model: keras.Model, folder: Path, settings: Settings) -> keras.Model:
    """Gives a network that `train` has trained, to be used outside of `distributed`.

    Args:
        model: The network.
        folder: Folder of its run.
        settings: The settings of its training.
    """
    if settings.distribute == "none":
        return model
    return keras.saving.load_model(folder / MODEL, compile=False)


def _scope(settings: Settings) -> contextlib.AbstractContextManager[object]:
    if settings.distribute == "data-parallel":
        return keras.distribution.DataParallel(auto_shard_dataset=False).scope()
    import tensorflow as tf

    devices = tf.config.list_logical_devices("GPU")
    devices = devices or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices]).scope()


def _check_batches(settings: Settings) -> None:
    devices = own_share().replicas
    sizes = getattr(settings, "batch_sizes", None) or [settings.batch_size]
    for size in sizes:
        if size % devices:
            raise ValueError(
                f"The {devices} devices must divide the batch size. Received: {size}"
            )


def _end_at_once(error: BaseException, scratch: Path | None) -> NoReturn:
    """Ends without what Python does at the end: JAX would wait for the others there."""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 1
    else:
        traceback.print_exception(error)
        code = 1
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
