"""What a study keeps of its trials has the published schema."""

from __future__ import annotations

import optuna

from tests.schemas import check
from tests.unit.optuna.support import NAN
from tune_guard import Policy
from tune_guard.optuna import GuardPruner


def test_the_attributes_have_the_schema() -> None:
    """Three of the five keys: status and blame lie in the detail."""
    guard = GuardPruner(policy=Policy.default("value"))
    study = optuna.create_study(pruner=guard)
    trial = study.ask()
    trial.report(1.0, 0)
    trial.report(NAN, 1)
    assert trial.should_prune()
    attributes = study.get_trials()[0].user_attrs
    names = {key for key in attributes if key.startswith("tune_guard/")}
    assert names == {"tune_guard/detail", "tune_guard/step", "tune_guard/reason"}
    assert attributes["tune_guard/detail"]["blame"] == "config"
    assert attributes["tune_guard/detail"]["status"] == "stopped"
    check("record-1", attributes)
