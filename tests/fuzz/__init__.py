"""Hostile input: one small target for each kind of file and value that is read.

The property tests draw bounded examples from them (``tests/property``), and
``python -m tests.fuzz`` follows their coverage for as long as it is told.
"""
