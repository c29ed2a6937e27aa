"""The architectures of the package, for what iterates over them: tests, benchmarks."""

from keras_ortho import cells

# Each layer, and the file in `keras_ortho/cells` that contains it and its cell.
ARCHITECTURES = {
    name: vars(cells)[name].__module__.rpartition(".")[2]
    for name in cells.CLASSES
    if f"{name}Cell" in cells.CLASSES and name != "OrthoRNN"
}
