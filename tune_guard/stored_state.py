"""A monitor's stored state: what it must look like, before any of it is believed.

A state comes back from checkpoints, databases and older versions. It is checked
whole before it replaces anything, so that damage never leaves half a monitor.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from tune_guard.exceptions import brief
from tune_guard.notices import Notices
from tune_guard.strict_json import plain
from tune_guard.verdict import HEALTHY, Blame, Finding, Level, Tier, Verdict

STATE_VERSION = 1
_NUMBER = (int, float)


def name_lost_state(notices: Notices, error: Exception) -> None:
    """Say once that a trial's state could not be read, whoever tried to."""
    notices.once(
        "state",
        f"A trial's stored state could not be read ({brief(error)}): its rules start"
        " anew.",
    )


def check_state(state: Any) -> dict[str, Any]:
    """Return a state that :meth:`Monitor.state` wrote, if it is one.

    Raises:
        ValueError: If it is damaged or of another version.
    """
    _need(isinstance(state, Mapping), "a mapping", state)
    version = state.get("version")
    _need(version == STATE_VERSION, f"of version {STATE_VERSION}", version)
    keyframes = state.get("keyframes")
    _need(isinstance(keyframes, list), "keyframes", keyframes)
    verdict = state.get("verdict")
    _need(isinstance(verdict, list), "a verdict", verdict)
    return {
        **_check_snapshot(state),
        "keyframes": [_check_snapshot(frame) for frame in keyframes],
        "verdict": load_verdict(verdict),
    }


def _check_snapshot(state: Any) -> dict[str, Any]:
    _need(isinstance(state, Mapping), "a mapping", state)
    for name in ("first_step", "last_step"):
        _need(_is(state.get(name), int, none=True), f"`{name}`", state.get(name))
    attempt, best, warnings = (state.get(k) for k in ("attempt", "best", "warnings"))
    _need(_is(attempt, int) and attempt >= 1, "`attempt`", attempt)
    _need(isinstance(best, list), "`best`", best)
    best_value, best_step = best
    _need(_is(best_value, *_NUMBER, none=True), "`best`", best)
    _need(_is(best_step, int, none=True), "`best`", best)
    _need(isinstance(warnings, Mapping), "`warnings`", warnings)
    _need(all(_is(step, int) for step in warnings.values()), "`warnings`", warnings)
    spared = state.get("spared", "")
    _need(isinstance(spared, str), "`spared`", spared)
    marker = state.get("marker")
    _need(_is(marker, str, bool, *_NUMBER, none=True), "`marker`", marker)
    for name in ("curve", "schedule"):
        summary = state.get(name)
        _need(isinstance(summary, list) and _is_numbers(summary), f"`{name}`", summary)
    _need(isinstance(state.get("keys"), list), "`keys`", state.get("keys"))
    rules = state.get("rules")
    _need(isinstance(rules, Mapping), "`rules`", rules)
    return dict(state)


def _is(value: Any, *kinds: type, none: bool = False) -> bool:
    if value is None:
        return none
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds)


def _is_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_numbers(item) for item in value)
    return _is(value, bool, *_NUMBER, none=True)


def _need(ok: bool, what: str, value: object) -> None:  # noqa: FBT001 - a condition
    if not ok:
        msg = f"a state must hold {what}, but got {reprlib.repr(value)}"
        raise ValueError(msg)


def store_verdict(verdict: Verdict) -> list[dict[str, Any]]:
    """Return a verdict to stop as plain values; nothing for any other."""
    if not verdict.stop:
        return []
    return [
        {name: getattr(found, name) for name in Finding.__slots__}
        | {
            "tier": int(found.tier),
            "blame": str(found.blame),
            "level": int(found.level),
        }
        | {"holds": list(found.holds), "value": plain(found.value)}
        for found in verdict.findings
    ]


def load_verdict(stored: list[dict[str, Any]]) -> Verdict:
    """Take back what :func:`store_verdict` returned.

    Raises:
        ValueError: If it is damaged.
    """
    try:
        findings = [
            Finding(
                **{
                    **found,
                    "tier": Tier(found["tier"]),
                    "blame": Blame(found["blame"]),
                    "level": Level(found["level"]),
                    "holds": tuple(found["holds"]),
                    "value": float(found["value"]),
                }
            )
            for found in stored
        ]
    except (KeyError, TypeError) as error:
        msg = f"a stored verdict is damaged: {error}"
        raise ValueError(msg) from error
    return Verdict(findings[0].level, tuple(findings)) if findings else HEALTHY
