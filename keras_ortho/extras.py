"""Optional dependencies: imported where they are used, named when missing."""

import sys
from types import ModuleType


def require(module: str, *, extra: str | None = None) -> ModuleType:
    """Imports an optional dependency, or says what installs it.

    Args:
        module: Name of the module, e.g. `"soundfile"` or `"scipy.signal"`.
        extra: The extra of `keras-ortho` that installs it, e.g. `"speech"`.
            Default: `None`, no extra but the package itself.

    Returns:
        The imported module.

    Raises:
        ImportError: If the module is not installed.

    Example:
    >>> require("json", extra="speech").dumps([1])
    '[1]'
    """
    try:
        # Not `importlib.import_module`: within `tf.data.Dataset.map` AutoGraph warns
        # that it cannot convert that.
        __import__(module)
        return sys.modules[module]
    except ModuleNotFoundError as error:
        # An installed module that fails on an import of its own says so itself.
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        package = f'"keras-ortho[{extra}]"' if extra else module
        raise ImportError(
            f"This needs the optional dependency `{module}`. Install it with "
            f"`pip install {package}`.",
            name=module,
        ) from error
