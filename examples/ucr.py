r"""Classification of the time series of the UCR archive.

    python examples/ucr.py --model svdrnn --preset paper --name ECG200 \
        --data-dir UCRArchive_2018 --out out/ucr

A data set takes seconds to minutes on two cores.
A run that was broken off goes on with --resume. Writes run.json (settings, versions,
curves and figures), curve.png, and the network of the best validation to
run/best.keras.
"""

from experiments.command import main

if __name__ == "__main__":
    main("ucr", __doc__)
