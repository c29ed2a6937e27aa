r"""MNIST, a pixel a step, in one random order.

    python examples/permuted_mnist.py --model scornn --preset paper \
        --out out/permuted-mnist

An epoch takes two minutes on two cores at n = 170; the papers run 70.
A run that was broken off goes on with --resume. Writes run.json (settings, versions,
curves and figures), curve.png, and the network of the best validation to
run/best.keras.
"""

from experiments.command import main

if __name__ == "__main__":
    main("permuted-mnist", __doc__)
