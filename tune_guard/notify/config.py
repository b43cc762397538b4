"""The settings of alerts, from the environment alone.

``TUNE_GUARD_ALERTS``
    Where to: see :func:`tune_guard.notify.targets.read_targets`.
``TUNE_GUARD_ALERTS_ON``
    What is worth a message: see :class:`tune_guard.notify.worth.Worth`.
``TUNE_GUARD_ALERTS_LANG``
    ``en`` or ``zh``.
``TUNE_GUARD_STATE``
    Folder for what is not delivered yet. By default ``tune_guard`` in
    ``XDG_STATE_HOME``, else in ``~/.local/state``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tune_guard.exceptions import ConfigError
from tune_guard.notify.service import Service
from tune_guard.notify.targets import read_targets
from tune_guard.notify.texts import LANGUAGES, Language
from tune_guard.notify.worth import Worth

T = TypeVar("T")

ALERTS = "TUNE_GUARD_ALERTS"
ON = "TUNE_GUARD_ALERTS_ON"
LANG = "TUNE_GUARD_ALERTS_LANG"
STATE = "TUNE_GUARD_STATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was set."""

    services: tuple[Service, ...]
    worth: Worth
    language: Language
    folder: Path


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings.

    Args:
        environment: Variables; those of the process when None.

    Raises:
        ConfigError: If one cannot be meant. The message names the variable, and
            holds no secret.
    """
    variables = os.environ if environment is None else environment
    return Settings(
        services=tuple(_of(ALERTS, variables, read_targets)),
        worth=_of(ON, variables, Worth.parse),
        language=_of(LANG, variables, _language),
        folder=state_folder(variables) / "alerts",
    )


def _of(name: str, variables: Mapping[str, str], read: Callable[[str], T]) -> T:
    try:
        return read(variables.get(name, ""))
    except ConfigError as error:
        msg = f"{name}: {error}"
        raise ConfigError(msg) from None


def state_folder(variables: Mapping[str, str]) -> Path:
    """Return the folder for what outlives a process."""
    if variables.get(STATE):
        return Path(variables[STATE]).expanduser()
    home = variables.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "tune_guard"


def _language(text: str) -> Language:
    low = text.strip().lower() or "en"
    if low not in LANGUAGES:
        msg = f"the language must be en or zh, but got {text!r}."
        raise ConfigError(msg)
    return low
