"""Two layers of recent papers, without an orthogonal matrix: LRU and LEM."""

import math
import random
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.optimizers import set_group

Part = tuple[Any, Any, Any, Any]


class LRUBlock(keras.layers.Layer):
    """A linear recurrence with eigenvalues in the unit disk, then a gate.

    Orvieto et al., 2023, equations 4 to 7 and figure 1: normalization, recurrence,
    GELU, GLU, and the inputs added.
    """

    def build(self, input_shape: Sequence[Any]) -> None:
        """Creates the weights of as many complex states as there are inputs."""
        n = self.units = input_shape[-1]
        # Seeded by `keras.utils.set_random_seed`, as Keras's initializers are.
        draw = np.random.default_rng(random.randrange(2**31))

        def variable(name: str, values: np.ndarray) -> Any:
            constant = keras.initializers.Constant(values)
            return self.add_weight(shape=values.shape, initializer=constant, name=name)

        # Moduli uniform in the ring from 0.9 to 0.999 (lemma 3.2), phases in a circle.
        squares = draw.uniform(0.9**2, 0.999**2, n)
        self.log_decay = variable("log_decay", np.log(-0.5 * np.log(squares)))
        phases = draw.uniform(1e-3, 2 * math.pi, n)
        self.log_phase = variable("log_phase", np.log(phases))
        self.log_gain = variable("log_gain", 0.5 * np.log1p(-squares))
        for eigenvalues in (self.log_decay, self.log_phase, self.log_gain):
            set_group(eigenvalues, "recurrent")
        # B and C, real and imaginary parts side by side.
        b, c = draw.normal(size=(n, 2 * n)), draw.normal(size=(2 * n, n))
        self.into = variable("into", b / math.sqrt(2 * n))
        self.out = variable("out", c / math.sqrt(n))
        self.direct = variable("direct", draw.normal(size=n))
        self.norm = keras.layers.LayerNormalization()
        self.gate = keras.layers.Dense(2 * n)
        self.norm.build(input_shape)
        self.gate.build(input_shape)

    def call(self, inputs: Any) -> Any:
        """Returns outputs of the shape of the inputs, `(batch, time, units)`."""
        x = self.norm(inputs)
        modulus = ops.exp(-ops.exp(self.log_decay))
        phase = ops.exp(self.log_phase)
        driven = x @ self.into * ops.exp(ops.tile(self.log_gain, 2))
        real, imag = ops.split(driven, 2, axis=-1)
        ones = ops.ones_like(real)
        one = ones * modulus * ops.cos(phase), ones * modulus * ops.sin(phase)
        _, _, *states = ops.associative_scan(after, (*one, real, imag), axis=1)
        y = ops.concatenate(states, axis=-1) @ self.out + x * self.direct
        value, gate = ops.split(self.gate(keras.activations.gelu(y)), 2, axis=-1)
        return inputs + value * ops.sigmoid(gate)


def after(first: Part, second: Part) -> Part:
    """Returns the map `h -> a h + b` that is the first one, followed by the second."""
    (ar, ai, br, bi), (cr, ci, dr, di) = first, second
    a = ar * cr - ai * ci, ar * ci + ai * cr
    return *a, br * cr - bi * ci + dr, br * ci + bi * cr + di


class LRU(keras.layers.Layer):
    """A deep network of linear recurrent units, in place of one recurrent layer."""

    def __init__(self, units: int, blocks: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.return_sequences = False
        self.encoder = keras.layers.Dense(units)
        self.blocks = [LRUBlock() for _ in range(blocks)]

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Builds the encoder and the blocks."""
        self.encoder.build(input_shape)
        for block in self.blocks:
            block.build((*input_shape[:-1], self.encoder.units))

    def call(self, inputs: Any) -> Any:
        """Returns the outputs of all steps, or of the last."""
        x = self.encoder(inputs)
        for block in self.blocks:
            x = block(x)
        return x if self.return_sequences else x[:, -1]


class LEMCell(keras.layers.Layer):
    """Long expressive memory: Rusch et al., ICLR 2022, equation 3, with a step of 1.

    The weights begin uniform on `(-1 / sqrt(n), 1 / sqrt(n))`, as in the authors' code.
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.state_size = [units, units]
        self.output_size = units

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights: of both gates, of `z` and of `y`, in this order."""
        n, bound = self.units, 1 / math.sqrt(self.units)
        names = "kernel", "recurrent_kernel", "slow_kernel", "bias"
        shapes = (input_shape[-1], 4 * n), (n, 3 * n), (n, n), (4 * n,)
        for name, shape in zip(names, shapes, strict=True):
            uniform = keras.initializers.RandomUniform(-bound, bound)
            setattr(self, name, self.add_weight(shape=shape, initializer=uniform))

    def call(self, inputs: Any, states: Sequence[Any], training: Any = None) -> Any:
        """Takes a step from the states `y` and `z`."""
        y, z = states
        x = ops.split(inputs @ self.kernel + self.bias, 4, axis=-1)
        h = ops.split(y @ self.recurrent_kernel, 3, axis=-1)
        fast, slow = ops.sigmoid(x[0] + h[0]), ops.sigmoid(x[1] + h[1])
        z = (1 - fast) * z + fast * ops.tanh(x[2] + h[2])
        y = (1 - slow) * y + slow * ops.tanh(x[3] + z @ self.slow_kernel)
        return y, [y, z]
