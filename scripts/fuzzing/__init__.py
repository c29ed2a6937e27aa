"""What `scripts/fuzz_files.py` is made of."""
