"""Runnable examples; each takes under a minute on two cores."""
