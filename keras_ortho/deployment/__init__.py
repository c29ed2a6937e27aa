"""Deployment of trained models: plain kernels and single-step models."""

from keras_ortho.deployment.freezing import freeze
from keras_ortho.deployment.steps import initial_states, step_model

__all__ = ["freeze", "initial_states", "step_model"]
