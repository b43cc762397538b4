"""The policy of a study: its direction stands for the mode."""

from __future__ import annotations

import pytest

from tests.unit.optuna.support import (
    NAN,
    notices,
    policy,
    steps_until_pruned,
    study_of,
)
from tune_guard.optuna import GuardPruner
from tune_guard.record import DETAIL
from tune_guard.rules import Plateau


def test_the_studys_direction_is_the_mode() -> None:
    """A rising metric of a study that maximises is no plateau."""
    rule = Plateau(patience=2, holds=())
    rising = [0.5, 0.55, 0.6, 0.64, 0.67]
    guard = GuardPruner(policy=policy(rule, metric="val_recall"))
    up = study_of(guard, direction="maximize").ask()
    assert steps_until_pruned(up, rising) is None
    down = study_of(guard, direction="minimize").ask()
    assert steps_until_pruned(down, rising) == 2


def test_a_conflict_of_directions_is_named_once_and_the_policy_holds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The policy's mode was written down; the study's may be Optuna's default."""
    rule = Plateau(patience=2, holds=())
    study = study_of(GuardPruner(policy=policy(rule, mode="max")))
    for _ in range(2):
        assert steps_until_pruned(study.ask(), [0.5, 0.6, 0.7, 0.8]) is None
    assert len(notices(caplog)) == 1
    assert "the guard uses 'max'" in caplog.text


def test_reported_values_have_the_name_of_the_policys_metric() -> None:
    """The record speaks of the metric as the user calls it."""
    trial = study_of(GuardPruner(policy=policy(metric="val/loss"))).ask()
    assert steps_until_pruned(trial, [NAN]) == 0
    assert trial.user_attrs[DETAIL]["metric"] == "val/loss"
