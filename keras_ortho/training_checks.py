"""The checks of `keras_ortho.training.train` before it touches its folder."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from keras_ortho.extras import require
from keras_ortho.keras_internals import layers_within
from keras_ortho.optimizers.within import optimizers_within
from keras_ortho.sealed import SEAL


def check_model(model: Any) -> None:
    """Checks that a model can be trained in a resumable run.

    Args:
        model: The model.

    Raises:
        ValueError: If `model` is not a Keras model, is not built or compiled, or has a
            stateful layer.
    """
    if not isinstance(model, keras.Model):
        raise ValueError(f"`model` must be a Keras model. Received: {model!r}")
    for name, remedy in (
        ("built", "give it an `Input`, or call it once"),
        ("compiled", "call its `compile`"),
    ):
        if not getattr(model, name):
            raise ValueError(
                f"`model` must be {name}: {remedy}. "
                f"Received: {model.name} with {name}=False"
            )
    for layer in layers_within(model):
        if isinstance(layer, keras.layers.RNN) and layer.stateful:
            raise ValueError(
                "`model` must have no stateful layer, whose states a resumed run "
                "would lose: use `keras_ortho.layers.CarriedState` instead. Received: "
                f"{layer.name} with stateful=True"
            )


def check_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    """Checks the callbacks of a run.

    Args:
        callbacks: The callbacks.

    Returns:
        A list of the callbacks.

    Raises:
        ValueError: If `callbacks` is not an iterable of callbacks, or contains a
            `SwapEMAWeights`.
    """
    try:
        found = list(callbacks)
    except TypeError:
        found = [None]
    if not all(isinstance(each, keras.callbacks.Callback) for each in found):
        raise ValueError(
            f"`callbacks` must be a list of callbacks. Received: callbacks={callbacks}"
        )
    if any(isinstance(each, keras.callbacks.SwapEMAWeights) for each in found):
        raise ValueError(
            "`callbacks` must not contain `SwapEMAWeights`: `train` itself applies "
            f"the averages. Received: callbacks={callbacks}"
        )
    return found


def check_folder(folder: Any) -> None:
    """Checks that a path can be the folder of a run.

    Args:
        folder: The argument.

    Raises:
        ValueError: If `folder` is not a path, or is the path of a file.
    """
    is_path = isinstance(folder, str | os.PathLike)
    if not is_path or (os.path.exists(folder) and not os.path.isdir(folder)):
        raise ValueError(
            f"`folder` must be the path of a folder. Received: folder={folder!r}"
        )


def check_monitor(monitor: Any) -> None:
    """Checks that `monitor` is a name.

    Args:
        monitor: The argument.

    Raises:
        ValueError: If `monitor` is not a string.
    """
    if not isinstance(monitor, str):
        raise ValueError(
            "`monitor` must be the name of a metric, such as 'val_loss'. Received: "
            f"monitor={monitor!r}"
        )


def check_dataset(name: str, data: Any) -> None:
    """Checks that an argument is a `tf.data.Dataset`.

    Args:
        name: Name of the argument.
        data: Its value.

    Raises:
        ValueError: If the value is not a `tf.data.Dataset`.
    """
    tf = require("tensorflow")
    if not isinstance(data, tf.data.Dataset):
        raise ValueError(
            f"`{name}` must be a `tf.data.Dataset`; for arrays, "
            "`tf.data.Dataset.from_tensor_slices((x, y)).batch(32)`. Received: "
            f"{type(data).__name__}"
        )


def check_passes(data: Callable[..., Any]) -> None:
    """Checks that a function accepts the number of a pass.

    Args:
        data: The function.

    Raises:
        ValueError: If the function cannot be called with one argument.
    """
    try:
        inspect.signature(data).bind(0)
    except TypeError as error:
        raise ValueError(
            "`data` must be a `tf.data.Dataset`, or a function of the number of the "
            f"epoch: {error}. Received: data={data}"
        ) from error


def check_validation_data(data: Any) -> None:
    """Checks that the validation data is a nonempty, finite data set.

    Args:
        data: The argument.

    Raises:
        ValueError: If `data` is not a `tf.data.Dataset`, is empty, or repeats forever.
    """
    check_dataset("validation_data", data)
    tf = require("tensorflow")
    if data.cardinality() == 0:
        raise ValueError(
            f"`validation_data` must not be empty. Received: {data} with cardinality 0"
        )
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "`validation_data` must be finite, as each epoch reads all of it: leave "
            f"out `repeat()`. Received: {data} with infinite cardinality"
        )


def check_steps(model: keras.Model, steps: int) -> None:
    """Checks that `steps_per_execution` divides the number of batches in an epoch.

    Otherwise, Keras would train on some extra batches, unknown to a resumed run.

    Args:
        model: The compiled model.
        steps: Number of batches in an epoch.

    Raises:
        ValueError: If `steps` is not a multiple of `steps_per_execution`.
    """
    together = model.steps_per_execution
    if steps % together:
        raise ValueError(
            "`steps_per_execution` of `model` must divide the number of batches per "
            f"epoch, {steps}. Received: steps_per_execution={together}"
        )


def run_settings(
    model: keras.Model, monitor: str, batches: int, settings: Any
) -> dict[str, Any]:
    """Returns the settings that identify a run.

    Args:
        model: The compiled model.
        monitor: Name of the metric whose minimum marks the best epoch.
        batches: Number of batches in the data.
        settings: The user's settings, or `None`.

    Returns:
        A dictionary of the user's settings, `monitor` and, unless the user's settings
        contain them, the optimizers, the losses, and the numbers of parameters and
        batches.

    Raises:
        ValueError: If `settings` is not a mapping, or contains a reserved name.
    """
    given = {} if settings is None else settings
    if not isinstance(given, Mapping) or "monitor" in given or SEAL in given:
        raise ValueError(
            "`settings` must be a mapping without the reserved names `monitor` and "
            f"`{SEAL}`. Received: settings={settings}"
        )
    return {**model_settings(model), "batches": batches, **given, "monitor": monitor}


def model_settings(model: keras.Model) -> dict[str, Any]:
    """Returns the settings of a model that must match when a run resumes.

    Args:
        model: The compiled model.

    Returns:
        A dictionary with the classes of the optimizers, the names of the losses, and
        the number of parameters.
    """
    optimizers: Sequence[Any] = optimizers_within(model)
    return {
        "optimizer": ", ".join(type(each).__name__ for each in optimizers),
        "loss": ", ".join(map(_loss_name, keras.tree.flatten(model.loss))),
        "parameters": model.count_params(),
    }


def _loss_name(loss: Any) -> str:
    """Returns the name of a loss: the same for `"mse"`, its function and its class."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    own = getattr(loss, "name", None) or getattr(loss, "__name__", None)
    return own or type(loss).__name__
