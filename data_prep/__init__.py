"""From the TIMIT corpus to sharded records: `python -m data_prep CORPUS OUT`."""
