"""Deployment of trained models: plain kernels, one step at a time."""

from keras_ortho.deployment.freezing import freeze
from keras_ortho.deployment.steps import initial_states, step_model

__all__ = ["freeze", "initial_states", "step_model"]
