"""Independent NumPy references that several tests hold the package against."""

import math

import numpy as np


def skew(entries, n):
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = entries
    return matrix - matrix.T


def scaled_cayley(entries, signs):
    """The definition, `W = (I + A)^-1 (I - A) D`, as it stands in the paper."""
    n = len(signs)
    a = skew(entries, n)
    return np.linalg.solve(np.eye(n) + a, np.eye(n) - a) @ np.diag(signs)


def householder(reflectors, n):
    """One reflector after the other: of all `n` coordinates, of the last `n - 1` ..."""
    product = np.eye(n)
    for k in range(n, 0, -1):
        u, reflectors = reflectors[:k], reflectors[k:]
        factor = np.eye(n)
        if k == 1 and u.size:
            factor[-1, -1] = -1.0 if u[0] < 0 else 1.0
        elif np.any(u):
            factor[-k:, -k:] -= 2 * np.outer(u, u) / (u @ u)
        product = product @ factor
    return product


def complex_block(matrix):
    """The real matrix that multiplies `[a | b]` as `matrix` multiplies `a + ib`."""
    return np.block([[matrix.real, matrix.imag], [-matrix.imag, matrix.real]])


def modrelu(z, b):
    return np.sign(z) * np.maximum(np.abs(z) + b, 0)


def oplu(z):
    half = z.shape[-1] // 2
    first, second, rest = np.split(z, [half, 2 * half], axis=-1)
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    return np.concatenate([larger, smaller, rest], axis=-1)


def as_complex(reals):
    real, imaginary = np.split(reals, 2, axis=-1)
    return real + 1j * imaginary


def as_reals(numbers):
    return np.concatenate([numbers.real, numbers.imag], axis=-1)


def complex_modrelu(z, b):
    modulus = np.abs(z)
    direction = np.divide(z, modulus, out=np.zeros_like(z), where=modulus > 0)
    return np.where(modulus + b > 0, z + b * direction, 0)


def smoothed_modrelu(z, b):
    """As the authors of the uRNN and the scuRNN guard it at zero."""
    modulus = np.sqrt(np.abs(z) ** 2 + 1e-5)
    return z * np.maximum(modulus + b, 0) / (modulus + 1e-5)


def complex_reals(function):
    """A function of complex numbers, as one of their parts, the real ones first."""
    return lambda z, *rest: as_reals(function(as_complex(z), *rest))


def central_differences(function, point, step):
    """Gradient by central differences, in float64."""
    gradient = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        ahead, behind = point.copy(), point.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (function(ahead) - function(behind)) / (2 * step)
    return gradient


def skew_hermitian(skew_entries, symmetric):
    n = math.isqrt(2 * len(symmetric))
    imaginary = np.zeros((n, n))
    imaginary[np.triu_indices(n)] = symmetric
    return skew(skew_entries, n) + 1j * (imaginary + np.triu(imaginary, 1).T)


def unitary_cayley(skew_entries, symmetric, phases):
    a, one = skew_hermitian(skew_entries, symmetric), np.eye(len(phases))
    return np.linalg.solve(one + a, one - a) * np.exp(1j * phases)


def exponential(entries, n):
    """By its eigenvectors, which a skew-symmetric matrix has."""
    values, vectors = np.linalg.eigh(1j * skew(entries, n))
    return ((vectors * np.exp(-1j * values)) @ vectors.conj().T).real


def svd(left, right, values, rows, columns):
    """Equation 17 of the paper, with the factors and `Sigma` as they stand there."""
    sigma = np.zeros((rows, columns))
    np.fill_diagonal(sigma, values)
    return householder(left, rows) @ sigma @ householder(right, columns).T


def real_schur(entries, upper, radii, angles, map):
    n = len(radii) + len(angles)
    is_cayley = map == "cayley"
    basis = scaled_cayley(entries, np.ones(n)) if is_cayley else exponential(entries, n)
    triangle = np.zeros((n, n))
    triangle[np.triu_indices(n, 1)] = upper
    for j, t in enumerate(angles):
        block = [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
        triangle[2 * j : 2 * j + 2, 2 * j : 2 * j + 2] += radii[j] * np.array(block)
    if n % 2:
        triangle[-1, -1] = radii[-1]
    return basis @ triangle @ basis.T


def restricted_unitary(phases, reflectors, permutation):
    """The product of the explicit matrices, for row vectors."""
    n = len(permutation)
    d1, d2, d3 = (np.diag(np.exp(1j * angles)) for angles in phases)
    index = np.arange(n)
    fourier = np.exp(-2j * np.pi * np.outer(index, index) / n) / np.sqrt(n)
    r1, r2 = (
        np.eye(n) - 2 * np.outer(v, v.conj()) / np.vdot(v, v).real
        for v in reflectors[:, :n] + 1j * reflectors[:, n:]
    )
    permute = np.zeros((n, n))
    permute[permutation, index] = 1
    return d1 @ fourier @ r1 @ permute @ d2 @ fourier.conj().T @ r2 @ d3


def rotations(style, angles, phases, output_phases):
    """The product of explicit matrices, each of one rotation, by the paper's layers."""
    n = len(output_phases)
    if style == "tunable":
        firsts = [range(i % 2, n - 1, 2) for i in range(2 * len(angles))]
        pairs = [[(i, i + 1) for i in layer] for layer in firsts]
    else:
        distances = [n >> (level + 1) for level in range(n.bit_length() - 1)]
        pairs = [[(i, i + d) for i in range(n) if i // d % 2 == 0] for d in distances]
    product = np.eye(n, dtype=complex)
    flat = [pair for layer in pairs for pair in layer]
    for (i, j), t, p in zip(flat, angles.ravel(), phases.ravel(), strict=True):
        rotation = np.eye(n, dtype=complex)
        # Column j of a matrix for row vectors makes the new entry j.
        rotation[i, i] = np.cos(t)
        rotation[j, i] = -np.exp(1j * p) * np.sin(t)
        rotation[i, j] = np.sin(t)
        rotation[j, j] = np.exp(1j * p) * np.cos(t)
        product = product @ rotation
    return product * np.exp(1j * output_phases)


def random_orthogonal(n, seed):
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    return q * np.sign(np.diag(r))


def random_unitary(n, seed=0):
    real, imaginary = np.random.default_rng(seed).normal(size=(2, n, n))
    q, r = np.linalg.qr(real + 1j * imaginary)
    return q * (np.diag(r) / np.abs(np.diag(r)))
