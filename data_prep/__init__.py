"""Makes sharded records from a corpus of speech: `keras-ortho-data CORPUS OUT`."""
