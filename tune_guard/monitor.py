"""One trial's state: every rule sees every observation, and one verdict comes out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tune_guard.curve import Curve
from tune_guard.exceptions import did_you_mean
from tune_guard.notices import Notices
from tune_guard.observation import Observation, flat_keys, lookup
from tune_guard.reader import ReportReader
from tune_guard.record import StopRecord
from tune_guard.rules.base import Context, Detector
from tune_guard.schedule import Schedule
from tune_guard.verdict import HEALTHY, Finding, Level, Tier, Verdict, decide

if TYPE_CHECKING:
    from tune_guard.policy import Policy

STATE_VERSION = 1
_PATIENCE_FOR_METRIC = 10
_MOST_WARNINGS = 8
_MOST_KEYFRAMES = 2


class Monitor:
    """Judge one trial, report by report, under a policy.

    The same class decides in production and in replay. It never raises from
    :meth:`observe`: a rule that fails is named once and switched off for the
    trial. A verdict to stop is final: later reports return it again.

    Args:
        policy: The rules, with a known metric and mode.

        trial_id: Names the trial in records and chooses the holdout.

        notices: Shared by all trials of a sweep, so that each thing is said once.

    Raises:
        ConfigError: If the policy's mode is not known.

    Example:
        >>> from tune_guard import Policy
        >>> monitor = Monitor(Policy.default("loss", "min"))
        >>> monitor.observe(0, {"loss": 1.0}).stop
        False
        >>> monitor.observe(1, {"loss": float("nan")}).reason
        'non_finite'
    """

    def __init__(
        self, policy: Policy, *, trial_id: str = "", notices: Notices | None = None
    ) -> None:
        self.policy = policy.checked()
        self.trial_id = trial_id
        self.notices = Notices() if notices is None else notices
        self._reader = ReportReader(
            policy.metric, policy.keys, policy.extra_keys(), self.notices
        )
        self.attempt = 1
        self.first_step: int | None = None
        self.last_step: int | None = None
        self.best_value: float | None = None
        self.best_step: int | None = None
        self.verdict = HEALTHY
        self.warnings: dict[str, int] = {}
        self._reports = 0
        self._metric_seen = False
        self._marker: Any = None
        self._keyframes: list[dict[str, Any]] = []
        self._start_rules()

    def _start_rules(self) -> None:
        policy = self.policy
        self.curve, self.schedule = Curve(), Schedule()
        context = Context(
            metric=policy.metric,
            mode=policy.mode or "min",
            warmup_steps=policy.warmup_steps,
            budget_steps=policy.budget_steps,
            curve=self.curve,
            schedule=self.schedule,
            name_of=self._name_of,
        )
        self._sign = context.sign
        self._detectors: dict[str, Detector] = {
            rule.id: rule.start(context) for rule in policy.armed_rules()
        }

    def _name_of(self, signal: str) -> str:
        return self._reader.names.get(signal, signal)

    def observe(self, step: int | None, report: Mapping[str, Any]) -> Verdict:
        """Take one report and return the verdict for it. Never raises.

        Args:
            step: Step of the report. None for signals between reports: they
                count for the step of the last report.

            report: What the trial reported, nested or flat.

        Returns:
            The verdict. A step that was seen before is no observation: the
            verdict is healthy, or the earlier stop.
        """
        if self.verdict.stop:
            return self.verdict
        try:
            observation = self._take(step, report)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
            self.notices.once(
                f"report:{type(error).__name__}",
                f"A report could not be read ({error!r}); it is not judged.",
            )
            return HEALTHY
        if observation is None:
            return HEALTHY
        self.verdict = self._judge(observation)
        return self.verdict

    def _take(self, step: int | None, report: Mapping[str, Any]) -> Observation | None:
        """Read a report; None when it is no observation."""
        policy = self.policy
        if policy.ignore_where and _matches(report, policy.ignore_where):
            return None
        if step is None:
            step = self.last_step or 0
        elif self.last_step is not None and step <= self.last_step:
            self.notices.once(
                "repeated",
                f"Step {step} was reported after step {self.last_step}: a step that"
                " was seen before is not judged again. Report each step once.",
            )
            return None
        else:
            self.last_step = step
            if self.first_step is None:
                self.first_step = step
        observation = self._reader.read(step, report)
        fields = observation.__dict__
        fields["warming"] = step < policy.warmup_steps
        if policy.fresh_key is not None and not self._moved(report, policy.fresh_key):
            fields.pop("metric", None)
        self._account(observation, report)
        return observation

    def _moved(self, report: Mapping[str, Any], fresh_key: str) -> bool:
        marker = lookup(report, fresh_key)
        if marker is None or marker == self._marker:
            return False
        self._marker = marker
        return True

    def _account(self, observation: Observation, report: Mapping[str, Any]) -> None:
        """Keep the best value, feed the summaries, name a metric that never came."""
        value, lr = observation.metric, observation.lr
        if lr is not None and math.isfinite(lr):
            self.schedule.add(observation.step, lr)
        if value is None:
            self._reports += 1
            if not self._metric_seen and self._reports == _PATIENCE_FOR_METRIC:
                self._name_missing_metric(report)
            return
        self._metric_seen = True
        if not math.isfinite(value) or _unsound(observation):
            return
        self.curve.add(self._sign * value)
        best = self.best_value
        if best is None or self._sign * value > self._sign * best:
            self.best_value, self.best_step = value, observation.step

    def _name_missing_metric(self, report: Mapping[str, Any]) -> None:
        metric = self.policy.metric
        self.notices.once(
            f"missing:{metric}",
            f"`{metric}` was in none of the first {self._reports} reports: rules on"
            f" it are inactive. {did_you_mean(metric, flat_keys(report))}",
        )

    def _judge(self, observation: Observation) -> Verdict:
        findings: list[Finding] = []
        for rule_id, detector in list(self._detectors.items()):
            try:
                found = detector.update(observation)
            except Exception as error:  # noqa: BLE001 - a rule's bug must not end a sweep
                del self._detectors[rule_id]
                self.notices.once(
                    f"rule:{rule_id}",
                    f"Rule `{rule_id}` failed with {error!r}: it is off for this"
                    " trial. Please report it to the rule's author.",
                )
                continue
            if found is not None:
                findings.append(self._tempered(found, observation))
        for found in findings:
            if found.level is Level.WARN and len(self.warnings) < _MOST_WARNINGS:
                self.warnings.setdefault(found.rule, found.step)
        return decide(findings)

    def _tempered(self, found: Finding, observation: Observation) -> Finding:
        """Lower a finding to a warning where warm-up, an action or holdout says so."""
        if found.level is not Level.STOP:
            return found
        held = ""
        if self.policy.action(found.rule) == "warn":
            held = "action"
        elif found.tier is not Tier.FATAL and observation.warming:
            held = "warmup"
        elif found.tier is not Tier.FATAL and self.in_holdout:
            held = "holdout"
        return replace(found, level=Level.WARN, holds=(held,)) if held else found

    @property
    def in_holdout(self) -> bool:
        """Whether this trial runs on when condemned, to measure false kills."""
        if not self.policy.holdout:
            return False
        digest = hashlib.sha256(f"holdout:{self.trial_id}".encode()).digest()
        return int.from_bytes(digest[:8]) / 2**64 < self.policy.holdout

    def record(self, **more: Any) -> StopRecord:
        """Return the record of the present verdict; ``more`` are further fields."""
        verdict = self.verdict if self.verdict.stop else HEALTHY
        return StopRecord.of(
            verdict,
            **{
                "objective": self.policy.metric,
                "mode": self.policy.mode or "",
                "best_value": self.best_value,
                "best_step": self.best_step,
                "attempt": self.attempt,
                "trial": self.trial_id,
                "warnings": tuple(f"{r}@{s}" for r, s in self.warnings.items()),
                **more,
            },
        )

    def begin_attempt(self, step: int, *, config_changed: bool = False) -> None:
        """Say that the trial runs on elsewhere, from ``step`` on.

        What describes the machine starts anew. A rewind goes back to the newest
        keyframe before ``step``; back to the first step, or with a changed
        configuration, everything starts anew.

        Args:
            step: First step that the new attempt reports.

            config_changed: Whether the hyperparameters are others than before.
        """
        self.attempt += 1
        self.verdict = HEALTHY
        seen, first = self.last_step, self.first_step
        if config_changed or seen is None or first is None or step <= first:
            self._start_rules()
            self.best_value = self.best_step = None
            self.last_step = None
            self._keyframes = []
            return
        if step <= seen:
            self._rewind(step)
        for rule_id, rule in [(rule.id, rule) for rule in self.policy.armed_rules()]:
            detector = self._detectors.get(rule_id)
            if detector is not None and detector.machine_bound:
                self._detectors[rule_id] = rule.start(detector.context)

    def keyframe(self) -> None:
        """Keep the present state to return to: call it when a checkpoint is taken."""
        if self.last_step is not None:
            kept = [*self._keyframes, self._snapshot()]
            self._keyframes = kept[-_MOST_KEYFRAMES:]

    def _rewind(self, step: int) -> None:
        attempt, keyframes = self.attempt, self._keyframes
        usable = [k for k in keyframes if k["last_step"] < step]
        if usable:
            self._load(usable[-1])
        self.attempt, self._keyframes = attempt, usable
        self.last_step = step - 1

    def state(self) -> dict[str, Any]:
        """Return everything that decides later verdicts, as plain values."""
        return {**self._snapshot(), "keyframes": self._keyframes}

    def _snapshot(self) -> dict[str, Any]:
        return {
            "version": STATE_VERSION,
            "attempt": self.attempt,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "best": [self.best_value, self.best_step],
            "warnings": dict(self.warnings),
            "marker": self._marker,
            "reports": [self._reports, self._metric_seen],
            "curve": self.curve.state(),
            "schedule": self.schedule.state(),
            "rules": {name: d.state() for name, d in self._detectors.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state. What cannot be read starts anew, named once."""
        try:
            self._load(state)
            self._keyframes = list(state["keyframes"])
        except Exception as error:  # noqa: BLE001 - a damaged state must not end a sweep
            self._start_rules()
            self.notices.once(
                "state",
                f"A trial's stored state could not be read ({error!r}): its rules"
                " start anew.",
            )

    def _load(self, state: Mapping[str, Any]) -> None:
        if state["version"] != STATE_VERSION:
            msg = f"a state of version {state['version']!r}"
            raise ValueError(msg)
        self.attempt = state["attempt"]
        self.first_step, self.last_step = state["first_step"], state["last_step"]
        self.best_value, self.best_step = state["best"]
        self.warnings = dict(state["warnings"])
        self._marker = state["marker"]
        self._reports, self._metric_seen = state["reports"]
        self._start_rules()
        self.curve.restore(state["curve"])
        self.schedule.restore(state["schedule"])
        for name, stored in state["rules"].items():
            if name in self._detectors:
                self._detectors[name].restore(stored)


def _unsound(observation: Observation) -> bool:
    """Whether the step's other numbers show that its metric means nothing.

    A trainer that filters NaN logs a loss of 0.0 beside a NaN gradient norm.
    """
    norm, loss = observation.grad_norm, observation.loss
    if norm is not None and not math.isfinite(norm) and not observation.step_skipped:
        return True
    return loss is not None and not math.isfinite(loss)


def _matches(report: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(lookup(report, key) == value for key, value in where.items())
