"""Trains as the examples do, in one of several processes or alone.

Arguments: the folder of the run, what the files of weights and figures begin with, the
hosts as `--hosts` has them, or `alone`, the number of this process, and the epoch
before which it kills itself, or -1.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import keras
import numpy as np

from experiments import device_options
from experiments.distributed import distributed
from experiments.settings import Settings
from keras_ortho import ScoRNN
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.tasks import adding
from keras_ortho.training import train

folder, out, hosts, process, kill_at = sys.argv[1:]
options = ["--distribute", "data-parallel"]
if hosts != "alone":
    options += ["--hosts", hosts, "--host-id", process]
parser = argparse.ArgumentParser()
device_options.add_options(parser)
given = parser.parse_args(options)
given.out, given.batch_size = Path(folder), 8
device_options.set_up(given)


def kill(epoch, logs):
    """Ends the process as nothing else does."""
    if epoch == int(kill_at):
        os.kill(os.getpid(), signal.SIGKILL)


with distributed(Settings(**vars(given))):
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
        given.out,
        epochs=4,
        validation_data=task.valid,
        save_seconds=0.0,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=kill)],
        progress=False,
    )
    figures = [[row["loss"], row["val_loss"]] for row in history]
    np.savez(f"{out}-{process}.npz", figures, *model.get_weights())
