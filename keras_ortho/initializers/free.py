"""What tells an initializer of free variables from one of a matrix."""

from typing import Any, ClassVar


class FreeInitializer:
    """Marks the initializers that make the free variables of a recurrent matrix.

    A cell calls one with the shape of its variable. Any other initializer it
    calls with `(n, n)`, for a matrix that it takes through the inverse of its
    parametrization.

    `makes` says what those variables are: a cell of another kind refuses the
    initializer. One that does not say is taken by all.
    """

    makes: ClassVar[str] = ""


def check_makes(name: str, initializer: Any, wanted: str) -> None:
    """Checks that an initializer of free variables makes those of a parametrization.

    Args:
        name: Name of the argument that gave it.
        initializer: The initializer, of free variables or of a matrix.
        wanted: What the free variables are; `""` takes all.

    Raises:
        ValueError: If it makes others.
    """
    makes = initializer.makes if isinstance(initializer, FreeInitializer) else ""
    if makes and wanted and makes != wanted:
        raise ValueError(
            f"`{name}` must make {wanted}, or a matrix. "
            f"Received: {name}={type(initializer).__name__}, which makes {makes}"
        )
