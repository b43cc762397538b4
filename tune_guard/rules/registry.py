"""Rules by id: the built-in ones and those that other packages bring."""

from __future__ import annotations

import functools
import importlib.metadata
import logging

from tune_guard import rules as builtin
from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.rules.base import Rule

GROUP = "tune_guard.rules"
logger = logging.getLogger("tune_guard")


@functools.cache
def builtin_rules() -> dict[str, type[Rule]]:
    """Return the built-in rules by id."""
    kinds: list[type[Rule]] = [getattr(builtin, name) for name in builtin.__all__]
    return {kind.id: kind for kind in kinds}


def known_rules() -> set[str]:
    """Return the ids of all rules, without loading those of other packages."""
    return {*builtin_rules(), *(entry.name for entry in _entry_points())}


def find_rule(rule_id: str) -> type[Rule]:
    """Return the rule class of an id, loading it from its package if needed.

    Rules of other packages come in through the entry-point group
    ``tune_guard.rules``, whose names are rule ids. A name of a built-in rule
    cannot be taken over.

    Raises:
        ConfigError: If no rule has this id, or its package cannot be loaded.

    Example:
        >>> find_rule("non_finite").__name__
        'NonFinite'
    """
    if rule_id in builtin_rules():
        return builtin_rules()[rule_id]
    for entry in _entry_points():
        if entry.name == rule_id:
            return _load(entry)
    msg = f"No rule has the id {rule_id!r}. {did_you_mean(rule_id, known_rules())}"
    raise ConfigError(msg)


def _entry_points() -> list[importlib.metadata.EntryPoint]:
    return list(importlib.metadata.entry_points(group=GROUP))


def _load(entry: importlib.metadata.EntryPoint) -> type[Rule]:
    try:
        kind = entry.load()
    except Exception as error:
        msg = f"Rule {entry.name!r} ({entry.value}) cannot be loaded: {error!r}."
        raise ConfigError(msg) from error
    if not (isinstance(kind, type) and issubclass(kind, Rule)):
        msg = f"Rule {entry.name!r} ({entry.value}) must be a subclass of Rule."
        raise ConfigError(msg)
    if kind.id != entry.name:
        msg = f"Rule {entry.name!r} ({entry.value}) must have that id, not {kind.id!r}."
        raise ConfigError(msg)
    logger.info("Rule %s comes from %s", entry.name, entry.value)
    return kind
