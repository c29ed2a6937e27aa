r"""MNIST, a row (28 steps) or a quarter of one (112) a step.

    python examples/sequence_mnist.py --model svdrnn --preset paper \
        --out out/sequence-mnist

An epoch takes seconds on two cores.
A run that was broken off goes on with --resume. Writes run.json (settings, versions,
curves and figures), curve.png, and the network of the best validation to
run/best.keras.
"""

from experiments.command import main

if __name__ == "__main__":
    main("sequence-mnist", __doc__)
