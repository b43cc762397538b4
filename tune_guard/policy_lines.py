"""On which line of a policy's YAML stands what a message is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_NAMED = re.compile(r"`([^`]+)`|'([^']+)'|^([\w.]+):")


def line_of(root: Any, message: str) -> int:
    """Return the line of the innermost part of a YAML text that a message names.

    A message names first the whole, then the part: ``plateau: `patience` must be
    >= 1`` leads to the patience of the plateau.

    Args:
        root: Node of the whole text, as ``yaml.compose`` returns it, or None.

        message: What is wrong, with names in quotes, and a rule before a colon.

    Returns:
        A line from 1; 1 when the text holds nothing that is named.
    """
    line, inside = 1, root
    for names in _NAMED.findall(message):
        name = "".join(names)
        found = next((f for f in _parts(inside, set()) if f[0].value == name), None)
        if found is not None:
            key, inside = found
            line = key.start_mark.line + 1
    return line


def _parts(node: Any, seen: set[int]) -> Iterator[tuple[Any, Any]]:
    """Yield every scalar in a node with what it stands for: a key for its value."""
    if node is None or id(node) in seen:  # an alias may hold itself
        return
    seen.add(id(node))
    if isinstance(node.value, str):
        yield node, None
        return
    for item in node.value:
        if not isinstance(item, tuple):
            yield from _parts(item, seen)
            continue
        key, value = item
        if isinstance(key.value, str):
            yield key, value
        yield from _parts(value, seen)
