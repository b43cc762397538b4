"""A shadow and a holdout in real studies, and what their storage says afterwards."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from tune_guard import Policy, load_sweep
from tune_guard.optuna import GuardPruner
from tune_guard.rules import NonFinite, Plateau
from tune_guard.sweeps.compare import Comparison, compare

RULES = (NonFinite(), Plateau(patience=2, holds=()))
STEPS = 8


def run(storage: str, policy: Policy, lasts: list[float]) -> None:
    """Run trials that stand still, each with a value at its last step.

    The study is opened anew for every trial, as by workers that come and go.
    """
    for last in lasts:
        study = optuna.create_study(
            storage=storage,
            study_name="spared",
            load_if_exists=True,
            pruner=GuardPruner(policy=policy),
        )

        def objective(trial: optuna.Trial, last: float = last) -> float:
            for step in range(1, STEPS + 1):
                trial.report(last if step == STEPS else 1.0, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return last

        study.optimize(objective, n_trials=1)


def compared(storage: str) -> Comparison:
    """Return the comparison of what the storage holds."""
    return compare(load_sweep(storage).with_objective("value", "min"))


@pytest.fixture
def storage(tmp_path: Path) -> str:
    """Address of an empty SQLite file."""
    return f"sqlite:///{tmp_path / 'study.db'}"


def test_a_shadow_cuts_nothing_and_tells_what_it_would_have_cut(storage: str) -> None:
    """Four trials stand still at step 3; the best of them came back at step 8."""
    policy = Policy("value", "min", rules=RULES, actions={"*": "warn"})
    run(storage, policy, [0.1, 2.0, 3.0, 4.0])
    found = compared(storage).spared

    assert found is not None
    assert (found.trials, found.by) == (4, {"action": 4})
    assert (found.rules, found.false_kills) == ({"plateau": (4, 1)}, 1)


def test_a_holdout_spares_the_same_trials_in_every_process(storage: str) -> None:
    """It hangs on the trial's number; the others are cut."""
    run(storage, Policy("value", "min", rules=RULES, holdout=0.5), [2.0] * 8)
    found = compared(storage)

    assert found.spared is not None
    assert 0 < found.spared.by["holdout"] < 8
    assert found.healthy == found.spared.trials == found.spared.by["holdout"]
    assert found.spared.false_kills == 0
