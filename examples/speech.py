"""Prediction of the next frame of speech by one network, as in `timit.py`.

    keras-ortho-data /path/to/TIMIT records
    python examples/speech.py --data-dir records --epochs 40 --out out/speech

The network corrects the linear prediction from the last two frames. You choose its
layer, learning rates and size. `timit.py` compares networks of equal size, and
resynthesizes and scores the speech.
"""

from experiments import linear_prediction
from experiments.command import command
from experiments.layers import build
from experiments.optimizers import make_optimizer
from experiments.options import Settings
from experiments.runs import fit
from experiments.speech import LINEAR_2, correction, errors
from keras_ortho import losses
from keras_ortho.metrics import ValidFrameMSE
from keras_ortho.tasks import timit
from keras_ortho.tasks.pipeline import Task


@command("speech")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    data = timit.load(
        settings.data_dir,
        batch_size=settings.batch_size,
        shuffle_seed=settings.seed,
        pad_to="bucket",
    )
    linear = linear_prediction.fit(data, frames=2)
    model, settings = build(
        lambda layer: correction(layer, linear), settings, return_sequences=True
    )
    model.compile(
        make_optimizer(settings.rates, len(data.train)),
        losses.ValidFrameMSE(),
        weighted_metrics=[ValidFrameMSE()],
        jit_compile=settings.jit_compile or "auto",
    )
    baseline = errors(linear, data, "valid")["valid_frame_mse"]
    task = Task(data.train, data.valid, data.test, data.passes, baseline=baseline)
    fit(
        model,
        task,
        settings,
        "error in dB^2",
        baseline=LINEAR_2,
        log=False,
        data=timit.fingerprint(settings.data_dir),
    )


if __name__ == "__main__":
    main()
