"""A trial's detectors: one for each armed rule, shown what concerns it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from tune_guard.exceptions import brief
from tune_guard.notices import Notices
from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Finding, Level, Tier


class Panel:
    """The detectors of one trial, in the order of their rules.

    A rule whose signals (``needs``) have not come yet is inactive: its detector
    sleeps, and costs nothing, until the first of them comes. A rule that fails is
    named once and off for the rest of the trial; nothing is raised.

    Args:
        rules: The armed rules.

        context: What they may know about the trial.

        notices: Where failures are named.
    """

    __slots__ = (
        "_asleep",
        "_awaited",
        "_awake",
        "_context",
        "_notices",
        "_rules",
        "detectors",
    )

    def __init__(
        self, rules: Sequence[Rule], context: Context, notices: Notices
    ) -> None:
        self._rules, self._context, self._notices = rules, context, notices
        self.detectors: dict[str, Detector] = {}
        for rule in rules:
            if rule.compares and context.peers and context.budget_steps is None:
                self._name_missing_budget(rule.id)
            self._start(rule)
        self._asleep = {rule.id: rule.needs for rule in rules if rule.needs}
        self._call_up()

    def _start(self, rule: Rule) -> None:
        """Start a rule, or start it anew; one that cannot be started is off."""
        try:
            self.detectors[rule.id] = rule.start(self._context)
        except Exception as error:  # noqa: BLE001 - a rule's bug must not end a sweep
            self.detectors.pop(rule.id, None)
            self._name_failed(rule.id, error)

    def _call_up(self) -> None:
        """Work out who is shown the next observation, and who waits for what."""
        self._awake = [
            (rule_id, detector.update)
            for rule_id, detector in self.detectors.items()
            if rule_id not in self._asleep
        ]
        self._awaited = frozenset().union(*self._asleep.values())

    def findings(self, observation: Observation) -> list[Finding]:
        """Show one observation to every rule and return what they found."""
        if self._awaited and not self._awaited.isdisjoint(observation.__dict__):
            self._wake_for(observation.__dict__)
        found: list[Finding] = []
        for rule_id, update in self._awake:
            try:
                finding = update(observation)
                if finding is not None:
                    found.append(_well_formed(finding))
            except Exception as error:  # noqa: BLE001 - a rule's bug must not end a sweep
                self._drop(rule_id)  # makes a new list: this one is walked to its end
                self._name_failed(rule_id, error)
        return found

    def _wake_for(self, signals: Container[str]) -> None:
        for rule_id, needs in list(self._asleep.items()):
            if any(signal in signals for signal in needs):
                del self._asleep[rule_id]
        self._call_up()

    def _drop(self, rule_id: str) -> None:
        del self.detectors[rule_id]
        self._call_up()

    def finish(self) -> None:
        """Tell every rule that the trial has run to its end."""
        for rule_id, detector in list(self.detectors.items()):
            try:
                detector.finish()
            except Exception as error:  # noqa: BLE001 - a rule's bug must not end a sweep
                self._drop(rule_id)
                self._name_failed(rule_id, error)

    def change_machine(self) -> None:
        """Start anew what describes the machine: the trial runs on elsewhere."""
        for rule in self._rules:
            detector = self.detectors.get(rule.id)
            if detector is not None and detector.machine_bound:
                self._start(rule)
        self._call_up()

    def state(self) -> dict[str, list[Any]]:
        """Return as plain values the state of every rule that has seen something."""
        return {
            rule_id: detector.state()
            for rule_id, detector in self.detectors.items()
            if rule_id not in self._asleep
        }

    def restore(self, stored: Mapping[str, Any]) -> Exception | None:
        """Take over a state; return why a rule's part could not be read, if so.

        Such a rule starts anew: the others keep their state. Whose state is that
        of the start has seen nothing yet, and sleeps on.
        """
        failure = None
        for rule in self._rules:
            fresh = self.detectors.get(rule.id)
            if fresh is None or rule.id not in stored:
                continue
            if stored[rule.id] == fresh.state():
                continue
            try:
                fresh.restore(stored[rule.id])
            except Exception as error:  # noqa: BLE001 - the rule's parameters may have changed
                self._start(rule)
                failure = error
            self._asleep.pop(rule.id, None)
        self._call_up()
        return failure

    def _name_failed(self, rule_id: str, error: Exception) -> None:
        self._notices.once(
            f"rule:{rule_id}",
            f"Rule `{rule_id}` failed with {brief(error)}: it is off for this"
            " trial. Please report it to the rule's author.",
        )

    def _name_missing_budget(self, rule_id: str) -> None:
        self._notices.once(
            f"budget:{rule_id}",
            f"Rule `{rule_id}` needs to know how many steps a full trial runs: it is"
            " inactive. Give the policy `budget_steps`.",
        )


def _well_formed(found: object) -> Finding:
    if (
        isinstance(found, Finding)
        and isinstance(found.level, Level)
        and isinstance(found.tier, Tier)
        and isinstance(found.step, int)
    ):
        return found
    msg = f"a rule must return a Finding or None, but got {brief(found)}"
    raise TypeError(msg)
