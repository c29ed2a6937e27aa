"""Matrices of rotations, multiplied one by one, and random unitary ones."""

import numpy as np


def pairs_of(style, n, layers):
    """For each layer its pairs, from their description in the paper."""
    if style == "tunable":
        return [
            [(i, i + 1) for i in range(layer % 2, n - 1, 2)] for layer in range(layers)
        ]
    distances = [n >> (level + 1) for level in range(n.bit_length() - 1)]
    return [[(i, i + d) for i in range(n) if i // d % 2 == 0] for d in distances]


def one_by_one(style, angles, phases, output_phases):
    """The product of explicit matrices, each of one rotation."""
    n = len(output_phases)
    layers = 2 * len(angles) if style == "tunable" else len(angles)
    product = np.eye(n, dtype=complex)
    columns = iter(zip(angles.ravel(), phases.ravel(), strict=True))
    for pairs in pairs_of(style, n, layers):
        for i, j in pairs:
            t, p = next(columns)
            rotation = np.eye(n, dtype=complex)
            # Column j of a matrix for row vectors makes the new entry j.
            rotation[i, i] = np.cos(t)
            rotation[j, i] = -np.exp(1j * p) * np.sin(t)
            rotation[i, j] = np.sin(t)
            rotation[j, j] = np.exp(1j * p) * np.cos(t)
            product = product @ rotation
    assert next(columns, None) is None  # Every angle has been used.
    return product * np.exp(1j * output_phases)


def real_form(matrix):
    return np.block([[matrix.real, matrix.imag], [-matrix.imag, matrix.real]])


def random_unitary(n, seed=0):
    random = np.random.default_rng(seed)
    return np.linalg.qr(random.normal(size=(n, n)) + 1j * random.normal(size=(n, n)))[0]
