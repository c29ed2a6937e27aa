"""Trains in one of several processes or alone.

Arguments: the folder of the run, what the files of weights and figures begin with, the
address of the first process or `alone`, the number of this process of two, and the
epoch before which it kills itself, or -1.
"""

import os
import signal
import sys
import traceback
from pathlib import Path

import jax
import keras
import numpy as np

from keras_ortho import ScoRNN
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.tasks import adding
from keras_ortho.training import train

folder, out, address, process, kill_at = sys.argv[1:]
if address != "alone":
    keras.distribution.initialize(address, 2, int(process))
keras.distribution.set_distribution(
    keras.distribution.DataParallel(auto_shard_dataset=False)
)


def kill(epoch, logs):
    """Ends the process as nothing else does."""
    if epoch == int(kill_at):
        os.kill(os.getpid(), signal.SIGKILL)


try:
    keras.utils.set_random_seed(0)
    # 41 and 17 sequences: the last batches are not divided by two.
    task = adding.load(10, batch_size=8, train_size=41, valid_size=17, test_size=8)
    model = keras.Sequential(
        [keras.Input((10, 2)), ScoRNN(6, dropout=0.1, seed=1), keras.layers.Dense(1)]
    )
    model.compile(paper_optimizer(others=keras.optimizers.Adam(0.03)), "mse")
    history = train(
        model,
        task.passes,
        Path(folder),
        epochs=4,
        validation_data=task.valid,
        save_seconds=0.0,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=kill)],
        progress=False,
    )
    figures = [[row["loss"], row["val_loss"]] for row in history]
    np.savez(f"{out}-{process}.npz", figures, *model.get_weights())
except BaseException:
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)  # At a usual end JAX would wait for the process that is lost.
if address != "alone":
    jax.distributed.shutdown()
