from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.property.strategies import (
    RULES,
    any_float,
    curves,
    cut_step,
    found_by,
    monitor_of,
    phased_curves,
    rough_curves,
    shown,
)
from tests.streams import NAN, eventful
from tune_guard.rules import (
    Divergence,
    NonFinite,
    NoProgress,
    Plateau,
    Relapse,
    SlowStep,
)
from tune_guard.rules.base import Rule
from tune_guard.verdict import Tier

every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def numbered(rules: list[Rule]) -> list[str]:
    """Return names that are the same in every process that runs the tests."""
    return [f"{rule.id}-{number}" for number, rule in enumerate(rules)]


SIGNED = [
    RULES["plateau"],
    Plateau(patience=3, holds=()),
    *map(RULES.get, ("relapse", "no_progress")),
]
MUTED = [rule for rule in RULES.values() if rule.tier is not Tier.FATAL]


# ---------------------------------------------------------------- state, scale


@every_rule
@settings(max_examples=15)
@given(seed=st.integers(0, 1000), restarts=st.sets(st.integers(0, 199), max_size=6))
def test_restarts_at_any_steps_change_nothing(
    rule: Rule, seed: int, restarts: set[int]
) -> None:
    """A state that was stored and taken up again decides as if nothing had been."""
    rows = eventful(seed, length=200)
    expected = found_by(monitor_of(rule, budget_steps=200), rows)
    monitor, got = monitor_of(rule, budget_steps=200), []
    for step, row in enumerate(rows):
        if step in restarts:
            stored = json.dumps(monitor.state(), allow_nan=False)
            monitor = monitor_of(rule, budget_steps=200)
            monitor.restore(json.loads(stored))
        got += monitor.observe(step, row).findings
    assert repr(got) == repr(expected)


SCALE_FREE = [
    *(RULES[name] for name in ("divergence", "no_progress", "relapse", "plateau")),
    RULES["gradient_explosion"],
    RULES["slow_step"],
    Plateau(patience=3, holds=()),
    Plateau(patience=3, min_delta=0.125, min_delta_mode="relative", holds=()),
    Divergence(holds=(), consecutive=1),
]


@pytest.mark.parametrize("rule", SCALE_FREE, ids=numbered(SCALE_FREE))
@settings(max_examples=30)
@given(
    curve=phased_curves(),
    power=st.integers(-30, 30),
    mode=st.sampled_from(["min", "max"]),
)
def test_the_unit_of_the_numbers_does_not_matter(
    rule: Rule, curve: list[float], power: int, mode: str
) -> None:
    """Twice the loss, the norm and the step time is the same training."""

    def rows(factor: float) -> list[dict[str, Any]]:
        keys = ("score", "grad_norm", "step_time_s")
        return [dict.fromkeys(keys, factor * value) for value in curve]

    fields = {"mode": mode, "budget_steps": len(curve)}
    one = found_by(monitor_of(rule, **fields), rows(1.0))
    other = found_by(monitor_of(rule, **fields), rows(2.0**power))
    assert shown(other) == shown(one)


@pytest.mark.parametrize("rule", SIGNED, ids=numbered(SIGNED))
@settings(max_examples=30)
@given(curve=phased_curves() | curves)
def test_minimising_a_metric_is_maximising_its_negative(
    rule: Rule, curve: list[float]
) -> None:
    """No rule on the metric favours one direction."""
    fields = {"budget_steps": len(curve)}
    down = found_by(monitor_of(rule, **fields), [{"score": x} for x in curve])
    up = monitor_of(rule, mode="max", **fields)
    assert shown(found_by(up, [{"score": -x} for x in curve])) == shown(down)


# ------------------------------------------------------------------ never raises


@every_rule
@settings(max_examples=40)
@given(data=st.data(), curve=rough_curves, mode=st.sampled_from(["min", "max"]))
def test_any_numbers_are_judged_without_an_error(
    rule: Rule, data: st.DataObject, curve: list[float], mode: str
) -> None:
    """NaN, infinities, the largest and the smallest floats, in any signal."""
    keys = data.draw(
        st.lists(st.sampled_from(["loss", "lr", "grad_norm"]), unique=True)
    )
    rows = [{"score": x, **dict.fromkeys(keys, x)} for x in curve]
    extra = data.draw(
        st.sampled_from(["gpu_reasons", "gpu_xid", "time_s", "step_time_s"])
    )
    rows = [{**row, extra: data.draw(any_float)} for row in rows]
    for found in found_by(monitor_of(rule, mode=mode, budget_steps=50), rows):
        assert found.message


# ---------------------------------------------------------------------- the order


@settings(max_examples=100)
@given(
    steps=st.lists(st.integers(1, 80), min_size=1, max_size=150),
    start=st.integers(-500, 500),
    mode=st.sampled_from(["min", "max"]),
)
@example(steps=[1] * 150, start=0, mode="min")
@pytest.mark.parametrize(
    "rule",
    [
        Plateau(patience=1, holds=()),
        RULES["plateau"],
        Divergence(holds=(), consecutive=1),
        Relapse(holds=()),
        RULES["relapse"],
    ],
    ids=["strict-plateau", "plateau", "divergence", "strict-relapse", "relapse"],
)
def test_a_curve_that_only_improves_is_never_cut(
    rule: Rule, steps: list[int], start: int, mode: str
) -> None:
    """However slowly, and whatever the sign of its values."""
    sign, level, curve = (1 if mode == "max" else -1), start / 8, []
    for step in steps:
        level += sign * step / 8
        curve.append(level)
    assert cut_step(rule, curve, mode=mode, budget_steps=len(curve)) == math.inf


@settings(max_examples=60)
@given(
    gains=st.lists(st.integers(1, 30), min_size=12, max_size=150),
    mode=st.sampled_from(["min", "max"]),
)
def test_a_curve_that_gains_one_percent_each_time_makes_progress(
    gains: list[int], mode: str
) -> None:
    """Whatever the rule on no progress calls standing still, this is not."""
    level, curve = 100.0, []
    for gain in gains:
        level *= 1 + gain / 100 if mode == "max" else 1 - gain / 100
        curve.append(level)
    rule = NoProgress(holds=())
    assert cut_step(rule, curve, mode=mode, budget_steps=len(curve)) == math.inf


@settings(max_examples=60)
@given(curve=curves, patience=st.integers(1, 8), more=st.integers(1, 8))
def test_more_patience_never_cuts_earlier(
    curve: list[float], patience: int, more: int
) -> None:
    """The parameter means what it says."""
    strict, lenient = (
        Plateau(patience=p, holds=()) for p in (patience, patience + more)
    )
    assert cut_step(lenient, curve) >= cut_step(strict, curve)


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        (Divergence(holds=(), start_ratio=0.0, min_history=1), "score"),
        (SlowStep(min_history=1), "step_time_s"),
        (NonFinite(metrics=("score",)), "score"),
    ],
    ids=["divergence", "slow_step", "non_finite"],
)
@settings(max_examples=50)
@given(data=st.data(), fewer=st.integers(1, 5), more=st.integers(1, 5))
def test_a_longer_run_never_fires_earlier(
    rule: Any, key: str, data: st.DataObject, fewer: int, more: int
) -> None:
    """`consecutive` is how long a symptom must last."""
    values = st.sampled_from([1.0, 1.0, 1.5, 20.0, NAN])
    curve = data.draw(st.lists(values, max_size=60))

    def first(consecutive: int) -> float:
        monitor = monitor_of(replace(rule, consecutive=consecutive))
        found = found_by(monitor, [{key: value} for value in curve])
        return found[0].step if found else math.inf

    assert first(fewer + more) >= first(fewer)


@settings(max_examples=60)
@given(curve=curves, patience=st.integers(1, 6), warmup=st.integers(0, 40))
def test_a_warm_up_never_makes_a_plateau_cut_earlier(
    curve: list[float], patience: int, warmup: int
) -> None:
    """Nor may it cut before patience has passed since the first judged step."""
    rule = Plateau(patience=patience, holds=())
    warmed = cut_step(rule, curve, warmup_steps=warmup)
    assert warmed >= cut_step(rule, curve)
    assert warmed >= warmup + patience


# ----------------------------------------------------------------- warm-up, holes


@pytest.mark.parametrize("rule", MUTED, ids=lambda rule: rule.id)
@settings(max_examples=15)
@given(seed=st.integers(0, 1000), warmup=st.integers(1, 250))
def test_nothing_but_fatal_rules_cuts_below_the_warm_up(
    rule: Rule, seed: int, warmup: int
) -> None:
    """The step equal to it is the first that may be cut."""
    monitor = monitor_of(rule, actions={}, warmup_steps=warmup, budget_steps=300)
    for step, row in enumerate(eventful(seed, length=300)):
        if monitor.observe(step, row).stop:
            assert step >= warmup
            break


@settings(max_examples=80)
@given(
    curve=curves,
    holes=st.lists(st.integers(0, 120), max_size=30),
    patience=st.integers(1, 5),
)
def test_nan_never_changes_the_count_of_a_plateau(
    curve: list[float], holes: list[int], patience: int
) -> None:
    """NaN put in anywhere is no observation: it neither counts nor resets."""
    rule = Plateau(patience=patience, holds=())
    whole = found_by(monitor_of(rule), [{"score": x} for x in curve])
    holed: list[float] = list(curve)
    for at in holes:
        holed.insert(min(at, len(holed)), NAN)
    found = found_by(monitor_of(rule), [{"score": x} for x in holed])
    finite = [step for step, value in enumerate(holed) if math.isfinite(value)]
    assert [f.step for f in found] == [finite[f.step] for f in whole]


@every_rule
@settings(max_examples=15)
@given(
    seed=st.integers(0, 500), offset=st.integers(0, 10**6), stride=st.integers(1, 1000)
)
def test_only_warm_up_and_budget_know_the_size_of_a_step(
    rule: Rule, seed: int, offset: int, stride: int
) -> None:
    """Counting in epochs or in samples finds the same readings."""
    rows = eventful(seed, length=120)
    plain, strided = monitor_of(rule), monitor_of(rule)
    for i, row in enumerate(rows):
        one = plain.observe(i, row).findings
        other = strided.observe(offset + stride * i, row).findings
        assert [(f.rule, f.holds) for f in one] == [(f.rule, f.holds) for f in other]
