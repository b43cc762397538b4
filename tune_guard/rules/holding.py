"""What rules with holds share: their evidence, who stands, and what is refused."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from tune_guard.exceptions import ConfigError
from tune_guard.observation import Observation
from tune_guard.rules.base import Context
from tune_guard.rules.holds import Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Context):
    """Base of a context that also holds what one rule has seen by itself."""

    @classmethod
    def of(cls, context: Context, **seen: Any) -> Self:
        """Return ``context`` with what was seen beside it."""
        names = (f.name for f in dataclasses.fields(Context))
        return cls(**{name: getattr(context, name) for name in names}, **seen)


def check_holds(rule_id: str, holds: object) -> tuple[Hold, ...]:
    """Return the holds of a rule as a tuple.

    Raises:
        ConfigError: If one of them is no hold.
    """
    found = tuple(holds) if isinstance(holds, (tuple, list)) else (holds,)
    for hold in found:
        if not isinstance(hold, Hold):
            msg = (
                f"{rule_id}: `holds` must be a tuple of holds, but got {hold!r}. Pass"
                " instances, such as `NotLearned()`, or () for none."
            )
            raise ConfigError(msg)
    return found


def first_standing(
    holds: tuple[Hold, ...], observation: Observation, context: Context
) -> tuple[str, ...]:
    """Return the id of the first hold that stands: the others are not asked."""
    for hold in holds:
        if hold.stands(observation, context):
            return (hold.id,)
    return ()


def check_not_negative(hold: Hold, name: str) -> None:
    """Raise unless a parameter of a hold is a number of at least 0.

    Raises:
        ConfigError: If it is not.
    """
    value = getattr(hold, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        advice = "0 makes the hold as weak as it can be."
        msg = f"{hold.id}: `{name}` must be a number >= 0, but got {value!r}. {advice}"
        raise ConfigError(msg)
