"""The class that stands for a pruner's makes guards, and is that class otherwise."""

from __future__ import annotations

from unittest import mock

import optuna
from optuna.pruners import HyperbandPruner, NopPruner, ThresholdPruner

from tests.peers.plugins.guarded_pruners import guarded
from tune_guard.optuna import GuardPruner


def test_it_makes_a_guard_around_the_pruner() -> None:
    """With the pruner's own arguments; the pruner is asked."""
    guard = guarded(ThresholdPruner)(upper=1.0)
    assert isinstance(guard, GuardPruner)
    trial = optuna.create_study(pruner=guard).ask()
    trial.report(2.0, 0)
    assert trial.should_prune()
    assert trial.user_attrs["tune_guard/reason"] == "pruner:ThresholdPruner"


def test_the_guard_passes_for_the_pruner() -> None:
    """And for no other; so does the pruner by itself."""
    stand_in = guarded(HyperbandPruner)
    assert isinstance(stand_in(), stand_in)
    assert isinstance(HyperbandPruner(), stand_in)
    assert not isinstance(guarded(NopPruner)(), stand_in)


def test_a_patch_reaches_the_pruners_own_class() -> None:
    """And is taken back."""
    own = HyperbandPruner._get_bracket_id
    with mock.patch.object(guarded(HyperbandPruner), "_get_bracket_id") as patched:
        assert HyperbandPruner._get_bracket_id is patched
    assert HyperbandPruner._get_bracket_id is own
