"""Maps from free variables to recurrent matrices, with their inverses and ranges."""

from keras_ortho.parametrizations.arithmetic import (
    orthogonality_error,
    random_orthogonal,
    random_unitary,
    unitarity_error,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import (
    ScaledCayley,
    ScaledCayleyUnitary,
    scaled_cayley,
    scaled_cayley_inverse,
    scaled_cayley_unitary,
    scaled_cayley_unitary_inverse,
)
from keras_ortho.parametrizations.eigenvalue_normalized import EigenvalueNormalized
from keras_ortho.parametrizations.exponential import (
    SkewExponential,
    skew_exponential,
    skew_logarithm,
)
from keras_ortho.parametrizations.givens import (
    GivensOrthogonal,
    GivensUnitary,
    givens_orthogonal,
    givens_orthogonal_inverse,
    givens_unitary,
    givens_unitary_inverse,
)
from keras_ortho.parametrizations.householder import (
    Householder,
    householder_inverse,
    householder_product,
)
from keras_ortho.parametrizations.schur import RealSchur, schur_inverse, schur_matrix
from keras_ortho.parametrizations.skew import (
    Antisymmetric,
    Unstructured,
    antisymmetric,
    antisymmetric_inverse,
    antisymmetry_error,
)
from keras_ortho.parametrizations.spectral_radius import (
    dominant_eigenpair,
    eigenpair_report,
    normalize_spectral_radius,
    spectral_radius,
)
from keras_ortho.parametrizations.svd import (
    SVD,
    FactorizedCayley,
    bounded_singular_values,
    spectral_deviation,
    svd_inverse,
    svd_matrix,
)
from keras_ortho.parametrizations.unitary import (
    FullUnitary,
    RestrictedUnitary,
    restricted_unitary,
)
from keras_ortho.parametrizations.wrappers import Heads, Rebased

__all__ = [
    "SVD",
    "Antisymmetric",
    "EigenvalueNormalized",
    "FactorizedCayley",
    "FreeVariable",
    "FullUnitary",
    "GivensOrthogonal",
    "GivensUnitary",
    "Heads",
    "Householder",
    "Parametrization",
    "RealSchur",
    "Rebased",
    "RestrictedUnitary",
    "ScaledCayley",
    "ScaledCayleyUnitary",
    "SkewExponential",
    "Unstructured",
    "antisymmetric",
    "antisymmetric_inverse",
    "antisymmetry_error",
    "bounded_singular_values",
    "dominant_eigenpair",
    "eigenpair_report",
    "givens_orthogonal",
    "givens_orthogonal_inverse",
    "givens_unitary",
    "givens_unitary_inverse",
    "householder_inverse",
    "householder_product",
    "normalize_spectral_radius",
    "orthogonality_error",
    "random_orthogonal",
    "random_unitary",
    "restricted_unitary",
    "scaled_cayley",
    "scaled_cayley_inverse",
    "scaled_cayley_unitary",
    "scaled_cayley_unitary_inverse",
    "schur_inverse",
    "schur_matrix",
    "skew_exponential",
    "skew_logarithm",
    "spectral_deviation",
    "spectral_radius",
    "svd_inverse",
    "svd_matrix",
    "unitarity_error",
]
