"""The architectures of the package, one line each.

All code that iterates over the architectures reads this table, which imports nothing:
the public names in `keras_ortho` and in `keras_ortho.cells`; the stub; the tests of
what all architectures have in common; the benchmark of all layers; and the
experiments.
"""

# Each layer, and the file in `keras_ortho/cells` that contains it and its cell.
ARCHITECTURES = {
    "ScoRNN": "scornn",
    "ScuRNN": "scurnn",
    "ENRNN": "enrnn",
    "AntisymmetricRNN": "antisymmetric",
    "SVDRNN": "svdrnn",
    "ORNN": "ornn",
    "RestrictedURNN": "urnn",
    "FullURNN": "full_urnn",
    "EURNN": "eurnn",
    "GORU": "goru",
    "NNRNN": "nnrnn",
    "FactorizedRNN": "factorized",
}
# All classes of `keras_ortho.cells`, each with its file.
CLASSES = {"RecurrentCell": "base", "RecurrentLayer": "layer"} | {
    f"{layer}{kind}": file
    for layer, file in {**ARCHITECTURES, "OrthoRNN": "ortho"}.items()
    for kind in ("", "Cell")
}
