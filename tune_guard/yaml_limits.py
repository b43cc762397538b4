"""What a YAML document may grow to, once its aliases are followed.

A few hundred bytes of aliases of aliases stand for gigabytes. So nodes are counted
as they would be spelled out, before anything is made of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tune_guard.exceptions import ConfigError

MOST_CHARACTERS = 2**18
MOST_VALUES = 100_000
DEEPEST = 100
_LONGEST_NUMBER = 1000
"""Characters of a plain value that is no text."""

_TEXT = "tag:yaml.org,2002:str"


class LimitError(ConfigError):
    """A document that stands for too much.

    Args:
        message: What is too much.

        line: Line where it stands, from 1.
    """

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(f"{message}. Write it out plainly, or write less.")
        self.line = line


class _Extent(NamedTuple):
    values: int
    depth: int


def check_text(text: str) -> None:
    """Refuse a document that is too long to be one.

    Raises:
        LimitError: If it is.
    """
    if len(text) > MOST_CHARACTERS:
        msg = f"{len(text)} characters are too many: {MOST_CHARACTERS} fit"
        raise LimitError(msg)


def check_nodes(root: Any) -> None:
    """Refuse a document that is small as text and huge as values.

    Args:
        root: The node that PyYAML composed; None for an empty document.

    Raises:
        LimitError: If it spells out more than 100,000 values, is nested deeper
            than 100 levels, holds itself, or has a number of 1,000 digits.
    """
    if root is not None:
        _measure(root, {}, set())


def _measure(node: Any, known: dict[int, _Extent], open_: set[int]) -> _Extent:
    """Return how much a node stands for; an alias is its very node again."""
    found = known.get(id(node))
    if found is not None:
        return found
    if id(node) in open_:
        raise _refusal(node, "an alias holds itself")
    if isinstance(node.value, str):
        if node.tag != _TEXT and len(node.value) > _LONGEST_NUMBER:
            raise _refusal(node, f"a value of {len(node.value)} characters is no text")
        return _Extent(1, 0)
    open_.add(id(node))
    inner = [_measure(child, known, open_) for child in _children(node)]
    open_.discard(id(node))
    extent = _Extent(
        1 + sum(child.values for child in inner),
        1 + max((child.depth for child in inner), default=0),
    )
    if extent.values > MOST_VALUES:
        raise _refusal(node, f"more than {MOST_VALUES} values, aliases followed")
    if extent.depth > DEEPEST:
        raise _refusal(node, f"nested deeper than {DEEPEST} levels")
    known[id(node)] = extent
    return extent


def _children(node: Any) -> list[Any]:
    """Return the items of a sequence, or the keys and values of a mapping."""
    found: list[Any] = []
    for item in node.value:
        found += item if isinstance(item, tuple) else [item]
    return found


def _refusal(node: Any, why: str) -> LimitError:
    return LimitError(why, int(node.start_mark.line) + 1)
