"""One trial's three streams on the worker: its steps, its machine, its reports.

Each has its own clock. Steps come many times a second and are counted in
optimizer steps; the machine is looked at every few seconds; reports are counted
as the trainer counts them. Each is judged by a Monitor of its own, under the part
of the policy that has a meaning there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tune_guard.evidence.window import Window
from tune_guard.monitor import Monitor
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.record import StopRecord
from tune_guard.rules.base import Rule
from tune_guard.verdict import HEALTHY, Verdict
from tune_guard.worker.settings import Unit

_JUDGED_BY_STEP = ("non_finite", "amp_scale_collapse")
_STEP_SIGNALS = {"grad_norm", "lr", "amp_scale", "step_skipped"}
_MACHINE_SIGNALS = {
    "step_time_s",
    "data_time_s",
    "time_s",
    "gpu_reasons",
    "gpu_thermal_ratio",
    "gpu_utilization_ratio",
    "gpu_temperature_celsius",
    "gpu_clock_mhz",
    "gpu_xid",
    "gpu_lost",
    "gpu_ecc_uncorrected",
}
_UNTIL_REPORTED = 2**62
_EVERY_RULE = "*"


class Streams:
    """The monitors of a trial's streams. The first stop of any is final.

    Args:
        policy: The trial's policy, with a known mode.

        unit: What the policy's steps count: reports, or optimizer steps.

        trial_id: Names the trial in records and chooses the holdout.

        notices: Where each trouble is named once.

        keeps: Whether each monitor's last observations are kept, for evidence.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        unit: Unit,
        trial_id: str,
        notices: Notices,
        keeps: bool = False,
    ) -> None:
        self.policy = policy
        self._unit = unit
        self._trial_id, self._notices, self._keeps = trial_id, notices, keeps
        self.reports = self._monitor(policy)
        muted = unit == "report" and policy.warmup_steps > 0
        self.steps = self._monitor(self._step_policy(muted=muted))
        self.machine = self._monitor(self._machine_policy())
        self._muted = muted
        self.decider: Monitor | None = None

    def _monitor(self, policy: Policy) -> Monitor:
        monitor = Monitor(policy, trial_id=self._trial_id, notices=self._notices)
        if self._keeps:
            monitor.witness = Window()
        return monitor

    def _step_policy(self, *, muted: bool) -> Policy:
        """Return what is judged every step.

        While the reports are in warm-up, so are the steps between them: how many
        steps that takes is not known, so the monitor is replaced at its end.
        """
        counted = self._unit == "step"
        warmup = self.policy.warmup_steps if counted else 0
        return _part(
            self.policy,
            metric=_key(self.policy, "loss"),
            keeps=lambda r: r.id in _JUDGED_BY_STEP or _reads_only(r, _STEP_SIGNALS),
            warmup_steps=_UNTIL_REPORTED if muted else warmup,
            budget_steps=self.policy.budget_steps if counted else None,
        )

    def _machine_policy(self) -> Policy:
        return _part(
            self.policy,
            metric=_key(self.policy, "step_time_s"),
            keeps=lambda rule: _reads_only(rule, _MACHINE_SIGNALS),
        )

    @property
    def verdict(self) -> Verdict:
        """The verdict that decided, or the newest one of the reports."""
        return (self.decider or self.reports).verdict

    @property
    def by_name(self) -> dict[str, Monitor]:
        """The monitors by the name of what they watch."""
        return {"reports": self.reports, "steps": self.steps, "machine": self.machine}

    @property
    def deciding(self) -> str:
        """The name of what decided; of the reports while nothing has."""
        for name, monitor in self.by_name.items():
            if monitor is self.decider:
                return name
        return "reports"

    @property
    def warned(self) -> bool:
        """Whether a rule has warned so far."""
        return any(m.warnings for m in (self.steps, self.machine, self.reports))

    def step(self, step: int, signals: Mapping[str, Any]) -> Verdict:
        """Judge what one optimizer step brought."""
        return self._observe(self.steps, step, signals)

    def pulse(self, step: int, signals: Mapping[str, Any]) -> Verdict:
        """Judge the machine's state, for the step at which it was read."""
        machine = self.machine
        again = machine.last_step is not None and step <= machine.last_step
        return self._observe(machine, None if again else step, signals)

    def report(self, step: int, row: Mapping[str, Any]) -> Verdict:
        """Judge a report."""
        verdict = self._observe(self.reports, step, row)
        at = self.reports.last_step
        if self._muted and at is not None and at >= self.policy.warmup_steps:
            self._end_warmup()
        return verdict

    def _observe(
        self, monitor: Monitor, step: int | None, signals: Mapping[str, Any]
    ) -> Verdict:
        if self.decider is not None:
            return self.decider.verdict
        verdict = monitor.observe(step, signals)
        if verdict.stop:
            self.decider = monitor
        return verdict

    def _end_warmup(self) -> None:
        self._muted = False
        armed = self._monitor(self._step_policy(muted=False))
        armed.restore(self.steps.state())
        if self.decider is self.steps:
            self.decider = armed
        self.steps = armed

    def adopt(self, verdict: Verdict) -> None:
        """Take over a verdict that was reached elsewhere, such as on another rank."""
        if self.decider is None:
            self.decider = self.reports
        self.decider.verdict = verdict

    def forgive(self) -> None:
        """Take back a stop that is not for this rank to decide."""
        if self.decider is not None:
            self.decider.verdict = HEALTHY
            self.decider = None

    def record(self, **more: Any) -> StopRecord:
        """Return the record of the present verdict; ``more`` are further fields."""
        monitors = (self.steps, self.machine, self.reports)
        seen = {rule: at for m in monitors for rule, at in m.warnings.items()}
        return (self.decider or self.reports).record(
            objective=self.policy.metric,
            mode=self.policy.mode or "",
            best_value=self.reports.best_value,
            best_step=self.reports.best_step,
            warnings=tuple(f"{rule}@{at}" for rule, at in seen.items()),
            **more,
        )

    def state(self) -> dict[str, Any]:
        """Return what decides later verdicts, as plain values; not the machine's."""
        return {
            "steps": self.steps.state(),
            "reports": self.reports.state(),
            "muted": self._muted,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with a trial that began elsewhere: what was judged there counts.

        What describes the machine starts anew. A state that cannot be read is
        named once and everything starts anew.
        """
        if self._muted and not state.get("muted", True):
            self._end_warmup()
        for monitor in (self.steps, self.reports):
            name = "steps" if monitor is self.steps else "reports"
            monitor.restore(state.get(name) or {})
            if monitor.last_step is not None:
                monitor.begin_attempt(monitor.last_step + 1)


def _part(
    policy: Policy, *, metric: str, keeps: Callable[[Rule], bool], **more: Any
) -> Policy:
    """Return the part of a policy whose rules are kept."""
    rules = tuple(rule for rule in policy.rules if keeps(rule))
    ids = {rule.id for rule in rules} | {_EVERY_RULE}
    return replace(
        policy,
        **{
            "metric": metric,
            "mode": "min",
            "rules": rules,
            "actions": {k: v for k, v in policy.actions.items() if k in ids},
            "fresh_key": None,
            "ignore_where": {},
            "warmup_steps": 0,
            "budget_steps": None,
            **more,
        },
    )


def _reads_only(rule: Rule, signals: set[str]) -> bool:
    return bool(rule.needs) and signals.issuperset(rule.needs)


def _key(policy: Policy, signal: str) -> str:
    """Return the key under which a signal is reported, or its own name."""
    return next(iter(policy.keys.aliases(signal)), signal)
