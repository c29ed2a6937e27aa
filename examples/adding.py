"""The adding problem: the sum of two marked numbers of a long sequence.

    python examples/adding.py --model scornn --preset paper --out out/adding

An epoch of 2 000 updates takes a minute on two cores at T = 200, three at T = 750.
A run that was broken off goes on with --resume. Writes run.json (settings, versions,
curves and figures), curve.png, and the network of the best validation to
run/best.keras.
"""

from experiments.command import main

if __name__ == "__main__":
    main("adding", __doc__)
