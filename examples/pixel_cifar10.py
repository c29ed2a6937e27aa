r"""CIFAR-10, a pixel a step.

    python examples/pixel_cifar10.py --model antisymmetric --preset paper \
        --out out/pixel-cifar10

An update of the paper's batch of 128 at n = 256 takes about a second on two cores.
A run that was broken off goes on with --resume. Writes run.json (settings, versions,
curves and figures), curve.png, and the network of the best validation to
run/best.keras.
"""

from experiments.command import main

if __name__ == "__main__":
    main("pixel-cifar10", __doc__)
