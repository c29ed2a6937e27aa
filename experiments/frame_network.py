"""The network that predicts the next frame of speech: linear prediction, corrected."""

import keras

from experiments.linear_prediction import LinearPrediction
from keras_ortho.audio import NUM_BINS

# Numbers that the layer in the middle reads of a frame, and that the next one makes of
# what it gives.
CHANNELS = 128
OUTPUTS = 128


def correction(layer: keras.layers.Layer, linear: LinearPrediction) -> keras.Model:
    """Makes the network that corrects a linear prediction of the next frame.

    All is in standardized units but its input and its output, which are in dB. The
    linear prediction stays as it is, and the correction starts at zero.

    Args:
        layer: Gives an output for each frame.
        linear: The prediction.
    """
    statistics = {"mean": linear.mean, "variance": linear.std**2}
    frames = keras.Input((None, NUM_BINS))
    x = keras.layers.Normalization(**statistics)(frames)
    predicted = keras.layers.Conv1D(
        NUM_BINS, len(linear.kernel), padding="causal", trainable=False, name="linear"
    )
    prediction = predicted(x)
    predicted.set_weights([linear.kernel, linear.bias])
    h = keras.layers.Dropout(0.2)(x)
    h = keras.layers.Conv1D(CHANNELS, 2, padding="causal", activation="gelu")(h)
    states = layer(h)
    h = keras.layers.Concatenate()([h, keras.layers.Dropout(0.4)(states)])
    h = keras.layers.Dense(OUTPUTS, activation="gelu")(h)
    h = keras.layers.Dropout(0.4)(h)
    corrected = keras.layers.Dense(NUM_BINS, kernel_initializer="zeros")(h)
    y = keras.layers.Add()([prediction, corrected])
    outputs = keras.layers.Normalization(**statistics, invert=True)(y)
    return keras.Model(frames, outputs)
