"""What is worth a message, and what is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.notify.alert import Kind

DEFAULT_KINDS = (Kind.FAULT, Kind.FIRST_NAN, Kind.SHARE, Kind.END)
CHOOSABLE = (*DEFAULT_KINDS, Kind.CUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Which events are worth a message.

    Args:
        kinds: ``fault``: each fault of the machine, at once. ``first_nan``: the
            first trial of a sweep that goes non-finite. ``share``: many trials
            die of one reason. ``end``: the sweep's end, with its summary.
            ``cut``: each cut by the guard; off by default.

        share: Share of the trials started from which on a reason is named; named
            again each time that its dead have doubled.

        least_dead: Trials that must have died of it at least.

    Raises:
        ConfigError: If a kind is unknown, or a number out of range.

    Example:
        >>> Worth.parse("fault, share:0.5").share
        0.5
    """

    kinds: tuple[Kind, ...] = DEFAULT_KINDS
    share: float = 0.25
    least_dead: int = 5

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            msg = (
                f"`share` must be above 0 and at most 1, but got {self.share!r}."
                " 0.25 names a reason that killed a quarter of the trials."
            )
            raise ConfigError(msg)

    @classmethod
    def parse(cls, text: str) -> Worth:
        """Read a list such as ``fault,share:0.5,end``; empty for the default.

        Raises:
            ConfigError: If a word is no kind of alert.
        """
        kinds: list[Kind] = []
        more: dict[str, Any] = {}
        for word in text.replace(",", " ").split():
            name, _, number = word.partition(":")
            if name not in [str(kind) for kind in CHOOSABLE]:
                msg = f"{name!r} is no kind of alert. {did_you_mean(name, CHOOSABLE)}"
                raise ConfigError(msg)
            kinds.append(Kind(name))
            if number:
                more["share"] = _share(number)
        return cls(kinds=tuple(kinds) or DEFAULT_KINDS, **more)


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        msg = f"`share` must be a number, but got {text!r}. Write share:0.25."
        raise ConfigError(msg) from error
