"""One sweep of classes: their checkpoints, their own ends, and resumed actors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ray.support import CountTo, by_fate, reason, rows_of, stored
from tune_guard import Policy
from tune_guard.policy import DEFAULT

FATES = ["nan", "done", "done_on_nan", "counted", "counted_after_retry"]


@pytest.fixture(scope="module")
def results(sweep: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the sweep once, with a checkpoint at every second iteration."""
    from ray import tune

    from tune_guard.ray import GuardCallback, GuardStopper

    class Train(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            self.fate = config["fate"]
            self.marker = Path(config["marks"]) / self.fate

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self.setup(new_config)
            return True

        def step(self) -> dict[str, Any]:
            step = self.iteration + 1
            fails = self.fate == "counted_after_retry" and step == 6
            if fails and not self.marker.exists():
                self.marker.touch()
                msg = "once only"
                raise RuntimeError(msg)
            sick = self.fate == "nan" and step == 3
            sick |= self.fate == "done_on_nan" and step == 5
            done = self.fate.startswith("done") and step == 5
            return {"loss": math.nan if sick else 1 / step, "done": done}

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            (Path(checkpoint_dir) / "step").write_text(str(self.iteration))

        def load_checkpoint(self, checkpoint_dir: str) -> None:
            assert (Path(checkpoint_dir) / "step").exists()

    policy = Policy.default("loss", "min", rules=(*DEFAULT, CountTo(n=8)))
    marks = str(tmp_path_factory.mktemp("marks"))
    grid = sweep(
        Train,
        [],
        space={"fate": tune.grid_search(FATES), "marks": marks},
        stop=GuardStopper(policy),
        callbacks=[GuardCallback(policy)],
        failure_config=tune.FailureConfig(max_failures=1),
        checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=2),
    )
    return by_fate(grid)


@pytest.mark.parametrize(
    ("fate", "outcome", "why", "step"),
    [
        ("nan", "guard", "non_finite", 3),
        ("done", "completed", "", -1),
        ("done_on_nan", "completed", "", -1),
        ("counted", "guard", "count_to", 8),
        ("counted_after_retry", "guard", "count_to", 8),
    ],
)
def test_every_end_has_its_reason(
    results: dict[str, Any], fate: str, outcome: str, why: str, step: int
) -> None:
    """Also at the same step with and without a retry from a checkpoint."""
    assert reason(results[fate]) == (outcome, why)
    assert results[fate].metrics["tune_guard/step"] == step


def test_a_trial_that_ends_itself_is_not_cut(results: dict[str, Any]) -> None:
    """A NaN in its very last row is a warning: there is nothing left to save."""
    last = rows_of(results["done_on_nan"])[-1]
    assert (last["tune_guard/status"], last["tune_guard/reason"]) == ("warned", "")
    detail = stored(results["done_on_nan"])["tune_guard/detail"]
    assert detail["warnings"] == ["non_finite@5"]


def test_the_retry_really_rewound(results: dict[str, Any]) -> None:
    """The rows after the failure start again after the checkpoint."""
    rows = rows_of(results["counted_after_retry"])
    steps = [row["training_iteration"] for row in rows]
    assert steps == [1, 2, 3, 4, 5, 5, 6, 7, 8]
    assert stored(results["counted_after_retry"])["tune_guard/detail"]["attempt"] == 2


def test_a_trial_that_ends_itself_says_so_in_its_last_row(
    results: dict[str, Any],
) -> None:
    """result.json of a class has the end; the one of a function cannot."""
    last = rows_of(results["done"])[-1]
    assert (last["tune_guard/status"], last["tune_guard/reason"]) == ("healthy", "")
    assert '"outcome": "completed"' in last["tune_guard/detail"]
