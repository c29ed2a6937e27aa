"""Maps from free variables to recurrent matrices, with their inverses and ranges."""

from keras_ortho.parametrizations.arithmetic import orthogonality_error
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import (
    ScaledCayley,
    ScaledCayleyUnitary,
    scaled_cayley,
)
from keras_ortho.parametrizations.eigenvalue_normalized import EigenvalueNormalized
from keras_ortho.parametrizations.exponential import SkewExponential
from keras_ortho.parametrizations.givens import GivensOrthogonal, GivensUnitary
from keras_ortho.parametrizations.householder import Householder
from keras_ortho.parametrizations.schur import RealSchur
from keras_ortho.parametrizations.skew import Antisymmetric, Unstructured
from keras_ortho.parametrizations.spectral_radius import spectral_radius
from keras_ortho.parametrizations.svd import SVD, FactorizedCayley
from keras_ortho.parametrizations.unitary import FullUnitary, RestrictedUnitary
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
    "orthogonality_error",
    "scaled_cayley",
    "spectral_radius",
]
