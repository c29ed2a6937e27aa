"""Runs `keras-ortho-data` as `python -m keras_ortho.data_prep`."""

import sys

from .cli import main

# Worker processes import this module too, under another name.
if __name__ == "__main__":
    sys.exit(main())
