"""The papers' experiments: settings, networks, and runs that last."""
