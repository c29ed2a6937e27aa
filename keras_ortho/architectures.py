"""The architectures of the package, for all that iterates over them.

These are the tests of what all architectures have in common, the benchmark of all
layers, and the experiments.
"""

from keras_ortho import cells

# Each layer, and the file in `keras_ortho/cells` that contains it and its cell.
ARCHITECTURES = {
    name: vars(cells)[name].__module__.rpartition(".")[2]
    for name in cells.CLASSES
    if f"{name}Cell" in cells.CLASSES and name != "OrthoRNN"
}
