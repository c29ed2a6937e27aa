"""Writes a speech corpus as sharded records: `keras-ortho-data CORPUS OUT`."""
