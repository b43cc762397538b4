"""Messages to people: what is worth one, in their language, to where they read.

Configured from the environment alone (see :mod:`tune_guard.notify.config`), so
that no secret comes near a sweep's own files.
"""
