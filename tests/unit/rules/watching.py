"""Let one rule watch one trial, as the tests of the rules need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tune_guard import Monitor, Policy
from tune_guard.rules.base import Rule
from tune_guard.verdict import Verdict


def watch(
    rule: Rule, reports: Iterable[Mapping[str, Any]], **policy: Any
) -> list[Verdict]:
    """Return the verdict after each report; steps count from 0."""
    fields = {"metric": "loss", "mode": "min", **policy}
    monitor = Monitor(Policy(rules=(rule,), **fields))
    return [monitor.observe(step, report) for step, report in enumerate(reports)]


def stop_step(
    rule: Rule, reports: Iterable[Mapping[str, Any]], **policy: Any
) -> int | None:
    """Return the step at which the rule stops the trial, or None."""
    verdicts = watch(rule, reports, **policy)
    return next((verdict.step for verdict in verdicts if verdict.stop), None)


def warn_steps(
    rule: Rule, reports: Iterable[Mapping[str, Any]], **policy: Any
) -> list[int]:
    """Return the steps at which the rule warns."""
    verdicts = watch(rule, reports, **policy)
    return [v.step for v in verdicts if v.findings and not v.stop]


def stop_step_restarted(
    rule: Rule, reports: Iterable[Mapping[str, Any]], **policy: Any
) -> int | None:
    """Return the step of the stop when every report meets a restored monitor."""
    made = Policy(rules=(rule,), **{"metric": "loss", "mode": "min", **policy})
    monitor = Monitor(made)
    for step, report in enumerate(reports):
        state, monitor = monitor.state(), Monitor(made)
        monitor.restore(state)
        if monitor.observe(step, report).stop:
            return step
    return None


def losses(values: Iterable[Any], key: str = "loss") -> list[dict[str, Any]]:
    """Return one report for each value."""
    return [{key: value} for value in values]
