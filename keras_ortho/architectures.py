"""The architectures of the package, a line each.

Whatever goes through all of them reads this table, which loads nothing: the names in
`keras_ortho`, known before Keras is there, and `keras_ortho.cells`; the stub; the tests
of what all have in common; the benchmark of all layers; and the experiments.
"""

# Each layer, and its file in `keras_ortho/cells`, where its cell is, too.
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
# All classes of `keras_ortho.cells`, and their files.
CLASSES = {"RecurrentCell": "base", "RecurrentLayer": "layer"} | {
    f"{layer}{kind}": file
    for layer, file in {**ARCHITECTURES, "OrthoRNN": "ortho"}.items()
    for kind in ("", "Cell")
}
