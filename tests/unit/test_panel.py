"""A trial's detectors: who is shown what, and what a failure costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tune_guard import Monitor, Policy
from tune_guard.notices import Notices
from tune_guard.observation import Observation
from tune_guard.panel import Panel
from tune_guard.policy import DEFAULT
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHumidity(Rule):
    """A rule of another package, on a signal that few report."""

    id: ClassVar[str] = "on_humidity"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.INFRASTRUCTURE
    needs: ClassVar[tuple[str, ...]] = ("gpu_temperature_celsius",)

    def start(self, context: Context) -> Detector:
        """Return a detector that remembers the steps it was shown."""
        return _Shown(self, context)


class _Shown(Detector):
    __slots__ = ("steps",)

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.steps: list[int] = []

    def update(self, observation: Observation) -> Finding | None:
        self.steps.append(observation.step)
        return None


def seen(step: int, **signals: float) -> Observation:
    """Return an observation that holds these signals only, as the reader makes it."""
    observation = object.__new__(Observation)
    observation.__dict__.update(step=step, metric=1.0, **signals)
    return observation


def panel(*rules: Rule) -> Panel:
    """Return the panel of a trial without a course."""
    return Panel(rules, Context(metric="loss", mode="min"), Notices())


def steps(of: Panel) -> list[int]:
    """Return the steps that its rule was shown."""
    detector: Any = of.detectors["on_humidity"]
    return list(detector.steps)


def test_a_rule_sleeps_until_its_signal_comes_and_stays_awake() -> None:
    """What comes before concerns it as little as what no one reports."""
    watched = panel(OnHumidity())
    for observation in (seen(0), seen(1), seen(2, gpu_temperature_celsius=60.0)):
        watched.findings(observation)
    watched.findings(seen(3))
    assert steps(watched) == [2, 3]


def test_a_restored_rule_is_awake_if_it_had_seen_anything() -> None:
    """A restart equals no restart."""
    first = panel(OnHumidity())
    first.findings(seen(2, gpu_temperature_celsius=60.0))
    second = panel(OnHumidity())
    assert second.restore(first.state()) is None
    second.findings(seen(3))
    assert steps(second) == [2, 3]


def test_a_restored_rule_that_had_seen_nothing_sleeps_on() -> None:
    """Also where its state was stored nevertheless: it is that of the start."""
    for stored in (panel(OnHumidity()).state(), {"on_humidity": [[]]}):
        second = panel(OnHumidity())
        assert second.restore(stored) is None
        second.findings(seen(3))
        assert steps(second) == []


def test_a_rule_that_cannot_start_anew_is_off_and_raises_nothing() -> None:
    """Its first start went well; the next machine's does not."""
    started: list[int] = []

    class _Once(_Shown):
        __slots__ = ()
        machine_bound: ClassVar[bool] = True

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Once(OnHumidity):
        def start(self, context: Context) -> Detector:
            started.append(1)
            if len(started) > 1:
                raise RuntimeError
            return _Once(self, context)

    watched = panel(Once())
    watched.change_machine()
    assert watched.detectors == {}
    assert watched.findings(seen(1, gpu_temperature_celsius=60.0)) == []


def test_only_what_has_seen_something_is_stored() -> None:
    """Most trainings report no telemetry: its rules would fill every state."""
    watched = panel(OnHumidity())
    assert watched.state() == {}
    watched.findings(seen(1, gpu_temperature_celsius=60.0))
    assert watched.state() == {"on_humidity": [[1]]}


def test_a_new_machine_starts_a_rule_anew_and_it_is_still_shown_all() -> None:
    """Its signals came before, and may come again at any report."""

    class _Bound(_Shown):
        __slots__ = ()
        machine_bound: ClassVar[bool] = True

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Bound(OnHumidity):
        def start(self, context: Context) -> Detector:
            return _Bound(self, context)

    watched = panel(Bound())
    watched.findings(seen(2, gpu_temperature_celsius=60.0))
    watched.change_machine()
    watched.findings(seen(3))
    assert steps(watched) == [3]


def test_rules_of_mixed_precision_are_not_named_as_inactive() -> None:
    """Most trainings scale no gradients: a word about it would be noise."""
    monitor = Monitor(Policy.default("loss", "min"))
    for step in range(12):
        monitor.observe(step, {"loss": 1.0 / (step + 1)})
    assert not any("amp_scale" in m for m in monitor.notices.messages.values())


@pytest.mark.parametrize("rule", [r for r in DEFAULT if r.needs], ids=lambda r: r.id)
def test_a_default_rule_that_sleeps_would_have_done_nothing(rule: Rule) -> None:
    """Sleep saves time and changes nothing."""
    detector = rule.start(Context(metric="loss", mode="min"))
    start = detector.state()
    others = {"loss": 3.0, "lr": 0.1, "time_s": 1.0}
    for name in rule.needs:
        others.pop(name, None)
    for step in range(50):
        assert detector.update(seen(step, **others)) is None
    assert detector.state() == start
