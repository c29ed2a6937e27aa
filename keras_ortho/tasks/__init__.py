"""The papers' tasks, each a `tf.data` pipeline."""
