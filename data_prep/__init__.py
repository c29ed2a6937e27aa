"""From the TIMIT corpus to sharded records: `keras-ortho-data CORPUS OUT`."""
