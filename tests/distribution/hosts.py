"""Trains with `keras_ortho.training.train`, in one of several processes or alone.

Arguments: the folder of the run, a file for the weights and the figures, the address of
the first process, the number of processes, that of this one, and the epoch before which
it kills itself, or -1.
"""

import os
import signal
import sys

import keras
import numpy as np

from keras_ortho import ScoRNN
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.tasks import adding
from keras_ortho.training import train

folder, out, address, *numbers = sys.argv[1:]
processes, process, kill_at = map(int, numbers)
if processes > 1:
    keras.distribution.initialize(address, processes, process)
keras.distribution.set_distribution(
    keras.distribution.DataParallel(auto_shard_dataset=False)
)


class Kill(keras.callbacks.Callback):
    """Ends the process as nothing else does."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


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
    folder,
    epochs=4,
    validation_data=task.valid,
    save_seconds=0.0,
    callbacks=[Kill()],
    progress=False,
)
figures = [[row["loss"], row["val_loss"]] for row in history]
np.savez(f"{out}-{process}.npz", figures, *model.get_weights())
