"""Entry point of `python -m data_prep`."""

import sys

from data_prep.cli import main

# The worker processes import this module too, under another name.
if __name__ == "__main__":
    sys.exit(main())
