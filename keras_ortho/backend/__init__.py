"""What must be written once per backend, and the choice between them.

`with_gradient(forward, backward)` makes a function of tensors whose gradient is
given by hand; `eagerly()` computes at once within a trace; `scan`, `stack`,
`slice_steps`, `sum_over_steps`, `batch_pieces` and `shared_out` are what the recurrence
is made of. Everything else in the package is written with `keras.ops`, but for
`keras_ortho.backend.elementary`.
"""

import keras

if keras.backend.backend() == "tensorflow":
    from keras_ortho.backend.tensorflow import (
        batch_pieces,
        eagerly,
        scan,
        shared_out,
        slice_steps,
        stack,
        sum_over_steps,
        with_gradient,
    )
elif keras.backend.backend() == "jax":
    from keras_ortho.backend.jax import (
        batch_pieces,
        eagerly,
        scan,
        shared_out,
        slice_steps,
        stack,
        sum_over_steps,
        with_gradient,
    )
else:
    from keras_ortho.backend.autodiff import (
        batch_pieces,
        eagerly,
        scan,
        shared_out,
        slice_steps,
        stack,
        sum_over_steps,
    )

    if keras.backend.backend() == "torch":
        from keras_ortho.backend.torch import with_gradient
    else:
        from keras_ortho.backend.autodiff import with_gradient

__all__ = [
    "batch_pieces",
    "eagerly",
    "scan",
    "shared_out",
    "slice_steps",
    "stack",
    "sum_over_steps",
    "with_gradient",
]
