"""Sweeps on the dashboards that a team already has: Prometheus and TensorBoard."""
