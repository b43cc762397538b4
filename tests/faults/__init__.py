"""Faults injected into real sweeps: what is recorded of them, lost, or told twice.

``python -m tests.faults`` runs all and prints a table; it exits with 1 where a
verdict is lost or duplicated.
"""
