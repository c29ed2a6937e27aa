"""The devices that a network is trained on, and their parts of the data."""

from typing import Any

import keras

from keras_ortho.backend.processes import process_count, process_index
from keras_ortho.checks import check
from keras_ortho.keras_internals import layers_within
from keras_ortho.tasks.sharing import Share, evaluation_share


def own_share() -> Share:
    """Returns the part of each batch that this process produces."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return Share(tf.distribute.get_strategy().num_replicas_in_sync)
    distribution = keras.distribution.distribution()
    if distribution is None:
        return Share()
    processes = process_count()
    whole = processes == 1 or not distribution.auto_shard_dataset
    wanted = "have `auto_shard_dataset=False` if there are several processes"
    check(whole, "distribution", wanted, f"{distribution} with auto_shard_dataset=True")
    mesh = distribution.device_mesh
    replicas = mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)]
    return Share(replicas, processes, process_index())


def shared_evaluation(model: keras.Model, data: Any) -> Any:
    """Returns the part of a data set to pass to `evaluate`, see `evaluation_share`."""
    part = evaluation_share(data, own_share())
    if part is not data and len(part.element_spec) > len(data.element_spec):
        unweighted = (model.get_compile_config() or {}).get("metrics")
        wanted = (
            "be `weighted_metrics` unless the devices divide every validation batch"
        )
        check(not unweighted, "metrics", wanted, f"metrics={unweighted}")
    return part


def settings_by_replicas(model: keras.Model) -> dict[str, int]:
    """Returns the number of replicas as a setting, if it affects the training results.

    On TensorFlow, each replica has random numbers and batch statistics of its own.
    """
    replicas = own_share().replicas
    if keras.backend.backend() != "tensorflow" or replicas == 1:
        return {}
    weights = {id(weight) for weight in model.weights}
    random = any(id(variable) not in weights for variable in model.variables)
    own_statistics = any(
        isinstance(layer, keras.layers.BatchNormalization) and not layer.synchronized
        for layer in layers_within(model)
    )
    return {"replicas": replicas} if random or own_statistics else {}
