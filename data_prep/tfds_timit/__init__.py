"""TIMIT as a `tensorflow-datasets` builder."""
