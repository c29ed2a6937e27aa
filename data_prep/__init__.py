"""From a corpus of speech to sharded records: `keras-ortho-data CORPUS OUT`."""
