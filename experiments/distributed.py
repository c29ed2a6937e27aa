"""Training of one network on the devices and hosts that the options name."""

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
    """Makes training in this context use the devices of the settings.

    Of several processes, only the first leaves the context; the others exit at its end.
    An error in one process ends it at once; the others then fail, too, without it.
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

    # Otherwise a process would wait for the others when it ends.
    jax.distributed.shutdown()
    if not first:
        raise SystemExit


def on_one_device(model: keras.Model, folder: Path, settings: Settings) -> keras.Model:
    """Returns a network that `train` has trained, for use outside `distributed`."""
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
    """Exits without Python's cleanup, in which JAX would wait for the others."""
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
