"""Which keys a trial has never reported: each is named once, with what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import did_you_mean
from tune_guard.nested_keys import flat_keys, lookup
from tune_guard.notices import Notices
from tune_guard.observation import Keys, Observation, aliases_of

if TYPE_CHECKING:
    from tune_guard.policy import Policy

_USUAL = aliases_of(Keys())
_REPORTS_UNTIL_INACTIVE = 5
_REPORTS_UNTIL_MISSING = 10


class KeyWatch:
    """Say once which configured keys and which rules' signals do not come.

    A key that was asked for by name is probably misspelt, and is named with the
    nearest keys that did come. A rule whose signals do not come is inactive:
    unknown is neither healthy nor unhealthy.

    Args:
        policy: Names the keys and the rules.

        notices: Where they are said.
    """

    def __init__(self, policy: Policy, notices: Notices) -> None:
        self._notices = notices
        self._fresh_key = policy.fresh_key
        self._keys = _named_keys(policy)
        rules = [r for r in policy.armed_rules() if not r.rare]
        self._rules = {r.id: r.needs for r in rules if r.needs}
        self.reports = 0
        self._newest: Mapping[str, Any] = {}
        self._missed, self._advice = 0, ""
        self.unseen = set(self._keys)
        self.unseen |= {signal for needs in self._rules.values() for signal in needs}

    def see(
        self, observation: Observation, report: Mapping[str, Any], *, counts: bool
    ) -> None:
        """Take in one report; what comes between two steps does not count as one."""
        for name in list(self.unseen):
            key = self._keys.get(name)
            came = observation.get(name) if key is None else lookup(report, key)
            if came is not None:
                self.unseen.discard(name)
        if not counts:
            return
        self.reports += 1
        self._newest, self._advice = report, ""
        if self.reports == _REPORTS_UNTIL_INACTIVE:
            self._name_inactive_rules()
        if self.reports == _REPORTS_UNTIL_MISSING:
            self._name_missing_keys()

    def miss(self, report: Mapping[str, Any], advice: str) -> None:
        """Take in what came where the metric was due; it was not judged without it.

        It is no report, so that it says nothing about the rules' signals.
        """
        if "metric" not in self.unseen:
            return
        self._missed += 1
        self._newest, self._advice = report, advice
        if self._missed == _REPORTS_UNTIL_MISSING:
            self._name_missing_metric()

    def finish(self) -> None:
        """Name what is missing now: a trial that ran to its end reports no more."""
        if self._missed and not self.reports:
            self._name_missing_metric()
        elif self._newest:
            self._name_missing_keys()

    def _name_missing_metric(self) -> None:
        if "metric" in self.unseen:
            self.unseen.discard("metric")
            self._name_missing_key(self._keys["metric"], self._missed)

    def _name_missing_keys(self) -> None:
        for name in sorted(self.unseen & self._keys.keys()):
            self._name_missing_key(self._keys[name], self.reports)
        self.unseen, self._newest = set(), {}

    def _name_missing_key(self, key: str, reports: int) -> None:
        effect = "rules on it are inactive"
        if key == self._fresh_key:
            effect = "no value of the metric counts without its marker"
        hint = self._advice or did_you_mean(key, flat_keys(self._newest))
        self._notices.once(
            f"missing:{key}",
            f"`{key}` was in none of the first {reports} reports: {effect}. {hint}",
        )

    def _name_inactive_rules(self) -> None:
        rules = [r for r, needs in self._rules.items() if self.unseen.issuperset(needs)]
        if not rules:
            return
        signals = sorted({signal for rule in rules for signal in self._rules[rule]})
        self._notices.once(
            f"inactive:{','.join(rules)}",
            f"Inactive, because nothing they read was reported: {', '.join(rules)}."
            f" To arm them, report {', '.join(signals)} from the training loop.",
        )

    def state(self) -> list[Any]:
        """Return what was seen so far as plain values."""
        return [self.reports, sorted(self.unseen)]

    def restore(self, state: list[Any]) -> None:
        """Take over what :meth:`state` returned."""
        reports, unseen = state
        self.reports, self.unseen = int(reports), self.unseen.intersection(unseen)


def _named_keys(policy: Policy) -> dict[str, str]:
    """Return the keys that the user asked for by name."""
    keys = {"metric": policy.metric}
    if policy.fresh_key is not None:
        keys["fresh_key"] = policy.fresh_key
    for signal, aliases in aliases_of(policy.keys).items():
        if aliases != _USUAL.get(signal):
            keys[signal] = aliases[0]
    return keys | {key: key for key in policy.extra_keys()}
