"""The copying problem: ten symbols to give back after a long pause.

    python examples/copying.py --model scornn --preset paper --out out/copying

An update of the papers' batch of 20 at T = 1 000 takes about 0.1 s on two cores.
A run that was broken off goes on with --resume. Writes run.json (settings, versions,
curves and figures), curve.png, and the network of the best validation to
run/best.keras.
"""

from experiments.command import main

if __name__ == "__main__":
    main("copying", __doc__)
