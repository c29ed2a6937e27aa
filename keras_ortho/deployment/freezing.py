"""Copies of trained models in which every kernel is a plain weight."""

import tempfile
from typing import Any

import keras
from keras import ops

from keras_ortho.cells.cell import RecurrentCell, is_modrelu
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.configs import argument_names
from keras_ortho.deployment.causality import overrides_call
from keras_ortho.keras_internals import Functional, knowing_also, layers_within
from keras_ortho.layers.bnp_dense import BNPDense
from keras_ortho.layers.dense import ParametrizedDense
from keras_ortho.layers.parametrized_layer import ParametrizedLayer, made_within

FREEZABLE = (RecurrentCell, RecurrentLayer, ParametrizedDense)


def freeze(model: keras.layers.Layer) -> Any:
    """Copies a trained model, with every kernel as a plain weight.

    The copy computes the same outputs without any factorization. A recurrent layer or
    cell with a step `f(x U + h W)` becomes a `keras.layers.SimpleRNN` or
    `SimpleRNNCell`, unless it has modReLU, heads, a trained initial state or an
    `activity_regularizer`; any other keeps its class, with a weight `recurrent_kernel`
    instead of the free variables. Dense layers become `keras.layers.Dense`, and the
    layers that `keras_ortho.parametrize` made those that it was given.

    The copy is not compiled, and the states of its stateful layers are reset. It can be
    trained further, but its kernels do not stay orthogonal. Regularizers of free
    variables are dropped.

    Args:
        model: A built `Sequential` or functional model, or a built layer. The config of
            a model or wrapper must include that of the layers within.

    Returns:
        The copy. A model keeps its class; a layer is replaced as above.

    Raises:
        ValueError: If `model` is not built, has a model or dense layer that overrides
            `call`, or a layer or cell that appears in several others or twice in one.
        TypeError: If Keras cannot restore a part, such as an unregistered function.

    Example:
    >>> layers = [keras.Input((None, 3)), ScoRNN(8, activation="tanh")]
    >>> model = keras.Sequential([*layers, keras.layers.Dense(2)])
    >>> [type(layer).__name__ for layer in freeze(model).layers]
    ['SimpleRNN', 'Dense']
    """
    if not isinstance(model, keras.layers.Layer) or not model.built:
        raise ValueError(f"`model` must be a built Keras layer. Received: {model!r}")
    every = layers_within(model)
    for layer in every:
        own_call = isinstance(layer, ParametrizedDense) and overrides_call(layer)
        graph = isinstance(layer, keras.Sequential | Functional)
        if own_call or (isinstance(layer, keras.Model) and not graph):
            raise _cannot(layer, "overrides `call`, which its config does not describe")
        parts = layer.layers if isinstance(layer, keras.Sequential) else ()
        if len(parts) > len(set(map(id, parts))):
            raise _cannot(layer, "has a layer twice, which its config contains once")
    # Classes that are not registered are looked up by name.
    own = {type(x) for x in every if not type(x).__module__.startswith("keras.")}
    with knowing_also({cls.__name__: cls for cls in own}):
        config = _frozen(keras.saving.serialize_keras_object(model))
        copy = keras.saving.deserialize_keras_object(config, safe_mode=False)
    made = made_within(model)
    before = [layer for layer in every if not isinstance(layer, ParametrizedLayer)]
    after = layers_within(copy)
    if len(before) != len(after):
        raise _cannot(model, "has a layer or cell inside several others")
    for old, new in zip(before, after, strict=True):
        cell = getattr(new, "cell", new)
        if isinstance(new, FREEZABLE) and not getattr(cell, "frozen", False):
            raise _cannot(old, "is not in the config of the layer that contains it")
        _copy_weights(old, new, made)
    for layer in after:
        # Keras's `RNN` set them before the weights of the initial state were copied.
        if getattr(layer, "stateful", False) and hasattr(layer, "reset_state"):
            layer.reset_state()
    # Keras exports only models that have been called.
    if isinstance(copy, keras.Sequential):
        copy(copy.inputs[0])
    elif isinstance(copy, keras.Model):
        copy(copy.input)
    return copy


def _cannot(layer: Any, reason: str) -> ValueError:
    return ValueError(
        f"`model` cannot be frozen: `{layer.name}` {reason}. "
        f"Received: {layer.name}, of type {type(layer).__name__}"
    )


def _frozen(config: Any) -> Any:
    """Returns a config in which all freezable layers are replaced by their twins."""
    if isinstance(config, list | tuple):
        return type(config)(map(_frozen, config))
    if not isinstance(config, dict):
        return config
    if "class_name" in config and "registered_name" in config:
        cls = keras.saving.get_registered_object(config["registered_name"])
        if cls is ParametrizedLayer:
            inner = _frozen(config["config"]["layer"])
            inner["config"]["name"] = config["config"]["name"]
            return {**config, **inner}
        if isinstance(cls, type) and issubclass(cls, FREEZABLE):
            unbuilt = {k: v for k, v in config.items() if k != "build_config"}
            layer = keras.saving.deserialize_keras_object(unbuilt, safe_mode=False)
            return {**config, **keras.saving.serialize_keras_object(_twin(layer))}
        # The copy is not compiled, and the loss may be an unregistered function.
        config = {k: v for k, v in config.items() if k != "compile_config"}
    return {name: _frozen(value) for name, value in config.items()}


def _twin(layer: Any) -> keras.layers.Layer:
    """Creates an unbuilt layer that computes the same from a plain kernel."""
    if isinstance(layer, ParametrizedDense):
        return _as_keras_has(keras.layers.Dense, layer, layer.units)
    cell = getattr(layer, "cell", layer)
    if cell.parametrization is None:
        raise _cannot(cell, "has no `parametrization`")
    # Keras's `SimpleRNN` ignores its `activity_regularizer`.
    regularized = layer.activity_regularizer is not None
    if regularized or not (_is_ours(layer) and _is_simple(cell)):
        return type(layer).from_config({**layer.get_config(), "frozen": True})
    plain = keras.layers.SimpleRNNCell if layer is cell else keras.layers.SimpleRNN
    return _as_keras_has(plain, layer, cell.state_size)


def _as_keras_has(cls: Any, layer: Any, units: int) -> keras.layers.Layer:
    """Creates a layer of Keras with the arguments that it shares with another."""
    # The regularizer of free variables does not apply to a matrix. Keras's orthogonal
    # initializer does not support half precision, and weights are assigned later.
    dropped = {"seed", "bias_initializer", "recurrent_regularizer"}
    if isinstance(layer, ParametrizedDense) and not isinstance(layer, BNPDense):
        dropped.add("kernel_regularizer")
    names = set(argument_names(cls)) - dropped
    config = {k: v for k, v in layer.get_config().items() if k in names}
    undrawn = names & {"kernel_initializer", "recurrent_initializer"}
    return cls.from_config(config | dict.fromkeys(undrawn, "zeros") | {"units": units})


def _is_ours(layer: keras.layers.Layer) -> bool:
    name = keras.saving.get_registered_name(type(layer))
    return name.startswith("keras_ortho>")


def _is_simple(cell: RecurrentCell) -> bool:
    """Returns whether the step is that of Keras's `SimpleRNNCell`."""
    return (
        _is_ours(cell)
        and cell.is_plain
        and cell.step_heads == 1
        and cell.output_size == cell.state_size
        and not cell.trainable_initial_state
        and not is_modrelu(cell.activation)
    )


def _copy_weights(old: Any, new: Any, made: dict[int, Any]) -> None:
    """Copies the state of a layer, without that of the layers within it, as saving."""
    values = {each.name: made.get(id(each), each) for each in old.weights}
    if isinstance(old, RecurrentCell):
        values["recurrent_kernel"] = old.step_kernel()
    if isinstance(old, ParametrizedDense):
        values["kernel"] = old.kernel_matrix()
    owns = not layers_within(old)[1:] and any(id(each) in made for each in old.weights)
    if owns or isinstance(old, RecurrentCell | ParametrizedDense):
        for weight in new.weights:
            # A copy, because JAX may donate the buffers in a compiled function.
            weight.assign(ops.copy(ops.cast(values[weight.name], weight.dtype)))
        return
    store: dict[str, Any] = {}
    old.save_own_variables(store)
    new.load_own_variables({k: ops.convert_to_numpy(v) for k, v in store.items()})
    if hasattr(old, "save_assets"):  # A vocabulary is stored as a file.
        with tempfile.TemporaryDirectory() as folder:
            old.save_assets(folder)
            new.load_assets(folder)
