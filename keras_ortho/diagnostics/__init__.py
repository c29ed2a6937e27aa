"""Diagnostics of recurrent networks: measurements, a training log and figures.

They work with any Keras model that has a recurrent layer, of this package or of Keras,
on TensorFlow, JAX and PyTorch, and do not change it. The figures need matplotlib.
"""

from keras_ortho.diagnostics.flow import (
    end_to_end_jacobians,
    gradient_norms,
    input_sensitivity,
    jacobian_eigenvalues,
    trajectories,
    vector_field,
)
from keras_ortho.diagnostics.log import Log
from keras_ortho.diagnostics.matrices import (
    SpectralMargin,
    kernel_eigenvalues,
    manifold_distances,
    singular_values,
    spectral_margins,
)
from keras_ortho.diagnostics.plots import (
    plot_curves,
    plot_eigenvalue_moduli,
    plot_eigenvalues,
    plot_gradient_norms,
    plot_heat_map,
    plot_spectrograms,
    plot_trajectories,
)

__all__ = [
    "Log",
    "SpectralMargin",
    "end_to_end_jacobians",
    "gradient_norms",
    "input_sensitivity",
    "jacobian_eigenvalues",
    "kernel_eigenvalues",
    "manifold_distances",
    "plot_curves",
    "plot_eigenvalue_moduli",
    "plot_eigenvalues",
    "plot_gradient_norms",
    "plot_heat_map",
    "plot_spectrograms",
    "plot_trajectories",
    "singular_values",
    "spectral_margins",
    "trajectories",
    "vector_field",
]
