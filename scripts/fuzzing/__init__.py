"""The formats, mutations and worker of `scripts/fuzz_files.py`."""
