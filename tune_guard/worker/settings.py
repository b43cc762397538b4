"""What a TrialGuard is told at construction, checked there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tune_guard.evidence.settings import Evidence, checked
from tune_guard.exceptions import ConfigError
from tune_guard.policy import Policy

Unit = Literal["report", "step"]
Gpu = int | Literal["auto", "off"]

_MODES: dict[str, Any] = {"MINIMIZE": "min", "MAXIMIZE": "max"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a trial is watched; :class:`~tune_guard.worker.TrialGuard` says what each is.

    Raises:
        ConfigError: If a value cannot be meant.
    """

    unit: Unit = "report"
    sync: bool = False
    accumulate: int = 1
    trace: bool = False
    gpu: Gpu = "auto"
    deciding_rank: int = 0
    evidence: Evidence | None = None

    def __post_init__(self) -> None:
        checked(self.evidence)
        advice = "It says what the policy's steps count."
        _check("unit", self.unit in ("report", "step"), self, "report or step", advice)
        ok = _whole(self.accumulate, 1)
        _check("accumulate", ok, self, ">= 1", "1 judges every call.")
        ok = self.gpu in ("auto", "off") or _whole(self.gpu, 0)
        advice = "A number is CUDA's number of the GPU."
        _check("gpu", ok, self, "'auto', 'off' or a number >= 0", advice)
        ok = _whole(self.deciding_rank, 0)
        _check("deciding_rank", ok, self, "a rank >= 0", "0 is usual.")


def policy_for(policy: object, trial: Any) -> Policy:
    """Return the policy with a known mode: its own, or an Optuna study's direction.

    Raises:
        ConfigError: If it is no policy, or nothing says which direction is better.
    """
    if not isinstance(policy, Policy):
        msg = (
            f"`policy` must be a Policy, but got {policy!r}. Write"
            ' TrialGuard(Policy.default("val_loss", "min")).'
        )
        raise ConfigError(msg)
    directions = getattr(getattr(trial, "study", None), "directions", None) or []
    if policy.mode is None and len(directions) == 1:
        mode = _MODES.get(str(getattr(directions[0], "name", "")))
        if mode is not None:
            return policy.with_mode(mode)
    return policy.checked()


def _check(name: str, ok: object, options: Options, must: str, advice: str) -> None:
    if not ok:
        value = getattr(options, name)
        msg = f"`{name}` must be {must}, but got {value!r}. {advice}"
        raise ConfigError(msg)


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
