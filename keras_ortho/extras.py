"""Optional dependencies: imported where they are used, named if missing."""

import sys
from types import ModuleType


def require(module: str, *, extra: str | None = None) -> ModuleType:
    """Imports an optional dependency, with installation advice if it is missing."""
    try:
        # Not `importlib.import_module`: within `tf.data.Dataset.map`, AutoGraph warns
        # that it cannot convert that function.
        __import__(module)
        return sys.modules[module]
    except ModuleNotFoundError as error:
        # If an installed module lacks a dependency of its own, keep that error.
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        package = f'"keras-ortho[{extra}]"' if extra else module
        raise ImportError(
            f"This requires the optional dependency `{module}`. Install it with `pip "
            f"install {package}`.",
            name=module,
        ) from error
