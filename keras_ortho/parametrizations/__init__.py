"""Maps from free variables to recurrent matrices, and back."""

from keras_ortho.parametrizations.cayley import scaled_cayley
from keras_ortho.parametrizations.kahan import scaled_cayley_inverse
from keras_ortho.parametrizations.orthogonality import orthogonality_error

__all__ = ["orthogonality_error", "scaled_cayley", "scaled_cayley_inverse"]
