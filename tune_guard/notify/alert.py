"""One thing that a person should know: plain values, put into words later."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tune_guard.record import now_utc
from tune_guard.strict_json import plain

LONGEST_NAME = 200
LONGEST_MESSAGE = 600
_TEXTS = ("sweep", "reason", "message", "time")


class Kind(enum.StrEnum):
    """What an alert is about."""

    FAULT = "fault"
    FIRST_NAN = "first_nan"
    SHARE = "share"
    CUT = "cut"
    END = "end"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What is worth a message.

    Args:
        kind: What it is about.

        sweep: Name of the sweep.

        trials: Ids of the trials that it is about.

        reason: Why they ended.

        step: Step for which the reason holds, where it is about one trial.

        message: The rule's own sentence, in English.

        facts: Further plain values that the text of this kind asks for.

        time: When, as ISO 8601 in UTC.
    """

    kind: Kind
    sweep: str = ""
    trials: tuple[str, ...] = ()
    reason: str = ""
    step: int | None = None
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    time: str = field(default_factory=now_utc)

    def __post_init__(self) -> None:
        """Cut names and texts that no message could hold."""
        cut = object.__setattr__
        cut(self, "sweep", self.sweep[:LONGEST_NAME])
        cut(self, "reason", self.reason[:LONGEST_NAME])
        cut(self, "message", self.message[:LONGEST_MESSAGE])
        cut(self, "trials", tuple(trial[:LONGEST_NAME] for trial in self.trials))

    def stored(self) -> dict[str, Any]:
        """Return the alert as plain values."""
        whole = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: plain(v) for k, v in whole.items() if v not in (None, "", (), {})}

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Alert:
        """Return the alert of such values.

        Raises:
            ValueError: If they are not those of an alert.
        """
        known = {f.name for f in dataclasses.fields(cls)}
        try:
            values = {k: v for k, v in stored.items() if k in known}
            "".join(values.get(name, "") for name in _TEXTS)  # refuses what is none
            values["kind"] = Kind(values["kind"])
            values["trials"] = tuple(map(str, values.get("trials", ())))
            return cls(**values)
        except (AttributeError, KeyError, TypeError) as error:
            msg = f"no alert: {error!r}"
            raise ValueError(msg) from error
