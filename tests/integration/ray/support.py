"""What the tests of this folder share: a policy, a rule that counts, and readers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tune_guard import Blame, Observation, Policy, Tier
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Finding

POLICY = Policy.default("loss", "min")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTo(Rule):
    """Cut at the n-th observation: exact only if none is lost or counted twice."""

    id: ClassVar[str] = "count_to"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.CONFIG
    n: int = 8

    def start(self, context: Context) -> Detector:
        """Return a detector that has counted nothing."""
        return Counter(self, context)


class Counter(Detector):
    """Counts what it is shown."""

    __slots__ = ("seen",)

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.seen = 0

    def update(self, observation: Observation) -> Finding | None:
        """Count one more."""
        self.seen += 1
        if self.seen < self.rule.n:
            return None
        return self.finding(
            observation,
            metric="loss",
            value=self.seen,
            threshold=self.rule.n,
            message=f"{self.seen} observations.",
        )


def by_fate(grid: Any) -> dict[Any, Any]:
    """Return the results of a grid by their fate, which Ray puts into the path."""
    return {re.search(r"fate=(\w+?)_20", result.path)[1]: result for result in grid}


def rows_of(result: Any) -> list[dict[str, Any]]:
    """Return the rows of a trial's result.json."""
    lines = (Path(result.path) / "result.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def stored(result: Any) -> dict[str, Any]:
    """Return a trial's tune_guard.json."""
    text = (Path(result.path) / "tune_guard.json").read_text()
    content: dict[str, Any] = json.loads(text)
    return content


def reason(result: Any) -> tuple[str, str]:
    """Return outcome and reason of a trial, the same in its file and its metrics."""
    content = stored(result)
    row = result.metrics
    outcome = content["tune_guard/detail"]["outcome"]
    assert json.loads(row["tune_guard/detail"])["outcome"] == outcome
    assert row["tune_guard/reason"] == content["tune_guard/reason"]
    return outcome, row["tune_guard/reason"]


def takes_over_at_4() -> Any:
    """Return PBT under which the worse of two trials takes over at iteration 4."""
    from ray.tune.schedulers import PopulationBasedTraining

    return PopulationBasedTraining(
        time_attr="training_iteration",
        perturbation_interval=4,
        hyperparam_mutations={"lr": [0.1, 0.2]},
        quantile_fraction=0.5,
        resample_probability=1.0,
        synch=True,
    )
