"""What tells an initializer of free variables from one of a matrix."""


class FreeInitializer:
    """Marks the initializers that make the free variables of a recurrent matrix.

    A cell calls one with the shape of its variable. Any other initializer it
    calls with `(n, n)`, for a matrix that it takes through the inverse of its
    parametrization.
    """
