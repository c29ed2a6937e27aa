"""Pictures of what a run did."""

from keras_ortho.diagnostics.plots import plot_curves, plot_spectrograms

__all__ = ["plot_curves", "plot_spectrograms"]
