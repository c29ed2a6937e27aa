"""Independent NumPy references that several tests hold the package against."""

from collections.abc import Callable

import numpy as np


def skew(entries: np.ndarray, n: int) -> np.ndarray:
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = entries
    return matrix - matrix.T


def scaled_cayley(entries: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The definition, `W = (I + A)^-1 (I - A) D`, as it stands in the paper."""
    n = len(signs)
    a = skew(entries, n)
    return np.linalg.solve(np.eye(n) + a, np.eye(n) - a) @ np.diag(signs)


def householder(reflectors: np.ndarray, n: int) -> np.ndarray:
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


def complex_block(matrix: np.ndarray) -> np.ndarray:
    """The real matrix that multiplies `[a | b]` as `matrix` multiplies `a + ib`."""
    return np.block([[matrix.real, matrix.imag], [-matrix.imag, matrix.real]])


def modrelu(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sign(z) * np.maximum(np.abs(z) + b, 0)


def oplu(z: np.ndarray) -> np.ndarray:
    half = z.shape[-1] // 2
    first, second, rest = np.split(z, [half, 2 * half], axis=-1)
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    return np.concatenate([larger, smaller, rest], axis=-1)


def as_complex(reals: np.ndarray) -> np.ndarray:
    real, imaginary = np.split(reals, 2, axis=-1)
    return real + 1j * imaginary


def as_reals(numbers: np.ndarray) -> np.ndarray:
    return np.concatenate([numbers.real, numbers.imag], axis=-1)


def complex_modrelu(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    modulus = np.abs(z)
    direction = np.divide(z, modulus, out=np.zeros_like(z), where=modulus > 0)
    return np.where(modulus + b > 0, z + b * direction, 0)


def smoothed_modrelu(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    """As the authors of the uRNN and the scuRNN guard it at zero."""
    modulus = np.sqrt(np.abs(z) ** 2 + 1e-5)
    return z * np.maximum(modulus + b, 0) / (modulus + 1e-5)


def scornn(
    x: np.ndarray,
    weights: dict[str, np.ndarray],
    h: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    activation: Callable[[np.ndarray, np.ndarray], np.ndarray] = modrelu,
) -> np.ndarray:
    """All states of a scoRNN, `[batch, time, n]`, one step after the other."""
    w = scaled_cayley(weights["recurrent_skew"], weights["recurrent_signs"])
    if h is None:
        h = np.zeros((len(x), len(w)))
    states = []
    for t in range(x.shape[1]):
        new = activation(x[:, t] @ weights["kernel"] + h @ w, weights["bias"])
        h = new if mask is None else np.where(mask[:, t, None], new, h)
        states.append(h)
    return np.stack(states, axis=1)


def central_differences(
    function: Callable[[np.ndarray], float], point: np.ndarray, step: float
) -> np.ndarray:
    """Gradient by central differences, in float64."""
    gradient = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        ahead, behind = point.copy(), point.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (function(ahead) - function(behind)) / (2 * step)
    return gradient
