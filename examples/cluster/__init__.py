"""A sweep on many machines: under Slurm, on Kubernetes, or on any Ray cluster."""
