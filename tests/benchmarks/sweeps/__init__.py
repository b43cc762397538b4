"""Compute saved against false kills on recorded sweeps: our policies and the peers."""
