"""Compares ENRNN's spectral radius and its gradient with LAPACK's, in the same dtype.

The reference for both is the eigenpair in long double, refined by Newton's method from
LAPACK's in float64. The table shows the relative errors of the radius and of the
gradient, the latter in the Frobenius norm.

Run it as `python benchmarks/eigenpair_accuracy.py`; `KERAS_BACKEND` chooses the
backend. It needs SciPy, because NumPy computes eigenvalues in float64 for every dtype.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import scipy.linalg
from keras import ops
from options import positive_int

from keras_ortho.parametrizations import spectral_radius

DTYPES = ("float32", "float64")


def rotation(angle: float, radius: float) -> np.ndarray:
    """Makes a plane rotation, scaled by a radius."""
    c, s = np.cos(angle), np.sin(angle)
    return radius * np.array([[c, -s], [s, c]])


def mixed(matrix: np.ndarray, departure: float, seed: int) -> np.ndarray:
    """Applies a random similarity transformation to a matrix."""
    random, n = np.random.default_rng(seed), len(matrix)
    vectors = np.linalg.qr(random.normal(size=(n, n)))[0]
    vectors = vectors @ (np.eye(n) + departure * random.normal(size=(n, n)) / n**0.5)
    return vectors @ matrix @ np.linalg.inv(vectors)


def spread(n: int, above: float, seed: int) -> np.ndarray:
    """Makes a matrix far from normal, with eigenvalues spread over the unit disk.

    It is similar to a block triangular matrix: complex pairs on the diagonal and
    Gaussian entries above them.
    """
    random = np.random.default_rng(seed)
    matrix = above * np.triu(random.normal(size=(n, n)), 2) / n**0.5
    for i in range(0, n, 2):
        block = rotation(random.uniform(0, np.pi), random.uniform() ** 0.5)
        matrix[i : i + 2, i : i + 2] = block
    return mixed(matrix, 0.0, seed)


def nearly_tied(n: int, blocks: list[np.ndarray], seed: int) -> np.ndarray:
    """Makes a matrix from given blocks and real eigenvalues of modulus at most 0.9."""
    taken = sum(len(block) for block in blocks)
    rest = np.random.default_rng(seed).uniform(-0.9, 0.9, n - taken)
    return mixed(scipy.linalg.block_diag(*blocks, np.diag(rest)), 0.3, seed)


def matrices(sizes: list[int]) -> Iterator[tuple[str, np.ndarray]]:
    """Makes the test matrices."""
    for n in sizes:
        gaussian = np.random.default_rng(0).normal(size=(n, n)) / n**0.5
        yield "Gaussian", gaussian
        for gap in (1.9e-3, 1e-6):
            pair = [np.array([[1.00095]]), np.array([[1.00095 * (1 - gap)]])]
            yield f"real pair, gap {gap:g}", nearly_tied(n, pair, 0)
        three = [np.array([[x]]) for x in (1.0, 1e-3 - 1, 0.9995)]
        yield "three real, gap 5e-4", nearly_tied(n, three, 0)
        pairs = [rotation(0.8, 1.0), rotation(2.0, 0.999)]
        yield "complex pairs, gap 1e-3", nearly_tied(n, pairs, 0)
        for above in (2.5, 3.0, 4.0):
            yield "far from normal", spread(n, above, 0)


def true_pair(matrix: np.ndarray) -> tuple[float, np.ndarray]:
    """Computes the reference spectral radius and its gradient in long double."""
    values, right = np.linalg.eig(matrix.astype("float64"))
    i, n = np.argmax(np.abs(values)), len(matrix)

    def polished(t: np.ndarray, x: np.ndarray) -> tuple[Any, np.ndarray]:
        value, x = np.clongdouble(values[i]), x / np.linalg.norm(x)
        system = np.zeros((n + 1, n + 1), complex)
        system[:n, :n] = t.astype("float64") - values[i] * np.eye(n)
        system[:n, n], system[n, :n] = -x, x.conj()
        inverse, x = np.linalg.inv(system), x.astype("clongdouble")
        for _ in range(6):
            change = inverse @ np.append(value * x - t @ x, 0).astype(complex)
            x, value = x + change[:n], value + change[n]
        return value, x

    exact = matrix.astype("longdouble")
    value, x = polished(exact, right[:, i])
    _, y = polished(exact.T, np.linalg.inv(right)[i])
    gradient = np.conj(value) / np.abs(value) * np.outer(y, x) / (y @ x)
    return float(np.abs(value)), gradient.real.astype("float64")


def by_lapack(matrix: np.ndarray) -> tuple[float, np.ndarray]:
    """Computes the spectral radius and its gradient by `geev`, in its dtype."""
    values, left, right = scipy.linalg.eig(matrix, left=True, right=True)
    i = np.argmax(np.abs(values))
    value, y, x = values[i], left[:, i].conj(), right[:, i]
    gradient = np.conj(value) / np.abs(value) * np.outer(y, x) / (y @ x)
    return float(np.abs(value)), gradient.real


def by_layer(matrix: np.ndarray) -> tuple[float, np.ndarray]:
    """Computes the spectral radius and its gradient as ENRNN does."""
    if keras.backend.backend() == "jax":
        import jax

        value, gradient = jax.value_and_grad(spectral_radius)(matrix)
    else:
        import tensorflow as tf

        variable = tf.constant(matrix)
        with tf.GradientTape() as tape:
            tape.watch(variable)
            value = spectral_radius(variable)
        gradient = tape.gradient(value, variable)
    return float(value), ops.convert_to_numpy(gradient)


def main() -> None:
    """Prints the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=positive_int, nargs="+", default=[20, 200, 720])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    options = parser.parse_args()
    print("| n | matrix | norm / rho | dtype | radius | LAPACK | gradient | LAPACK |")
    print("|--:|---|--:|---|--:|--:|--:|--:|")
    for name, exact in matrices(options.sizes):
        for dtype in options.dtypes:
            matrix = exact.astype(dtype)
            radius, gradient = true_pair(matrix)
            errors = []
            for found in (by_layer(matrix), by_lapack(matrix)):
                difference = np.linalg.norm(found[1] - gradient)
                errors.append(
                    (
                        abs(found[0] - radius) / radius,
                        difference / np.linalg.norm(gradient),
                    )
                )
            (radius_error, gradient_error), (of_radius, of_gradient) = errors
            ratio = np.linalg.norm(matrix, 2) / radius
            print(
                f"| {len(matrix)} | {name} | {ratio:.1f} | {dtype} "
                f"| {radius_error:.0e} | {of_radius:.0e} "
                f"| {gradient_error:.0e} | {of_gradient:.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
