"""``python -m tune_guard``: the command ``tune-guard``."""

import sys

from tune_guard.cli import main

if __name__ == "__main__":
    sys.exit(main())
