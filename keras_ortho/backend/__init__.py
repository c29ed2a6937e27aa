"""Functions with one implementation per backend, and the choice between these.

`with_gradient(forward, backward)` makes a function of tensors with a custom gradient.
`eagerly()` computes eagerly within a trace. `scan`, `stack`, `slice_steps`,
`sum_over_steps`, `batch_pieces` and `shared_out` are the building blocks of the
recurrence. The rest of the computations are written with `keras.ops` and
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
