"""One file per architecture, with its cell and its layer."""

import importlib

from keras_ortho.architectures import CLASSES

__all__ = sorted(CLASSES)

for _name, _file in CLASSES.items():
    globals()[_name] = getattr(importlib.import_module(f"{__name__}.{_file}"), _name)
