"""A comparison made readable: in the terminal, and for programs."""
