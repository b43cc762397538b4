"""A stored bundle leads to the same verdict again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.unit.evidence.support import RULES, long_stream, only, store, watched
from tune_guard import Blame, Finding, Observation, Policy, Tier
from tune_guard.evidence.again import Again, judge_again
from tune_guard.evidence.parts import OBSERVATIONS, RECORD
from tune_guard.evidence.parts import RULES as RULES_FILE
from tune_guard.evidence.reader import find_bundle
from tune_guard.rules import Plateau
from tune_guard.rules.base import Context, Detector, Rule

CUTS = [
    (rule.id, seed)
    for rule in RULES
    for seed in range(3)
    if rule.id != "relapse"  # this stream never relapses under these rules
]


def again(folder: Path) -> Again:
    """Judge the bundle in a folder again."""
    return judge_again(find_bundle(str(folder)))


def change(folder: Path, file: str, how: Callable[[Any], None]) -> None:
    """Change a JSON file of a bundle."""
    content = json.loads((folder / file).read_text())
    how(content)
    (folder / file).write_text(json.dumps(content))


@pytest.mark.parametrize(("rule", "seed"), CUTS)
def test_every_rule_decides_the_same_again(
    tmp_path: Path, rule: str, seed: int
) -> None:
    """Same rule, same step, same numbers, same sentence; the window is full or not."""
    monitor = watched(only(rule), long_stream(seed))
    store(monitor, tmp_path)
    found = again(tmp_path)
    if not monitor.verdict.stop:
        pytest.skip("this stream does not trip it")
    assert (found.same, found.why_not) == (True, "")
    assert found.verdict.reason == rule
    assert found.verdict.step == monitor.verdict.step
    assert found.verdict.message == monitor.verdict.message


def test_a_cut_long_after_the_window_began_is_the_same(tmp_path: Path) -> None:
    """Patience that ran out over a thousand reports is in the stored state."""
    policy = Policy("loss", "min", rules=(Plateau(patience=1000, holds=()),))
    monitor = watched(policy, [{"loss": 1.0 + i % 2} for i in range(1200)])
    store(monitor, tmp_path)
    found = again(tmp_path)
    assert (found.verdict.reason, found.verdict.step) == ("plateau", 1000)
    assert found.same
    assert found.trace is not None
    assert found.trace.count < 700


def test_a_changed_observation_is_noticed(tmp_path: Path) -> None:
    """With a better value among the stored ones there is no plateau."""
    policy = Policy.default("loss", "min", patience=5)
    monitor = watched(policy, [{"loss": 1.0}] * 20)
    store(monitor, tmp_path)
    text = (tmp_path / OBSERVATIONS).read_text()
    (tmp_path / OBSERVATIONS).write_text(text.replace("1.0", "0.5", 2))
    found = again(tmp_path)
    assert not found.same


def test_another_step_is_named(tmp_path: Path) -> None:
    """The record's step is held against the one of now."""
    store(watched(Policy.default("loss", "min"), [{"loss": float("nan")}]), tmp_path)
    change(tmp_path, RECORD, lambda c: c.update({"tune_guard/step": 5}))
    found = again(tmp_path)
    assert not found.same
    assert (
        found.why_not
        == "Now it is `non_finite` at step 0, stored is `non_finite` at step 5."
    )


def test_another_number_is_named(tmp_path: Path) -> None:
    """Value and threshold of the stored finding are compared, too."""
    store(watched(only("divergence"), long_stream(0)), tmp_path)
    change(tmp_path, RULES_FILE, lambda c: c["findings"][0].update(threshold=-1.0))
    assert "The numbers differ" in again(tmp_path).why_not


@pytest.mark.parametrize("file", [RECORD, RULES_FILE])
def test_a_file_that_is_missing_is_named(tmp_path: Path, file: str) -> None:
    """What is left is still read."""
    store(watched(Policy.default("loss", "min"), [{"loss": float("nan")}]), tmp_path)
    (tmp_path / file).unlink()
    found = again(tmp_path)
    assert (found.trace, found.why_not) == (None, f"{file} is missing or damaged.")


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: s.update(policy="metric: [broken"),
        lambda s: s.update(policy=5),
        lambda s: s["before"].update(version=99),
        lambda s: s["before"].update(curve="x"),
        lambda s: s.update(before=None),
        lambda s: s.update(names=[1]),
    ],
    ids=["yaml", "policy", "version", "curve", "no state", "names"],
)
def test_damaged_rules_never_raise(tmp_path: Path, damage: Any) -> None:
    """They are named as what cannot run; odd names are ignored."""
    store(watched(Policy.default("loss", "min"), [{"loss": float("nan")}]), tmp_path)
    change(tmp_path, RULES_FILE, lambda c: damage(c["streams"]["reports"]))
    found = again(tmp_path)
    assert found.same or "cannot run" in found.why_not


@dataclass(frozen=True, slots=True, kw_only=True)
class _Foreign(Rule):
    """A rule of another package, which is not installed where it is explained."""

    id: ClassVar[str] = "foreign"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.CONFIG

    def start(self, context: Context) -> Detector:
        """Return a detector that stops at once."""
        return _AtOnce(self, context)


class _AtOnce(Detector):
    __slots__ = ()

    def update(self, observation: Observation) -> Finding | None:
        return self.finding(
            observation, metric="loss", value=1.0, threshold=None, message="At once."
        )


def test_a_rule_that_is_not_installed_is_named(tmp_path: Path) -> None:
    """Its record and numbers are there all the same."""
    policy = Policy("loss", "min", rules=(_Foreign(),))
    store(watched(policy, [{"loss": 1.0}]), tmp_path)
    found = again(tmp_path)
    assert found.record is not None
    assert found.record.reason == "foreign"
    assert "No rule has the id 'foreign'" in found.why_not


def test_a_verdict_from_outside_is_not_judged_again(tmp_path: Path) -> None:
    """Such as out of memory, or another rank's: no stored number led to it."""
    store(watched(Policy.default("loss", "min"), [{"loss": float("nan")}]), tmp_path)
    change(tmp_path, RECORD, lambda c: c.update({"tune_guard/reason": "cuda_oom"}))
    found = again(tmp_path)
    assert found.trace is None
    assert "`cuda_oom` came from outside the rules" in found.why_not
