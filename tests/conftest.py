"""Fixtures that several test modules share."""

import gc
import os
import re
import sys
from pathlib import Path

import psutil
import pytest

from tests import quick

# Keras computes in float32 all the same, but float64 must be there to test with.
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# JAX compiles each operation of each shape once for both processes, and once for all
# runs: most of a test's time there is compilation.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache/jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def pytest_configure(config):
    # Once, before a backend is loaded; pytest's other processes inherit it.
    if _quick(config):
        quick.set_flags(getattr(config, "cache", None))


def _quick(config):
    return bool(re.search(r"\bnot slow\b", config.option.markexpr))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    import keras  # After the settings above.

    for item in items:
        if item.get_closest_marker("slowest"):
            item.add_marker(pytest.mark.slow)
    quick.save_time(_quick(config))
    if keras.backend.backend() == "tensorflow":
        _save_time_on_tensorflow(config, items)
        return
    cases = {}
    for item in items:
        if item.get_closest_marker("slow_on_jax"):
            item.add_marker(pytest.mark.slow)
        if not item.get_closest_marker("slow"):
            cases.setdefault((item.parent, item.originalname), []).append(item)
    # JAX compiles each: of a test's cases the last, commonly the largest, runs there,
    # of those of an architecture what `tests/cells/conftest.py` chooses.
    for same in cases.values():
        for item in same[:-1]:
            if "architecture" not in item.callspec.params:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="session")
def _tensors_beside_arrays():
    """Has PyTorch's tensors and NumPy's arrays mix as those of the other backends."""
    import keras

    if keras.backend.backend() != "torch":
        yield
        return
    import numpy as np
    import torch
    from keras.src.backend.common import dtypes

    def array(tensor, dtype=None, copy=None):
        tensor = tensor.detach().cpu()
        found = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    def taking_arrays(method):
        def call(tensor, other):
            arrays = isinstance(other, np.ndarray | np.generic)
            return method(tensor, torch.as_tensor(other) if arrays else other)

        return call

    with pytest.MonkeyPatch.context() as patch:
        # Keras takes float64 for float32 there, but it must be there to test with.
        patch.setitem(dtypes.BIT64_TO_BIT32_DTYPE, "float64", "float64")
        patch.setattr(torch.Tensor, "__array__", array)
        for name in ("add", "sub", "mul", "truediv", "pow", "matmul"):
            for full in (f"__{name}__", f"__r{name}__"):
                method = getattr(torch.Tensor, full)
                patch.setattr(torch.Tensor, full, taking_arrays(method))
        yield


# Steps in a turn of the recurrence's loops, as users have them.
UNROLL = pytest.StashKey[int]()


@pytest.fixture(scope="module")
def full_turns(pytestconfig):
    """Has the loops of the recurrence take as many steps in a turn as users' do."""
    from keras_ortho.recurrence import sequence

    with pytest.MonkeyPatch.context() as patch:
        turns = pytestconfig.stash.get(UNROLL, sequence.UNROLL)
        patch.setattr(sequence, "UNROLL", turns)
        yield


@pytest.fixture(scope="module")
def cut_in_two():
    """Has the recurrence cut each batch on TensorFlow, as it does large ones."""
    import keras

    from keras_ortho.recurrence import sequence

    def in_two(batch, *_):
        return 2 if batch is None else min(batch, 2)

    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "tensorflow":
            patch.setattr(sequence, "batch_pieces", in_two)
        yield


def _save_time_on_tensorflow(config, items):
    # Of the tests of a file one is compiled by XLA, which takes the longest.
    seen = set()
    for item in items:
        case = getattr(item, "callspec", None)
        if case is None or case.params.get("jit_compile") is not True:
            continue
        if "architecture" not in case.params and item.parent in seen:
            item.add_marker(pytest.mark.slow)
        seen.add(item.parent)
    from keras_ortho.backend import tensorflow as backend
    from keras_ortho.recurrence import sequence

    config.stash[UNROLL] = sequence.UNROLL
    if _quick(config):
        # A step that is written eight times, or twice for as many pieces of a batch,
        # takes longer to trace than to run.
        sequence.UNROLL = 2
        backend.UNKNOWN_BATCH = 1


def pytest_collection_finish():
    # What is imported stays: no garbage collection needs to go through it again.
    gc.collect()
    gc.freeze()
    # Tracing makes so many objects that a look through all of them every few hundred
    # would take a tenth of the time.
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(autouse=True)
def _seed():
    """The same numbers in each run, and whichever tests ran before."""
    import keras

    keras.utils.set_random_seed(0)


_resident_before = 0


@pytest.fixture(autouse=True, scope="module")
def _graphs_end_with_their_module():
    """Lets go of the graphs that TensorFlow keeps for good: gigabytes in the end.

    Each trace of a `tf.custom_gradient` is registered, with the graph around it. To go
    through all objects takes seconds, so that is done for each gigabyte.
    """
    global _resident_before
    yield
    if "tensorflow" in sys.modules:
        from tensorflow.python.framework.ops import gradient_registry

        gradients = gradient_registry._registry
        for name in [n for n in gradients if n.startswith("CustomGradient-")]:
            del gradients[name]
    resident = psutil.Process().memory_info
    if resident().rss > _resident_before + 2**30:
        gc.collect()
        _resident_before = resident().rss


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data that `KERAS_ORTHO_DATA` names."""
    folder = os.environ.get("KERAS_ORTHO_DATA")
    if not folder:
        pytest.skip("KERAS_ORTHO_DATA is unset: it names the folder of real data")
    return Path(folder)


@pytest.fixture
def double():
    """Keras in float64."""
    import keras

    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
