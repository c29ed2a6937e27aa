"""What `keras_ortho.training.train` checks before it touches its folder."""

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
    """Checks that a model can be trained in a run that is resumed.

    Args:
        model: The model.

    Raises:
        ValueError: If it is no model, not built, not compiled, or has a stateful
            layer.
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
                "`model` must have no stateful layer, whose states a resumed run would "
                "begin anew: wrap it in `keras_ortho.layers.CarriedState` instead. "
                f"Received: {layer.name} with stateful=True"
            )


def check_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    """Checks the callbacks of a run.

    Args:
        callbacks: The callbacks.

    Returns:
        The callbacks.

    Raises:
        ValueError: If they are none, or one puts averages in the place of weights.
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
            "`callbacks` must hold no `SwapEMAWeights`: `train` puts the averages in "
            f"place itself. Received: callbacks={callbacks}"
        )
    return found


def check_folder(folder: Any) -> None:
    """Checks that a run can have a folder.

    Args:
        folder: The argument.

    Raises:
        ValueError: If it is no path, or that of a file.
    """
    is_path = isinstance(folder, str | os.PathLike)
    if not is_path or (os.path.exists(folder) and not os.path.isdir(folder)):
        raise ValueError(
            f"`folder` must be the path of a folder. Received: folder={folder!r}"
        )


def check_monitor(monitor: Any) -> None:
    """Checks that a figure is given by its name.

    Args:
        monitor: The argument.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(monitor, str):
        raise ValueError(
            "`monitor` must be the name of a figure, such as 'val_loss'. "
            f"Received: monitor={monitor!r}"
        )


def check_dataset(name: str, data: Any) -> None:
    """Checks that an argument is a data set.

    Args:
        name: Name of the argument.
        data: Its value.

    Raises:
        ValueError: If it is none.
    """
    tf = require("tensorflow")
    if not isinstance(data, tf.data.Dataset):
        raise ValueError(
            f"`{name}` must be a `tf.data.Dataset`: of arrays "
            "`tf.data.Dataset.from_tensor_slices((x, y)).batch(32)`. "
            f"Received: {type(data).__name__}"
        )


def check_passes(data: Callable[..., Any]) -> None:
    """Checks that a function makes the data of a pass from its number.

    Args:
        data: The function.

    Raises:
        ValueError: If it cannot be called with one argument.
    """
    try:
        inspect.signature(data).bind(0)
    except TypeError as error:
        raise ValueError(
            "`data` must be a function of the number of the pass, or a "
            f"`tf.data.Dataset`: {error}. Received: data={data}"
        ) from error


def check_validation_data(data: Any) -> None:
    """Checks that the validation data are a data set that ends.

    Args:
        data: The argument.

    Raises:
        ValueError: If it is none, empty, or repeats for ever.
    """
    check_dataset("validation_data", data)
    tf = require("tensorflow")
    if data.cardinality() == 0:
        raise ValueError(
            f"`validation_data` must have a batch. Received: {data} with cardinality 0"
        )
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "`validation_data` must end, as each epoch goes through all of it: leave "
            f"out its `repeat()`. Received: {data} with infinite cardinality"
        )


def check_steps(model: keras.Model, steps: int) -> None:
    """Checks that an epoch is a whole number of executions.

    Keras would otherwise train on some batches more, which a resumed run cannot know.

    Args:
        model: The compiled model.
        steps: Batches in an epoch.

    Raises:
        ValueError: If it is not.
    """
    together = model.steps_per_execution
    if steps % together:
        raise ValueError(
            "`steps_per_execution` of `model` must divide the batches in an epoch, "
            f"{steps}. Received: steps_per_execution={together}"
        )


def run_settings(
    model: keras.Model, monitor: str, batches: int, settings: Any
) -> dict[str, Any]:
    """Puts together what makes a run another one than others.

    Args:
        model: The compiled model.
        monitor: The figure that is least in the best epoch.
        batches: How many the data have.
        settings: Settings of the user's, or `None`.

    Returns:
        The settings, with the figure, and, where they do not have their own of these
        names, the optimizers, the losses, and the numbers of parameters and of batches.

    Raises:
        ValueError: If they are no mapping, or have a name that has another meaning.
    """
    given = {} if settings is None else settings
    if not isinstance(given, Mapping) or "monitor" in given or SEAL in given:
        raise ValueError(
            "`settings` must be a mapping without `monitor`, which is an argument, and "
            f"`{SEAL}`, which is the checksum of its file. Received: "
            f"settings={settings}"
        )
    return {**model_settings(model), "batches": batches, **given, "monitor": monitor}


def model_settings(model: keras.Model) -> dict[str, Any]:
    """Tells models apart that cannot go on from each other's states.

    Args:
        model: The compiled model.

    Returns:
        The classes of its optimizers, the names of its losses, and its number of
        parameters.
    """
    optimizers: Sequence[Any] = optimizers_within(model)
    return {
        "optimizer": ", ".join(type(each).__name__ for each in optimizers),
        "loss": ", ".join(map(_loss_name, keras.tree.flatten(model.loss))),
        "parameters": model.count_params(),
    }


def _loss_name(loss: Any) -> str:
    """The same name for `"mse"`, the function and the class of that loss."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    own = getattr(loss, "name", None) or getattr(loss, "__name__", None)
    return own or type(loss).__name__
