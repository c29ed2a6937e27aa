"""How the tests take less time.

Most of it goes into making programs, which are small and run once or twice. `make test`
leaves out more of that than `make test-all`.
"""

import functools
import os
import random
import subprocess
import sys
from importlib.metadata import version

# What it takes XLA to make a program fast is lost.
QUICK_TO_COMPILE = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false"
)
TRIAL = {
    "jax": "import jax; jax.jit(lambda x: x)(1.0)",
    "tensorflow": "import tensorflow as tf; "
    "tf.function(lambda x: x, jit_compile=True)(tf.ones(()))",
}


def set_flags(cache):
    """Sets what a backend reads when it is loaded, in the environment."""
    # NumPy's threads wait for each other busily, on cores that two processes share.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if "XLA_FLAGS" in os.environ or backend not in TRIAL:
        return
    key = f"xla_flags/{backend}-{version(backend)}"
    flags = cache.get(key, None) if cache else None
    if flags is None:
        quick = os.environ | {"XLA_FLAGS": QUICK_TO_COMPILE}
        command = [sys.executable, "-c", TRIAL[backend]]
        done = subprocess.run(command, env=quick, capture_output=True, check=False)
        # A process ends at a flag that its XLA does not know.
        flags = "" if done.returncode else QUICK_TO_COMPILE
        if cache:
            cache.set(key, flags)
    os.environ["XLA_FLAGS"] = flags


def save_time(quick):
    """Has the backend keep what it would make anew, and make less of it if quick."""
    import keras

    if keras.backend.backend() == "jax":
        from jax._src.interpreters import mlir

        # A sixth of the time is to make a context for each program. Only a program
        # within another, which is not ended, must have its own.
        make = mlir.make_ir_context
        shared = functools.cache(make)
        mlir.make_ir_context = lambda: make() if mlir.ir.Context.current else shared()
    if keras.backend.backend() == "tensorflow":
        from tensorflow.python.eager.context import Context

        def seed(context, number):
            context._seed, context._rng = number, random.Random(number)

        # To seed drops every kernel, as some keep a state of random numbers: the
        # package and Keras have none such.
        Context._set_global_seed = seed
        if quick:
            _save_time_on_tensorflow()


def _save_time_on_tensorflow():
    import keras
    import tensorflow as tf
    from tensorflow.python.util import tf_stack

    # What makes a program fast is a fifth of the time of such programs.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    # For each operation of a graph, where it was made: as many lines as pytest is deep.
    stack = tf_stack.extract_stack()
    tf_stack.extract_stack = lambda stacklevel=1: stack
    # A step that makes the optimizer's variables is traced with them, then without.
    make_train_function = keras.Model.make_train_function

    def make(model, force=False):
        if model.built and not (model.run_eagerly or model.optimizer.built):
            model.optimizer.build(model.trainable_variables)
        return make_train_function(model, force)

    keras.Model.make_train_function = make
    # An epoch of a few batches is over before it has been made fast.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    iterate = tf.data.Dataset.__iter__
    tf.data.Dataset.__iter__ = lambda data: iterate(data.with_options(options))
