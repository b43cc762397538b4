"""Rules by id: the built-in ones and those that other packages bring."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import logging
import pkgutil

from tune_guard import rules as builtin
from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.rules.base import Rule
from tune_guard.rules.holds import Hold

GROUP = "tune_guard.rules"
logger = logging.getLogger("tune_guard")


@functools.cache
def builtin_rules() -> dict[str, type[Rule]]:
    """Return the built-in rules by id."""
    kinds: list[type[Rule]] = [getattr(builtin, name) for name in builtin.__all__]
    return {kind.id: kind for kind in kinds}


@functools.cache
def builtin_holds() -> dict[str, type[Hold]]:
    """Return the built-in holds by id."""
    names = [m.name for m in pkgutil.iter_modules(builtin.__path__)]
    homes = [importlib.import_module(f"{builtin.__name__}.{name}") for name in names]
    kinds = [kind for home in homes for kind in vars(home).values()]
    kinds = [k for k in kinds if isinstance(k, type) and issubclass(k, Hold)]
    return {kind.id: kind for kind in kinds if kind is not Hold}


def find_hold(hold_id: str) -> type[Hold]:
    """Return the hold class of an id.

    Raises:
        ConfigError: If no hold has this id.

    Example:
        >>> find_hold("not_learned").__name__
        'NotLearned'
    """
    if hold_id in builtin_holds():
        return builtin_holds()[hold_id]
    hint = did_you_mean(hold_id, builtin_holds())
    msg = f"No hold has the id {hold_id!r}. {hint}"
    raise ConfigError(msg)


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
    kind_id = getattr(kind, "id", None)
    if kind_id != entry.name:
        msg = f"Rule {entry.name!r} ({entry.value}) must have that id, not {kind_id!r}."
        raise ConfigError(msg)
    logger.info("Rule %s comes from %s", entry.name, entry.value)
    return kind
