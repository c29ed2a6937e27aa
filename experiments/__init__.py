"""The papers' experiments: settings, networks, and resumable runs."""
