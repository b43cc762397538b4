"""Evidence: what is kept of a trial before it is cut, and how it is judged again.

Nothing here needs an engine or torch to be imported.
"""

from __future__ import annotations

from tune_guard.evidence.settings import PARTS, Evidence

__all__ = ["PARTS", "Evidence"]
