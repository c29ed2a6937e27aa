"""The network that predicts the next frame of speech: a corrected linear prediction."""

import keras

from experiments.linear_prediction import LinearPrediction
from keras_ortho.audio import NUM_BINS

# Features per frame that the layer in the middle reads, and units of the dense layer
# that follows it.
CHANNELS = 128
OUTPUTS = 128


def correction(layer: keras.layers.Layer, linear: LinearPrediction) -> keras.Model:
    """Makes the network that corrects a linear prediction of the next frame.

    Inputs and outputs are in dB; the network works in standardized units. The linear
    prediction is not trained, and the correction starts at zero.
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
