"""What every staging of a case needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
Environment = Mapping[str, Any]


class NotStagedError(Exception):
    """A case that cannot be staged, and what it needs."""
