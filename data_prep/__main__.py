"""`python -m keras_ortho.data_prep`, which is the command `keras-ortho-data`."""

import sys

from .cli import main

# The worker processes import this module too, under another name.
if __name__ == "__main__":
    sys.exit(main())
