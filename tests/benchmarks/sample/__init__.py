"""A small sample of real trainings, recorded by this repository with the guard off."""
