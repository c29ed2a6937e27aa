"""Classification of time series from the UCR archive.

    python examples/ucr.py --model svdrnn --name ECG200 --data-dir UCR --out out/ucr

Each data set takes seconds to minutes on two cores.
"""

from experiments.command import command
from experiments.options import Settings
from experiments.runs import classify
from keras_ortho.tasks import ucr


@command("ucr")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    classify(ucr.load(settings.name, **settings.data), settings)


if __name__ == "__main__":
    main()
