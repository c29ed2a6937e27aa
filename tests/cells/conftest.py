"""Which of the shared tests are slow.

All of them run for a few architectures; of the others, which differ from those in how
their kernel is made, `make test` runs what depends on that, `make test-all` the rest.
"""

import pytest

# The plain one, and that of two matrices, with a flag that training writes.
IN_FULL = {"ScoRNN", "ENRNN"}
FOR_ALL = {
    "test_config_holds_every_argument",
    "test_is_registered_under_the_package_name",
    "test_kernel_is_made_once_and_outside_of_the_loop",
    "test_keras_layer_checks",
    "test_layer_equals_its_cell",
    "test_mixed_precision",
    "test_saves_and_loads",
    "test_shared_arguments_have_an_effect",
    "test_the_layer_has_the_gradient_of_the_stock_loop",
    "test_units_must_be_a_positive_integer",
}
# Of those with many cases, the ones that tell most.
SLOW_CASES = {
    "test_kernel_is_made_once_and_outside_of_the_loop": (
        "unrolled",
        "two layers",
        "stacked cells",
        "bidirectional",
        "time distributed",
        "dropout",
    ),
    "test_keras_layer_checks": ("backwards", "unrolled"),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        case = getattr(item, "callspec", None)
        architecture = case and case.params.get("architecture")
        if architecture is None or str(architecture) in IN_FULL:
            continue
        name = item.originalname
        slow_cases = SLOW_CASES.get(name, ())
        if name not in FOR_ALL or any(slow in item.nodeid for slow in slow_cases):
            item.add_marker(pytest.mark.slow)
