"""One trial's state: every rule sees every observation, and one verdict comes out."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

from tune_guard.curve import Curve
from tune_guard.exceptions import brief
from tune_guard.intake import Intake
from tune_guard.notices import Notices
from tune_guard.observation import Observation
from tune_guard.panel import Panel
from tune_guard.peers import Peers
from tune_guard.record import StopRecord
from tune_guard.rules.base import Context, Detector
from tune_guard.schedule import Schedule
from tune_guard.stored_state import (
    STATE_VERSION,
    check_state,
    name_lost_state,
    store_verdict,
)
from tune_guard.tempering import is_against, spared_by, tempered
from tune_guard.verdict import HEALTHY, Finding, Level, Verdict, decide

if TYPE_CHECKING:
    from tune_guard.policy import Policy

_MOST_WARNINGS = 8
_MOST_KEYFRAMES = 2


class Witness(Protocol):
    """Whoever keeps what a monitor saw. It lives in this process: no state holds it."""

    def see(self, monitor: Monitor, observation: Observation) -> None:
        """Take an observation that is about to be judged. Must not raise."""

    def forget(self) -> None:
        """Drop everything: the monitor goes on from another state."""


class Monitor:
    """Judge one trial, report by report, under a policy.

    The same class decides in production and in replay. It never raises from
    :meth:`observe`: a rule that fails is named once and switched off for the
    trial. A verdict to stop is final: later reports return it again.

    Args:
        policy: The rules, with a known metric and mode.

        trial_id: Names the trial in records and chooses the holdout.

        notices: Shared by all trials of a sweep, so that each thing is said once.

        peers: Shared likewise: what finished trials have reached, for rules that
            compare. None judges the trial by itself.

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
        self,
        policy: Policy,
        *,
        trial_id: str = "",
        notices: Notices | None = None,
        peers: Peers | None = None,
    ) -> None:
        self.policy = policy.checked()
        self.trial_id = trial_id
        self.notices = Notices() if notices is None else notices
        self.witness: Witness | None = None
        self.peers = peers
        self._intake = Intake(policy, self.notices)
        self._start_anew()

    def _start_anew(self) -> None:
        self.attempt = 1
        self.verdict = HEALTHY
        self.warnings: dict[str, int] = {}
        self.spared = ""
        self._keyframes: list[dict[str, Any]] = []
        self._forget_curve()

    def _forget_curve(self) -> None:
        """Start as before the first report; attempt and warnings stay."""
        self._intake.forget()
        self._against: frozenset[str] = frozenset()
        self.best_value: float | None = None
        self.best_step: int | None = None
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
            trial_id=self.trial_id,
            peers=self.peers,
        )
        self._sign = context.sign
        self._panel = Panel(policy.armed_rules(), context, self.notices)

    def _name_of(self, signal: str) -> str:
        return self.names.get(signal, signal)

    @property
    def detectors(self) -> Mapping[str, Detector]:
        """The rules' detectors by rule id: those that are armed and have not failed."""
        return self._panel.detectors

    @property
    def names(self) -> dict[str, str]:
        """Under which key each signal was reported last; messages name it."""
        return self._intake.reader.names

    @property
    def last_step(self) -> int | None:
        """The newest step that was reported, or None before the first."""
        return self._intake.last_step

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
        if self.verdict is not HEALTHY and self.verdict.stop:
            return self.verdict
        try:
            observation = self._intake.take(step, report)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
            self.notices.once(
                f"report:{type(error).__name__}",
                f"A report could not be read ({brief(error)}): it is not judged.",
            )
            return HEALTHY
        if observation is None:
            return HEALTHY
        if self.witness is not None:
            self.witness.see(self, observation)
        return self.take(observation)

    def take(self, observation: Observation) -> Verdict:
        """Judge an observation that was read before, such as a stored one.

        Reports go to :meth:`observe`, which passes over those that say nothing new.
        """
        self._account(observation)
        findings = self._panel.findings(observation)
        if self._against and observation.metric is not None:
            self._against = frozenset()
        self.verdict = self._decide(findings, observation) if findings else HEALTHY
        return self.verdict

    def _account(self, observation: Observation) -> None:
        """Keep the best value and feed the summaries."""
        value, lr, step = observation.metric, observation.lr, observation.step
        if lr is not None and isfinite(lr):
            self.schedule.add(step, lr)
        if value is None or not isfinite(value):
            return
        norm, loss = observation.grad_norm, observation.loss
        if norm is not None and not isfinite(norm) and not observation.step_skipped:
            return  # a trainer that filters NaN logs a loss of 0.0 beside it
        if loss is not None and not isfinite(loss):
            return
        score = self._sign * value
        self.curve.add(score, step, warming=observation.warming)
        best = self.best_value
        if best is None or score > self._sign * best:
            self.best_value, self.best_step = value, step

    def _decide(self, found: list[Finding], observation: Observation) -> Verdict:
        policy, warming = self.policy, observation.warming
        findings = [
            tempered(one, policy, self.trial_id, warming=warming) for one in found
        ]
        self._against |= {finding.rule for finding in findings if is_against(finding)}
        for finding in findings:
            if finding.level is Level.WARN and len(self.warnings) < _MOST_WARNINGS:
                self.warnings.setdefault(finding.rule, finding.step)
        verdict = decide(findings)
        if not self.spared and not verdict.stop:
            self.spared = next(filter(None, map(spared_by, verdict.findings)), "")
        return verdict

    def is_against(self, rule_id: str) -> bool:
        """Return whether a rule has cause to cut, also where it is not let.

        By the newest reading of the metric and what came since. That its action
        is ``warn``, or the trial is in the holdout, does not matter; a hold and
        warm-up do.
        """
        return rule_id in self._against

    def miss(self, report: Mapping[str, Any], advice: str = "") -> None:
        """Say that the metric was due and what came in its place. Never raises.

        Nothing is judged. A metric that goes on missing is named once.

        Args:
            report: What came; the metric's name may be misspelt for one of its keys.

            advice: What to do, where none of the keys can be meant.
        """
        try:
            self._intake.key_watch.miss(report, advice)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
            self.notices.once("miss", f"A report could not be read ({brief(error)}).")

    def finish(self) -> None:
        """Say that the trial has run to its end, uncut. Never raises.

        Rules that compare trials then measure others against it. Keys that never
        came are named, also in a trial too short to have named them before.
        """
        self._intake.key_watch.finish()
        self._panel.finish()

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
                "spared": self.spared,
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
        if self.witness is not None:
            self.witness.forget()
        seen, first = self._intake.last_step, self._intake.first_step
        if config_changed or seen is None or first is None or step <= first:
            self._forget_curve()
            self._keyframes = []
            return
        if step <= seen:
            self._rewind(step)
        self._panel.change_machine()

    def keyframe(self) -> None:
        """Keep the present state to return to: call it when a checkpoint is taken."""
        if self.last_step is not None:
            kept = [*self._keyframes, self._snapshot()]
            self._keyframes = kept[-_MOST_KEYFRAMES:]

    def _rewind(self, step: int) -> None:
        attempt, keyframes = self.attempt, self._keyframes
        usable = [k for k in keyframes if (k.get("last_step") or 0) < step]
        try:
            if usable:
                self._load(usable[-1])
        except Exception as error:  # noqa: BLE001 - a damaged state must not end a sweep
            self._forget_curve()
            name_lost_state(self.notices, error)
        self.attempt, self._keyframes = attempt, usable
        self._intake.last_step = step - 1

    def margins(self) -> dict[str, float]:
        """Return how near each rule's trigger is, by id: 1 is where it fires.

        For display only. Rules whose state does not tell are left out.
        """
        found: dict[str, float] = {}
        for name, detector in self.detectors.items():
            with contextlib.suppress(Exception):  # a rule's bug must not end a sweep
                margin = detector.margin()
                found |= {} if margin is None else {name: margin}
        return found

    def state(self) -> dict[str, Any]:
        """Return everything that decides later verdicts, as plain values."""
        return {
            "version": STATE_VERSION,
            **self._snapshot(),
            "keyframes": self._keyframes,
            "verdict": store_verdict(self.verdict),
        }

    def _snapshot(self) -> dict[str, Any]:
        return {
            "attempt": self.attempt,
            "first_step": self._intake.first_step,
            "last_step": self._intake.last_step,
            "marker": self._intake.marker,
            "keys": self._intake.key_watch.state(),
            "best": [self.best_value, self.best_step],
            "warnings": dict(self.warnings),
            "spared": self.spared,
            "curve": self.curve.state(),
            "schedule": self.schedule.state(),
            "rules": self._panel.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state. What cannot be read starts anew, named once."""
        if self.witness is not None:
            self.witness.forget()
        try:
            checked = check_state(state)
            self._load(checked)
            self._keyframes, self.verdict = checked["keyframes"], checked["verdict"]
        except Exception as error:  # noqa: BLE001 - a damaged state must not end a sweep
            self._start_anew()
            name_lost_state(self.notices, error)

    def _load(self, state: Mapping[str, Any]) -> None:
        self._forget_curve()
        self.attempt = state["attempt"]
        intake = self._intake
        intake.first_step, intake.last_step = state["first_step"], state["last_step"]
        intake.marker = state["marker"]
        intake.key_watch.restore(state["keys"])
        self.best_value, self.best_step = state["best"]
        self.warnings = dict(state["warnings"])
        self.spared = state.get("spared", "")
        self.curve.restore(state["curve"])
        self.schedule.restore(state["schedule"])
        failure = self._panel.restore(state["rules"])
        if failure is not None:
            name_lost_state(self.notices, failure)
