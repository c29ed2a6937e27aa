"""Every layer, however it is built and called, against two other ways to compute it.

Drawn at random: the architecture's arguments, sizes, activation, masks, states, dtypes
and modes. The layer is held against Keras's `RNN` around the same cell, with gradients,
and against a loop in NumPy, with a gradient by differences along a random direction.

`make test` runs few cases, always the same; `make properties` runs 10 000 a backend.
`PROPERTY_CASES` is how many, at least, and `PROPERTY_SEED` which.

How far the results may be apart is measured: by how far the loop gets with numbers that
are each off by what is lost in the layer's precision. Gradients, which jump where an
activation bends, are compared in float64, where no number is that near a bend.
"""

import os

import hypothesis
import keras
import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.cells import loops
from tests.cells.cases import (
    LAYERS,
    ON_JAX,
    data,
    draw_inputs,
    draw_mask,
    draw_state,
    draw_weights,
    rounded,
    structures,
)
from tests.cells.evaluation import evaluation, numbers

CASES = int(os.environ.get("PROPERTY_CASES", 0))
# Cases with one structure: what is traced or compiled serves all of them.
EACH = 25 if CASES else 3
MODES = ("eager", "graph", "graph", "xla") if CASES else ("eager", "eager", "graph")
if ON_JAX:  # Where each eager call would compile its loops anew.
    MODES = ("graph",)
STRUCTURES = -(-CASES // (EACH * len(LAYERS))) or 1
LARGEST = 100  # Whose square is a number still in float16, and a sum of some.

pytestmark = [pytest.mark.backends, pytest.mark.usefixtures("cut_in_two")]


@pytest.mark.parametrize("architecture", LAYERS)
def test_layer_stock_and_loop(architecture):
    keras.backend.clear_session()
    if ON_JAX:  # Nor does it forget what it has compiled by itself.
        import jax

        jax.clear_caches()

    @hypothesis.settings(
        max_examples=STRUCTURES,
        database=None,
        deadline=None,
        # A case is small as it is, and to shrink it would build hundreds of layers.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
    )
    @hypothesis.given(
        structures(architecture, MODES), st.lists(data, min_size=EACH, max_size=EACH)
    )
    def holds(structure, cases):
        layer = structure.make()
        stock = structure.make_stock(layer)
        evaluate = {each: evaluation(each, structure) for each in (layer, stock)}
        for number, case in enumerate(cases):
            trial = Trial(structure, case, layer.cell)
            trial.hold(layer, stock, evaluate, along=number < 5)

    # Another for each, or all would draw alike.
    chosen = int(os.environ.get("PROPERTY_SEED", 0)) * len(LAYERS)
    hypothesis.seed(chosen + list(LAYERS).index(architecture))(holds)()


class Trial:
    """One layer with one set of data."""

    def __init__(self, structure, case, cell):
        self.structure, self.case, self.cell = structure, case, cell
        self.assign(draw_weights(cell, case))
        # As they are in the precision of the variables.
        self.values = {weight.name: numbers(weight) for weight in cell.weights}
        self.x, self.mask = draw_inputs(structure, case), draw_mask(structure, case)
        self.arguments = structure.arguments
        self.way = slice(None, None, -1 if self.arguments["go_backwards"] else 1)
        self.flipped = None if self.mask is None else self.mask[:, self.way]
        drawn = draw_state(structure, case, cell.state_size)
        self.state_shape = structure.shape[0], cell.state_size
        self.whole = np.array(np.broadcast_to(drawn, self.state_shape))
        self.start = [] if structure.start == "own" else [drawn]
        # Of the linear function of all outputs whose gradient is compared.
        batch, time, _ = structure.shape
        steps = (time,) if self.arguments["return_sequences"] else ()
        shapes = [(batch, *steps, cell.output_size)]
        shapes += [self.state_shape] * self.arguments["return_state"]
        random = case.random(4)
        self.coefficients = [
            random.normal(size=shape).astype(structure.wide) for shape in shapes
        ]

    def assign(self, values):
        for weight in self.cell.weights:
            weight.assign(values[weight.name])

    def evaluate(self, layer, function, start):
        """Outputs and gradients, from weights and state that no call has changed."""
        self.assign(self.values)
        if layer.stateful:
            layer.states[0].assign(self.whole)
            if getattr(layer, "has_begun", None) is not None:
                layer.has_begun.assign(True)
        mask = [] if self.mask is None else [self.mask]
        return function(self.x, start, mask, self.coefficients)

    def loop(self, values, x, before, error=0.0):
        """The states that NumPy computes with numbers that are off by an error."""
        random, dtype = self.case.random(6), self.structure.dtype

        def near(numbers, error=error):
            return numbers * (1 + error * random.uniform(-1, 1, np.shape(numbers)))

        wide = float(ml_dtypes.finfo(self.structure.wide).eps) * bool(error)
        self.assign(values)
        if error:
            for weight in self.cell.trainable_weights:
                weight.assign(near(values[weight.name], wide))
        return loops.loop(
            self.structure,
            {name: near(rounded(value, dtype)) for name, value in values.items()},
            near(rounded(numbers(self.cell.recurrent_matrix()), dtype)),
            near(rounded(x, dtype))[:, self.way],
            near(rounded(before, dtype)),
            self.flipped,
        )

    def before(self, values):
        """The state before the first step."""
        if self.start or self.arguments["stateful"]:
            return self.whole
        return np.broadcast_to(values.get("initial_state", 0.0), self.state_shape)

    def shown(self, states):
        """What the layer returns of the states of a loop.

        A step that is masked repeats the output of the step before, zero where there
        was none, or gives zero.
        """
        outputs, counts = states[..., : self.cell.output_size], self.flipped
        if counts is not None:
            if not self.arguments["zero_output_for_mask"]:
                counts = np.cumsum(counts, axis=1) > 0
            outputs = np.where(counts[:, :, None], outputs, 0)
        output = outputs if self.arguments["return_sequences"] else outputs[:, -1]
        return [output] + [states[:, -1]] * self.arguments["return_state"]

    def hold(self, layer, stock, evaluate, along):
        dtype = self.structure.dtype
        given = self.values, self.x, self.before(self.values)
        states, eps = self.loop(*given), float(ml_dtypes.finfo(dtype).eps)
        size = max(1.0, np.abs(states).max())
        off = np.abs(self.loop(*given, eps) - states).max()
        # A step sums up some ten products, and rounds the state.
        allowed = 20 * off + 10 * len(states[0]) * eps * size
        if dtype == "float16" and size > LARGEST:
            return

        outputs, found = self.evaluate(layer, evaluate[layer], self.start)
        expected = self.shown(states)
        everything = [*outputs, *(layer.states or [])]
        if layer.stateful:
            expected.append(states[:, -1])
        for k, (a, b) in enumerate(zip(everything, expected, strict=True)):
            compare(f"output {k}", a, b, allowed)
        if dtype != "float64":
            return

        start = [self.whole] if self.start else []
        stock_outputs, stock_found = self.evaluate(stock, evaluate[stock], start)
        for k, (a, b) in enumerate(zip(outputs, stock_outputs, strict=True)):
            compare(f"stock output {k}", a, numbers(b), allowed)
        found = {name: numbers(g) for name, g in found.items()}
        stock_found = {name: numbers(g) for name, g in stock_found.items()}
        if self.structure.start == "given to all":
            stock_found["start"] = stock_found["start"].sum(axis=0, keepdims=True)
        scale = size * max(np.abs(g).max(initial=1) for g in stock_found.values())
        # An error of the states is one of the gradients, some of which are far larger.
        allowed = scale * max(1e-10, 1e3 * allowed / size)
        assert found.keys() == stock_found.keys()
        for name, gradient in found.items():
            compare(f"gradient {name}", gradient, stock_found[name], allowed)
        if along:
            self.hold_along(found, allowed + 1e-8 * scale)

    def hold_along(self, found, allowed):
        """The gradient along one direction, by differences of the loop in NumPy."""
        random, size, sums = self.case.random(5), 1e-5, []
        directions = {name: random.normal(size=g.shape) for name, g in found.items()}
        for distance in (-2 * size, -size, 0, size, 2 * size):

            def move(name, value, distance=distance):
                return value + distance * directions.get(name, 0.0)

            values = {name: move(name, value) for name, value in self.values.items()}
            before = move("start", self.before(values))
            states = self.loop(values, move("inputs", self.x), before)
            pairs = zip(self.coefficients, self.shown(states), strict=True)
            sums.append(sum(np.sum(c * output) for c, output in pairs))
        wide = (sums[4] - sums[0]) / (4 * size)
        narrow = (sums[3] - sums[1]) / (2 * size)
        along = sum(np.sum(g * directions[name]) for name, g in found.items())
        # The next term of the series, of which the wider one has four times as much,
        # and a bend on the way: the curvatures would not be as the widths squared.
        curved = np.diff(sums[::2], 2) - 4 * np.diff(sums[1:4], 2)
        allowed += 4 * np.abs(wide - narrow) + np.abs(curved[0]) / size
        compare("along a direction", along, np.asarray(narrow), allowed)


def compare(what, found, expected, allowed):
    """Holds numbers to others."""
    found = numbers(found)
    assert found.shape == expected.shape, what
    error = np.abs(found - expected).max(initial=0)  # A NaN is not allowed, either.
    assert error <= allowed, f"{what}: {error}\nfound {found}\nexpected {expected}"
