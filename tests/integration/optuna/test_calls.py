"""What the guard asks of storages that have no SQL: nothing, until a trial is cut."""

from __future__ import annotations

from collections.abc import Callable

import optuna
import pytest
from optuna.pruners import BasePruner, MedianPruner, NopPruner

from tests.integration.optuna.calls import Calls
from tests.integration.optuna.worker import NAN, open_storage
from tune_guard.optuna import GuardPruner
from tune_guard.record import DETAIL, REASON, STEP

SICK_STEP = 5

pytestmark = pytest.mark.parametrize(
    "address",
    ["journal", "grpc", pytest.param("redis", marks=pytest.mark.service)],
    indirect=True,
)


def asked(
    address: str, name: str, pruner: BasePruner, value: Callable[[int], float]
) -> list[tuple[str, ...]]:
    """Run two trials and return what each asks: its start, its steps, its end."""
    storage = open_storage(address)
    study = optuna.load_study(study_name=name, storage=storage, pruner=pruner)
    calls, found = Calls(study._storage), []

    def objective(trial: optuna.Trial) -> float:
        for step in range(10):
            trial.report(value(step), step)
            cut = trial.should_prune()
            found.append(calls.take())
            if cut:
                raise optuna.TrialPruned
        return 1.0

    study.optimize(objective, n_trials=2)
    return [*found, calls.take()]


@pytest.mark.parametrize("wrapped", [NopPruner, MedianPruner])
def test_a_healthy_trial_asks_what_it_asks_without_the_guard(
    address: str, study_name: str, wrapped: type[BasePruner]
) -> None:
    """From ask to tell, the storage's methods are called alike, one for one."""
    plain, guarded = (
        asked(address, study_name, pruner, lambda step: 1 / (step + 1))
        for pruner in (wrapped(), GuardPruner(wrapped()))
    )
    assert len(plain) == 21
    assert plain == guarded


def test_a_cut_asks_for_three_attributes_and_the_constraint(
    address: str, study_name: str
) -> None:
    """Up to the step of the cut nothing differs; there the record is written."""
    plain, guarded = (
        asked(address, study_name, pruner, lambda s: NAN if s == SICK_STEP else 1.0)
        for pruner in (NopPruner(), GuardPruner())
    )
    assert plain[:SICK_STEP] == guarded[:SICK_STEP]
    written = guarded[SICK_STEP][len(plain[SICK_STEP]) :]
    attributes = ["set_trial_user_attr"] * len((DETAIL, STEP, REASON))
    assert [*written] == [*attributes, "set_trial_system_attr"]
