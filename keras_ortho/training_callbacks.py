"""Callbacks for `keras_ortho.training.train` and `fit`."""

from typing import Any

import keras
from keras import ops

from keras_ortho.cells.cell import RecurrentCell
from keras_ortho.checks import check, check_count
from keras_ortho.keras_internals import layers_within
from keras_ortho.layers.carried_state import CarriedState
from keras_ortho.layers.dense import OrthoDense
from keras_ortho.layers.parametrized_layer import ParametrizedLayer
from keras_ortho.optimizers.groups import optimizers_within
from keras_ortho.training import Logs, check_batches


class ResetStates(keras.callbacks.Callback):
    """Resets the states of `CarriedState` layers whenever a text starts again.

    It also resets them before each evaluation, after which training continues with its
    previous states. Pass the callback to `evaluate`, too.

    Args:
        every: Number of batches of the text, `len(data)`, if an epoch is not one pass
            over it. Default: `None`, reset at the start of each epoch.

    Raises:
        ValueError: If `every` is not positive, or requires that the number of steps is
            known and `steps_per_execution` 1. In `fit`, if there is no such layer.

    Example:
    >>> callback = ResetStates()
    """

    def __init__(self, every: int | None = None) -> None:
        super().__init__()
        self.every = None if every is None else check_count("every", every)
        self._batches_before = 0
        self._kept: list[Any] = []

    def _layers(self) -> list[CarriedState]:
        return [x for x in layers_within(self.model) if isinstance(x, CarriedState)]

    def _states(self) -> list[keras.Variable]:
        return [v for x in self._layers() for v in (*x.states, x.has_begun)]

    def _reset(self) -> None:
        for layer in self._layers():
            layer.reset_state()

    def on_train_begin(self, logs: Logs = None) -> None:
        """Checks that the model has states, and that batches can be counted."""
        check(self._layers(), "model", "contain a `CarriedState` layer", "none")
        if self.every is None:
            return
        steps, together = self.params.get("steps"), self.model.steps_per_execution
        wanted = "be `None` unless the steps of an epoch are known, and executed singly"
        received = f"steps={steps}, steps_per_execution={together}"
        check(steps is not None and together == 1, "every", wanted, received)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Resets the states, unless `every` is given."""
        if self.every is None:
            self._reset()
        else:
            self._batches_before = epoch * self.params["steps"]

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Resets the states every `every` batches."""
        if self.every is not None and (self._batches_before + batch) % self.every == 0:
            self._reset()

    def on_test_begin(self, logs: Logs = None) -> None:
        """Sets the states of training aside, and resets them."""
        self._kept = [ops.convert_to_numpy(variable) for variable in self._states()]
        self._reset()

    def on_test_end(self, logs: Logs = None) -> None:
        """Restores the states of training."""
        for variable, value in zip(self._states(), self._kept, strict=True):
            variable.assign(value)


class Rebase(keras.callbacks.Callback):
    """Moves the bases of `Rebased` parametrizations every `every` updates.

    The free variables become zero, as in the paper; a layer that moves its base by
    itself (`rebase_every`) leaves them unchanged. An update may take several batches
    (gradient accumulation); several in one execution move the bases once.

    Args:
        every: Number of updates, a positive integer. Default: 100, as in the paper.

    Raises:
        ValueError: If `every` is not positive. In `fit`, if the model has no base, or
            an optimizer averages the weights (`use_ema`), which change their meaning.

    Example:
    >>> callback = Rebase(every=100)

    Reference:
    [Lezcano-Casado, 2019](https://arxiv.org/abs/1909.09501), algorithm 1
    """

    def __init__(self, every: int = 100) -> None:
        super().__init__()
        self.every: int = check_count("every", every)
        self._periods = 0

    def _layers(self) -> list[Any]:
        kinds = RecurrentCell | OrthoDense | ParametrizedLayer
        own = [x for x in layers_within(self.model) if isinstance(x, kinds)]
        return [x for x in own if getattr(x.parametrization, "has_base", False)]

    def on_train_begin(self, logs: Logs = None) -> None:
        """Checks that the model has bases, and that no optimizer averages weights."""
        wanted = "contain a layer with a `Rebased` parametrization"
        check(self._layers(), "model", wanted, f"{self.model.name} with none")
        wanted = "not average weights (`use_ema`), which would mix several bases"
        for optimizer in optimizers_within(self.model):
            check(not optimizer.use_ema, "optimizer", wanted, optimizer.name)

    def _completed(self) -> int:
        """Returns the number of periods since the optimizer began."""
        updates = (int(each.iterations) for each in optimizers_within(self.model))
        return max(updates) // self.every

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Notes the updates of previous epochs, also of an earlier `fit`."""
        self._periods = self._completed()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Moves the bases if they are due."""
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # Writes the state of `fit` to the variables.
        periods, self._periods = self._periods, self._completed()
        if self._periods > periods:
            for layer in self._layers():
                layer.rebase()


class TestFigures(keras.callbacks.Callback):
    """Adds the metrics on the test data to the logs of each epoch.

    The names are those of `fit`, prefixed with `"test_"`.

    Args:
        data: `tf.data.Dataset` to evaluate, with a known number of batches.
        callbacks: List of callbacks for `evaluate`. Default: `None`.

    Raises:
        ValueError: If `data` is no `tf.data.Dataset` of a known size.

    Example:
    >>> from keras_ortho.tasks import adding
    >>> task = adding.load(20, train_size=50, test_size=50)
    >>> callback = TestFigures(task.test)
    """

    __test__ = False  # Keeps pytest from collecting this class.

    def __init__(
        self, data: Any, callbacks: list[keras.callbacks.Callback] | None = None
    ) -> None:
        check_batches("data", data)
        super().__init__()
        self.data = data
        self.callbacks: list[keras.callbacks.Callback] = callbacks or []

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Evaluates the current model."""
        figures = self.model.evaluate(
            self.data, callbacks=self.callbacks, return_dict=True, verbose=0
        )
        if logs is not None:
            logs.update({f"test_{name}": value for name, value in figures.items()})
