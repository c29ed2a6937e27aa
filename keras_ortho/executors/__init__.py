"""Work in processes of this machine, or on the workers of a Dask cluster."""
