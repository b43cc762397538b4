"""What every rule promises, held for each that is registered."""

from __future__ import annotations

import copy
import dataclasses
import doctest
import importlib
import inspect
import json
import math
import pickle
import typing
from typing import Any

import pytest

from tests.streams import eventful
from tune_guard import ConfigError, Monitor, Policy
from tune_guard.rules.base import Rule
from tune_guard.rules.holds import Hold
from tune_guard.rules.registry import builtin_rules
from tune_guard.verdict import Blame, Finding, Tier

KINDS = builtin_rules()
NEEDED: dict[str, dict[str, Any]] = {"lr_floor": {"target": 0.1}}
"""Parameters without which a rule cannot be made."""

OTHER_VALUES: dict[str, Any] = {
    "min_delta_mode": "relative",
    "metric": "eval/score",
    "metrics": ("loss", "eval/score"),
    "mode": "max",
    "holds": (),
    "xids": (79,),
}
"""Values that differ from the default, of parameters that are no numbers."""

NOT_FROM_ONE_STREAM = frozenset({"behind", "stalled"})
"""Rules that look at other trials, or at a trial that is silent."""

DESIGN = {
    "behind": ("Behind", Tier.PROGRESS, Blame.CONFIG),
    "stalled": ("Stalled", Tier.FATAL, Blame.INFRASTRUCTURE),
    "amp_scale_collapse": ("AmpScaleCollapse", Tier.FATAL, Blame.CONFIG),
    "divergence": ("Divergence", Tier.STABILITY, Blame.CONFIG),
    "gpu_fault": ("GpuFault", Tier.FATAL, Blame.INFRASTRUCTURE),
    "gradient_explosion": ("GradientExplosion", Tier.STABILITY, Blame.CONFIG),
    "lr_floor": ("LearningRateFloor", Tier.PROGRESS, Blame.CONFIG),
    "no_progress": ("NoProgress", Tier.PROGRESS, Blame.CONFIG),
    "non_finite": ("NonFinite", Tier.FATAL, Blame.CONFIG),
    "plateau": ("Plateau", Tier.PROGRESS, Blame.CONFIG),
    "relapse": ("Relapse", Tier.PROGRESS, Blame.CONFIG),
    "slow_step": ("SlowStep", Tier.FATAL, Blame.INFRASTRUCTURE),
    "thermal_throttle": ("ThermalThrottle", Tier.FATAL, Blame.INFRASTRUCTURE),
}


def make(rule_id: str, **params: Any) -> Rule:
    """Return a rule with its default parameters, but for ``params``."""
    return KINDS[rule_id](**{**NEEDED.get(rule_id, {}), **params})


def monitor_of(*rules: Rule, **fields: Any) -> Monitor:
    """Return a monitor under rules that may only warn, so that it goes on."""
    policy = {"metric": "score", "mode": "min", "actions": {"*": "warn"}, **fields}
    return Monitor(Policy(rules=rules, **policy))


def findings(rule: Rule, *, seed: int, **fields: Any) -> list[Finding]:
    """Return everything that a rule finds in an eventful stream."""
    monitor = monitor_of(rule, **fields)
    verdicts = [monitor.observe(i, r) for i, r in enumerate(eventful(seed))]
    return [found for verdict in verdicts for found in verdict.findings]


PARAMETERS = [
    pytest.param(rule_id, field, id=f"{rule_id}.{field.name}")
    for rule_id, kind in KINDS.items()
    for field in dataclasses.fields(kind)
]

every_rule = pytest.mark.parametrize("rule_id", KINDS)
every_parameter = pytest.mark.parametrize(("rule_id", "field"), PARAMETERS)


# ------------------------------------------------------------------- declaration


@every_rule
def test_class_tier_and_blame_are_those_of_the_design(rule_id: str) -> None:
    """They are public: stored reasons and search algorithms depend on them."""
    kind = KINDS[rule_id]
    assert (kind.__name__, kind.tier, kind.blame) == DESIGN[rule_id]


@every_rule
def test_a_rule_is_frozen_keyword_only_and_slotted(rule_id: str) -> None:
    """It is shared by all trials of a sweep and of all its threads."""
    rule = make(rule_id)
    name = dataclasses.fields(rule)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(rule, name, 1)
    with pytest.raises(TypeError):
        KINDS[rule_id](1)  # type: ignore[call-arg]
    assert not hasattr(rule, "__dict__")


@every_rule
def test_rules_are_equal_by_value_hashable_and_picklable(rule_id: str) -> None:
    """They are compared, kept in sets and sent to workers."""
    rule = make(rule_id)
    assert rule == make(rule_id)
    assert len({rule, make(rule_id)}) == 1
    assert pickle.loads(pickle.dumps(rule)) == rule  # noqa: S301 - our own
    assert copy.deepcopy(rule) == rule


@every_rule
def test_the_docstring_says_what_it_takes_and_shows_it(rule_id: str) -> None:
    """Every parameter under Args, errors under Raises, a source, an example."""
    doc = inspect.cleandoc(KINDS[rule_id].__doc__ or "")
    arguments = doc.partition("Args:")[2].partition("Raises:")[0]
    for field in dataclasses.fields(KINDS[rule_id]):
        assert f"\n    {field.name}: " in arguments, field.name
    assert "ConfigError" in doc.partition("Raises:")[2]
    assert ">>> " in doc.partition("Example:")[2]


@every_rule
def test_the_docstrings_example_runs(rule_id: str) -> None:
    """What is shown is true."""
    module = importlib.import_module(KINDS[rule_id].__module__)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


# -------------------------------------------------------------------- parameters


def wrong_values(rule_id: str, field: dataclasses.Field[Any]) -> list[Any]:
    """Return values that the type of a parameter rules out."""
    hint = typing.get_type_hints(KINDS[rule_id])[field.name]
    kinds = set(typing.get_args(hint)) or {hint}
    wrong: list[Any] = ["nonsense", math.nan, [1, 2], object(), {}]
    if type(None) not in kinds:
        wrong.append(None)
    if kinds & {int, float}:
        wrong += [True, -math.inf]
        wrong += [] if field.name == "target" else [-1, math.inf]
        wrong += [1.5] if float not in kinds else []
    if field.name == "metric":
        wrong = [5, "", ["a"], math.nan]
    if field.name in {"metrics", "xids"}:
        wrong = [5, True, [None], "nonsense", [math.nan], object()]
    return wrong


@every_parameter
def test_a_wrong_value_is_refused_by_name(
    rule_id: str, field: dataclasses.Field[Any]
) -> None:
    """At construction, as a ConfigError that names the rule and the parameter."""
    for value in wrong_values(rule_id, field):
        with pytest.raises(ConfigError) as caught:
            make(rule_id, **{field.name: value})
        message = str(caught.value)
        assert message.startswith(f"{rule_id}: `{field.name}` must be "), value
        assert "but got" in message


@every_parameter
def test_a_parameter_survives_a_policy_file(
    rule_id: str, field: dataclasses.Field[Any]
) -> None:
    """With another value than its default, read back equal and of the same type."""
    default = getattr(make(rule_id), field.name)
    other = OTHER_VALUES.get(field.name)
    if other is None:
        whole = "int" in str(field.type) and "float" not in str(field.type)
        other = (default or 1) + 1 if whole else (default or 1.0) * 1.5
    rule = make(rule_id, **_fitting(rule_id, field.name, other))
    policy = Policy(metric="score", mode="min", rules=(rule,))
    back = Policy.from_yaml(policy.to_yaml())
    assert back == policy
    assert repr(back) == repr(policy)


def _fitting(rule_id: str, name: str, value: Any) -> dict[str, Any]:
    """Return a parameter with what must change together with it."""
    params = {name: value}
    if name == "min_history" and "window" in KINDS[rule_id].__dataclass_fields__:
        params["window"] = max(value, make(rule_id).window)  # type: ignore[attr-defined]
    return params


@every_rule
def test_its_holds_survive_a_policy_file_one_by_one(rule_id: str) -> None:
    """Each of them alone, and with another parameter."""
    holds: tuple[Hold, ...] = getattr(make(rule_id), "holds", ())
    for hold in holds:
        for field in dataclasses.fields(hold):
            value = getattr(hold, field.name)
            other = value + 1 if isinstance(value, int) else value * 1.5
            changed = dataclasses.replace(hold, **{field.name: other})
            rule = make(rule_id, holds=(hold, changed))
            policy = Policy(metric="score", mode="min", rules=(rule,))
            assert Policy.from_yaml(policy.to_yaml()) == policy


# ---------------------------------------------------------------------- judgement


@every_rule
@pytest.mark.parametrize("seed", range(2))
def test_a_restart_at_any_step_changes_nothing(rule_id: str, seed: int) -> None:
    """State stored as strict JSON and taken up anew gives the same findings."""
    reports = eventful(seed, length=250)
    rule = make(rule_id)
    straight = monitor_of(rule)
    undisturbed = [repr(straight.observe(i, r)) for i, r in enumerate(reports)]
    monitor = monitor_of(rule)
    restarted = []
    for i, report in enumerate(reports):
        stored = json.dumps(monitor.state(), allow_nan=False)
        monitor = monitor_of(rule)
        monitor.restore(json.loads(stored))
        restarted.append(repr(monitor.observe(i, report)))
    assert restarted == undisturbed
    assert monitor.state() == straight.state()
    assert "state" not in monitor.notices.messages


@every_rule
def test_reports_are_not_changed(rule_id: str) -> None:
    """They are the user's."""
    reports = eventful(1)
    before = copy.deepcopy(reports)
    monitor = monitor_of(make(rule_id))
    for i, report in enumerate(reports):
        monitor.observe(i, report)
    assert repr(reports) == repr(before)


@every_rule
def test_two_trials_do_not_share_state(rule_id: str) -> None:
    """What one trial saw says nothing about the other."""
    rule, reports, others = make(rule_id), eventful(2), eventful(3)
    alone, first, second = (monitor_of(rule) for _ in range(3))
    expected = [repr(alone.observe(i, r)) for i, r in enumerate(reports)]
    got = []
    for i, report in enumerate(reports):
        first.observe(i, others[i])
        got.append(repr(second.observe(i, report)))
    assert got == expected


@every_rule
def test_its_findings_are_whole_and_its_own(rule_id: str) -> None:
    """Id, step, tier and blame; numbers; a sentence that ends; a key that was read."""
    rule = make(rule_id)
    for seed in range(3):
        for found in findings(rule, seed=seed, budget_steps=400):
            assert (found.rule, found.tier, found.blame) == (
                rule_id,
                rule.tier,
                rule.blame,
            )
            assert type(found.value) is float
            assert found.threshold is None or math.isfinite(found.threshold)
            assert found.metric
            assert str(found.step) in found.message
            assert found.message.endswith((".", ")"))
            assert len(found.message) < 400


@pytest.mark.parametrize("rule_id", sorted(KINDS.keys() - NOT_FROM_ONE_STREAM))
def test_the_plain_rule_fires_somewhere_in_an_eventful_stream(rule_id: str) -> None:
    """A rule that never fires would pass every test above."""
    params: dict[str, Any] = {}
    if hasattr(make(rule_id), "holds"):
        params["holds"] = ()
    rule = make(rule_id, **params)
    found = [
        f for seed in range(12) for f in findings(rule, seed=seed, budget_steps=400)
    ]
    assert found


@every_rule
def test_reports_of_nothing_are_no_symptom(rule_id: str) -> None:
    """Unknown is neither healthy nor unhealthy."""
    monitor = monitor_of(make(rule_id))
    assert not any(monitor.observe(i, {}).findings for i in range(200))


@every_rule
def test_a_rule_of_another_state_is_refused(rule_id: str) -> None:
    """A state of too few, too many, or other values starts anew and does not raise."""
    saved = monitor_of(make(rule_id))
    for i, report in enumerate(eventful(0)[:50]):
        saved.observe(i, report)
    whole = saved.state()
    stored = whole["rules"][rule_id]
    for wrong in ([], [*stored, 1], stored[:-1], ["x"] * len(stored), None, {}):
        monitor = monitor_of(make(rule_id))
        monitor.restore({**whole, "rules": {rule_id: wrong}})
        for i, report in enumerate(eventful(0)[50:], start=50):
            monitor.observe(i, report)
        assert f"rule:{rule_id}" not in monitor.notices.messages, wrong
