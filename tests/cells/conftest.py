"""Which of the shared tests are slow.

`make test` runs all of them for scoRNN. Of the other architectures, which differ in how
their kernel is made, it runs what depends on that; `make test-all` runs all for all.
"""

import keras
import pytest

ON_JAX = keras.backend.backend() == "jax"
IN_FULL = "ScoRNN"
# A complex state, gates, two matrices.
KINDS = ["FullURNN", "GORU", "ENRNN"]
# Of each of these tests the cases with such parameters.
FOR_ALL = {
    "test_kernel_is_made_once_and_outside_of_the_loop": {
        "name": ["layer"],
        "program": ["training"],
        "architecture": KINDS,
    },
    # `test_layer_stock_and_loop` compares values and gradients of all.
    "test_layer_equals_its_cell": {"unroll": [False], "architecture": KINDS},
    "test_a_program_is_told_the_shapes_that_lstm_tells": {
        "options": [{}],
        "architecture": KINDS,
    },
    "test_the_layer_leaves_the_loop_of_keras": {},
    "test_layer_stock_and_loop": {} if ON_JAX else {"architecture": KINDS},
}
# JAX compiles each, and `test_two_backends` loads and compares all architectures there.
if not ON_JAX:
    FOR_ALL |= {
        "test_config_holds_every_argument": {},
        "test_dropout": {"unroll": [False], "architecture": KINDS},
        "test_keras_layer_checks": {"architecture": KINDS[:2]},
        "test_mixed_precision": {"policy": ["mixed_bfloat16"], "architecture": KINDS},
        "test_says_what_it_needs": {},
        "test_saves_and_loads": {"wrapped": [False]},
        "test_shared_arguments_have_an_effect": {},
        "test_variables_of_any_size": {},
    }


# What CI runs of the test that has the most cases, for the other architectures.
IN_CI = {"name": ["layer", "stock"], "program": ["training"]}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        case = getattr(item, "callspec", None)
        architecture = case and case.params.get("architecture")
        if architecture is None or str(architecture) == IN_FULL:
            continue
        chosen = FOR_ALL.get(item.originalname)
        if chosen is None or any(
            case.params[name] not in values and str(case.params[name]) not in values
            for name, values in chosen.items()
        ):
            in_ci = all(
                case.params.get(name, values[0]) in values
                for name, values in IN_CI.items()
            )
            item.add_marker(pytest.mark.slow if in_ci else pytest.mark.slowest)
