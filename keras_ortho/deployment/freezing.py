"""Copies of trained models in which every kernel is a plain weight."""

import tempfile
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.cells.cell import RecurrentCell, is_modrelu
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.configs import argument_names
from keras_ortho.deployment.causality import method_of_ones_own
from keras_ortho.keras_internals import Functional, knowing_also, layers_within
from keras_ortho.layers.bnp_dense import BNPDense
from keras_ortho.layers.parametrized_dense import ParametrizedDense

# The classes of layers that have a twin.
FREEZABLE = (RecurrentCell, RecurrentLayer, ParametrizedDense)


def _twin(layer: Any) -> keras.layers.Layer:
    """Creates an unbuilt layer that computes the same from a plain kernel.

    It is Keras's `SimpleRNN`, `SimpleRNNCell` or `Dense` where these do, and otherwise
    a frozen layer of the same class.
    """
    if isinstance(layer, ParametrizedDense):
        if method_of_ones_own(layer, "call"):
            raise ValueError(
                f"`{type(layer).__name__}` overrides `call`, so that it is unknown "
                f"what it computes, and cannot be frozen. Received: {layer.name}"
            )
        return _as_keras_has(keras.layers.Dense, layer, layer.units)
    cell = getattr(layer, "cell", layer)
    if cell.parametrization is None:
        raise ValueError(
            f"`{type(cell).__name__}` has no `parametrization`, so that it is unknown "
            "which variables make the recurrent matrix, and cannot be frozen. "
            f"Received: {cell.name}"
        )
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
    names = argument_names(cls)
    config = {k: v for k, v in layer.get_config().items() if k in names}
    undrawn = {"kernel_initializer", "recurrent_initializer"}.intersection(names)
    config |= dict.fromkeys(undrawn, "zeros")
    return cls.from_config(
        {k: v for k, v in config.items() if k not in dropped} | {"units": units}
    )


def _twin_weights(layer: Any) -> dict[str, Tensor]:
    """Returns the weights of the twin of a built cell or dense layer, by name."""
    made = {}
    if isinstance(layer, RecurrentCell):
        made = {"recurrent_kernel": layer.step_kernel()}
    elif isinstance(layer, ParametrizedDense):
        made = {"kernel": layer.kernel_matrix()}
    return {**{weight.name: weight for weight in layer.weights}, **made}


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


def freeze(model: keras.layers.Layer) -> Any:
    """Copies a trained model, with every kernel as a plain weight.

    The layers of this package compute their kernels from free variables at each call.
    In the copy, each kernel is a weight. The copy computes the same outputs, without
    any factorization in the programs that are compiled or exported from it. Layers are
    replaced as follows:

    - A recurrent layer of this package with a step `f(x U + h W)`, an activation other
      than modReLU, one head, no trained initial state and no `activity_regularizer`
      becomes a `keras.layers.SimpleRNN`, and such a cell a `SimpleRNNCell`.
    - Any other recurrent layer or cell keeps its class, with a weight
      `recurrent_kernel` instead of the free variables.
    - `SVDDense`, `OrthoDense` and `BNPDense` become `keras.layers.Dense`.

    Models may be nested and layers wrapped, if the config of the outer model or
    wrapper includes that of the inner layers, as in `Bidirectional`,
    `TimeDistributed`, `keras.layers.RNN` and `StackedRNNCells`. The copy is not
    compiled, and the states of its stateful layers are reset. It can be trained
    further, but its kernels do not stay orthogonal. Regularizers of free variables are
    dropped.

    Args:
        model: A built `Sequential` or functional model, or a built layer.

    Returns:
        The copy. A model keeps its class; a layer is replaced as above.

    Raises:
        ValueError: If `model` is not a built Keras layer; is a subclass of
            `keras.Model` that overrides `call`; has a layer that cannot be frozen, such
            as a dense layer that overrides `call`; has a layer or cell that two
            wrappers share, or that appears twice in a `Sequential`; or has a part that
            Keras cannot restore from its config, such as an unregistered function.

    Example:
    >>> layers = [keras.Input((None, 3)), ScoRNN(8, activation="tanh")]
    >>> model = keras.Sequential([*layers, keras.layers.Dense(2)])
    >>> [type(layer).__name__ for layer in freeze(model).layers]
    ['SimpleRNN', 'Dense']
    """
    _check_model(model)
    before = layers_within(model)
    for layer in before:
        if isinstance(layer, keras.Sequential):
            _check_no_layer_twice(layer)
    # Classes that are not registered are looked up by name.
    own = {type(x) for x in before if not type(x).__module__.startswith("keras.")}
    classes = {cls.__name__: cls for cls in own}
    with knowing_also(classes):
        config = _frozen(keras.saving.serialize_keras_object(model))
        copy = _deserialized(config)
    after = layers_within(copy)
    if len(before) != len(after):
        raise ValueError(
            "`model` must not contain one layer or cell inside several others: its "
            "config would contain it several times. Create one for each. Received: "
            f"model={model.name} with {len(before)} layers, in its config {len(after)}"
        )
    for old, new in zip(before, after, strict=True):
        if isinstance(old, FREEZABLE) and not _is_frozen(new):
            raise ValueError(
                f"`{old.name}` of type {type(old).__name__} cannot be frozen: the "
                "layer that contains it creates it, and does not store it in its "
                "config. "
                f"Received: model={model.name}"
            )
        _copy_weights(old, new)
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


def _check_model(model: Any) -> None:
    if not isinstance(model, keras.layers.Layer):
        raise ValueError(f"`model` must be a Keras model. Received: {model!r}")
    if not model.built:
        raise ValueError(
            "`model` has no weights yet: call it, or its `build` method, first. "
            f"Received: {model.name} with built=False"
        )
    for layer in layers_within(model):
        own_call = isinstance(layer, keras.Model) and not isinstance(
            layer, keras.Sequential | Functional
        )
        if own_call:
            raise ValueError(
                "A model whose class overrides `call` cannot be copied from its "
                "config. Freeze its layers, or write it as a functional model. "
                f"Received: {layer.name}, of type {type(layer).__name__}"
            )


def _check_no_layer_twice(model: keras.Sequential) -> None:
    names = [layer.name for layer in model.layers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            "A `Sequential` model must not contain a layer twice: its config contains "
            f"it once. Write it as a functional model. Received: {model.name} with "
            f"{', '.join(twice)} twice"
        )


def _deserialized(config: dict[str, Any]) -> Any:
    try:
        return keras.saving.deserialize_keras_object(config, safe_mode=False)
    except Exception as error:  # Keras raises many types.
        raise ValueError(
            "`model` cannot be copied from its config. Register your functions and "
            "classes with `keras.saving.register_keras_serializable`, or call "
            "`freeze` in a `keras.saving.custom_object_scope`; a lambda cannot be "
            f"registered. Received: a {config['class_name']}, for which Keras reports: "
            f"{str(error).strip().partition(chr(10))[0][:300]}"
        ) from error


def _frozen(config: Any) -> Any:
    """Returns a config in which all freezable layers are replaced by their twins."""
    if isinstance(config, list | tuple):
        return type(config)(map(_frozen, config))
    if not isinstance(config, dict):
        return config
    if "class_name" in config and "registered_name" in config:
        parts = {name: config.get(name) for name in _OF_AN_OBJECT}
        cls = keras.saving.get_registered_object(config["registered_name"])
        if isinstance(cls, type) and issubclass(cls, FREEZABLE):
            layer = _deserialized(parts)
            return {**config, **keras.saving.serialize_keras_object(_twin(layer))}
        # The copy is not compiled, and the loss may be an unregistered function.
        config = {k: v for k, v in config.items() if k != "compile_config"}
    return {name: _frozen(value) for name, value in config.items()}


# The keys that define an object. A layer of a functional model also has others, such as
# its calls.
_OF_AN_OBJECT = ("module", "class_name", "config", "registered_name")


def _is_frozen(layer: keras.layers.Layer) -> bool:
    cell = getattr(layer, "cell", layer)
    return not isinstance(layer, FREEZABLE) or getattr(cell, "frozen", False)


def _copy_weights(old: Any, new: Any) -> None:
    """Copies the variables of a layer, without those of the layers within it.

    The buffers are not shared, because JAX may donate them in a compiled function.
    """
    if isinstance(old, FREEZABLE) and not hasattr(old, "cell"):
        values = _twin_weights(old)
        for weight in new.weights:
            weight.assign(ops.copy(ops.cast(values[weight.name], weight.dtype)))
        return
    sources, targets = _own(old), _own(new)
    # A quantized layer orders its variables differently from one made from its config.
    if sorted(map(_name, sources)) == sorted(map(_name, targets)):
        sources, targets = sorted(sources, key=_name), sorted(targets, key=_name)
    for source, target in zip(sources, targets, strict=True):
        target.assign(ops.copy(source))
    _copy_what_was_adapted(old, new)


def _copy_what_was_adapted(old: Any, new: Any) -> None:
    """Copies the state that a layer has besides its variables, as saving would.

    `Normalization` derives its divisor when it loads its variables, and a vocabulary is
    stored as a file.
    """
    store: dict[str, Any] = {}
    old.save_own_variables(store)
    new.load_own_variables({k: ops.convert_to_numpy(v) for k, v in store.items()})
    if hasattr(old, "save_assets"):
        with tempfile.TemporaryDirectory() as folder:
            old.save_assets(folder)
            new.load_assets(folder)


def _name(variable: keras.Variable) -> str:
    return variable.name


def _own(layer: keras.layers.Layer) -> list[keras.Variable]:
    within = layers_within(layer)[1:]
    others = {id(variable) for inner in within for variable in inner.variables}
    return [variable for variable in layer.variables if id(variable) not in others]
