"""In a checkout `python -m data_prep` is `python -m keras_ortho.data_prep`.

The modules of the package import each other relatively, and so go by either name.
"""

import keras_ortho.data_prep

__path__ = keras_ortho.data_prep.__path__
