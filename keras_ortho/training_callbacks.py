"""Callbacks for `keras_ortho.training.train` and `fit`."""

from typing import Any

import keras
from keras import ops

from keras_ortho.cells.base import RecurrentCell
from keras_ortho.checks import check_count
from keras_ortho.distribution import shared_evaluation
from keras_ortho.keras_internals import layers_within
from keras_ortho.layers.carried_state import CarriedState
from keras_ortho.layers.ortho_dense import OrthoDense
from keras_ortho.optimizers.within import optimizers_within
from keras_ortho.periodic_callback import PeriodicCallback
from keras_ortho.training_checks import check_dataset


class ResetStates(keras.callbacks.Callback):
    """Resets the states of `CarriedState` layers where a text begins anew.

    Before the first of its batches in training; before each evaluation, after which
    the training goes on with the states that it had. Give it to `evaluate`, too.

    Args:
        every: Number of batches of the text, `len(data)`, where `fit` gets it
            repeated and an epoch is not one pass over it. Default: `None`, at each
            epoch's begin.

    Raises:
        ValueError: If `every` is not positive; in `fit` if the model has no such
            layer, or, with `every`, for `steps_per_execution` above 1 or an unknown
            number of steps.

    Example:
    >>> callback = ResetStates()
    """

    def __init__(self, every: int | None = None) -> None:
        super().__init__()
        self.every = None if every is None else check_count("every", every)
        self._batches_before = 0
        self._kept: list[Any] = []

    def _layers(self) -> list[CarriedState]:
        return [
            layer
            for layer in layers_within(self.model)
            if isinstance(layer, CarriedState)
        ]

    def _reset(self) -> None:
        for layer in self._layers():
            layer.reset_state()

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Checks that there are states, and that the batches can be counted."""
        if not self._layers():
            raise ValueError(
                "`model` must contain a `CarriedState` layer. "
                f"Received: {self.model.name} with none"
            )
        if self.every is None:
            return
        steps, together = self.params.get("steps"), self.model.steps_per_execution
        if steps is None or together != 1:
            raise ValueError(
                "`every` needs a known number of steps in an epoch, and one step in an "
                f"execution. Received: steps={steps}, steps_per_execution={together}"
            )

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Resets, unless the text goes on."""
        if self.every is None:
            self._reset()
        else:
            self._batches_before = epoch * self.params["steps"]

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Resets where the text begins anew within an epoch."""
        if self.every is not None and (self._batches_before + batch) % self.every == 0:
            self._reset()

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Puts the states aside."""
        self._kept = [
            [ops.convert_to_numpy(variable) for variable in _carried(layer)]
            for layer in self._layers()
        ]
        self._reset()

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Puts the states back."""
        for layer, values in zip(self._layers(), self._kept, strict=True):
            for variable, value in zip(_carried(layer), values, strict=True):
                variable.assign(value)


def _carried(layer: CarriedState) -> list[keras.Variable]:
    """The states, and whether they have begun."""
    return [*layer.states, layer.has_begun]


class Rebase(PeriodicCallback):
    """Moves the bases of `Rebased` parametrizations, after every so many updates.

    The free variables are then set to zero, as in the paper; a layer that moves its
    base by itself leaves them where they are. With `steps_per_execution` above 1 the
    base moves at the first opportunity, which may be some updates later.

    Args:
        every: Number of updates, a positive integer. Default: 100, the paper's.

    Raises:
        ValueError: If `every` is out of its range; in `fit` if the model has no layer
            with a base, or its optimizer averages weights (`use_ema`), which mean
            something else for each base.

    Example:
    >>> callback = Rebase(every=100)

    Reference:

    - [Lezcano-Casado, 2019](https://arxiv.org/abs/1909.09501), algorithm 1
    """

    def __init__(self, every: int = 100) -> None:
        super().__init__(every)

    def _layers(self) -> list[Any]:
        return [
            layer
            for layer in layers_within(self.model)
            if isinstance(layer, RecurrentCell | OrthoDense)
            and getattr(layer.parametrization, "has_base", False)
        ]

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Checks that there are bases, and no averages of what belongs to them."""
        if not self._layers():
            raise ValueError(
                "`model` must contain a layer with a `Rebased` parametrization. "
                f"Received: {self.model.name} with none"
            )
        for optimizer in optimizers_within(self.model):
            if optimizer.use_ema:
                raise ValueError(
                    "`Rebase` needs an optimizer without averages of the weights: "
                    "those of the free variables would be of several bases. "
                    f"Received: {optimizer.name} with use_ema=True"
                )

    def act(self) -> None:
        """Moves the bases."""
        for layer in self._layers():
            layer.rebase()


class TestFigures(keras.callbacks.Callback):
    """Adds the figures on the test data to those of an epoch.

    For a curve beside that of the validation data, on which the epoch is chosen. They
    are named as those of `fit`, after `"test_"`.

    Args:
        data: `tf.data.Dataset` to evaluate.
        callbacks: Callbacks of `evaluate`. Default: none.

    Raises:
        ValueError: If `data` is no `tf.data.Dataset`.

    Example:
    >>> from keras_ortho.tasks import adding
    >>> task = adding.load(20, train_size=50, test_size=50)
    >>> callback = TestFigures(task.test)
    """

    __test__ = False  # Not a class of tests.

    def __init__(
        self, data: Any, callbacks: list[keras.callbacks.Callback] | None = None
    ) -> None:
        check_dataset("data", data)
        super().__init__()
        self.data = self._share = data
        self.callbacks: list[keras.callbacks.Callback] = callbacks or []

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Takes what this process has to evaluate."""
        self._share = shared_evaluation(self.model, self.data)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates the model as it is."""
        figures = self.model.evaluate(
            self._share, callbacks=self.callbacks, return_dict=True, verbose=0
        )
        if logs is not None:
            logs.update({f"test_{name}": value for name, value in figures.items()})
