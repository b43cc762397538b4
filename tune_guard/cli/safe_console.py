"""A console for texts that others wrote: names, messages and parameters of sweeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment

from tune_guard.cli.console import without_control


class SafeConsole(Console):
    """Prints to standard output; what a file holds is shown and never obeyed.

    Colors are this program's own: they are no part of a segment's text.
    """

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Render whatever it is without the control characters in its texts."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(without_control(segment.text), segment.style)
