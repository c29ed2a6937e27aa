r"""CIFAR-10, a row a step, and then noise up to 1 000 steps.

    python examples/noise_padded_cifar10.py --model antisymmetric --preset paper \
        --out out/noise-padded-cifar10

The noise of a training image is another in each epoch; --fixed-noise keeps it, and a
network may then learn the noise. run.json tells, as "controls", how much it did.
An update of the paper's batch of 128 at n = 256 takes about a second on two cores.
A run that was broken off goes on with --resume. Writes run.json (settings, versions,
curves and figures), curve.png, and the network of the best validation to
run/best.keras.
"""

from experiments.command import main

if __name__ == "__main__":
    main("noise-padded-cifar10", __doc__)
