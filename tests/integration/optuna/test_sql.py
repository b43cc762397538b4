"""What the guard costs a database: nothing, until a trial is cut."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import optuna
import pytest
import sqlalchemy
from optuna.pruners import BasePruner, MedianPruner, NopPruner
from optuna.storages import RDBStorage, get_storage

from tune_guard.optuna import GuardPruner
from tune_guard.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAN = float("nan")
SERVERS = ("postgres", "mysql")
PREFIX = f"tune-guard-sql-{os.getpid()}-"


class Statements:
    """Every SQL statement that was sent since the last look."""

    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self._sent: list[str] = []
        sqlalchemy.event.listen(engine, "before_cursor_execute", self._note)

    def _note(self, _: object, __: object, statement: str, *___: object) -> None:
        self._sent.append(statement)

    def take(self) -> list[str]:
        """Return and forget them."""
        sent, self._sent = self._sent, []
        return sent


def study_and_statements(
    url: str, pruner: BasePruner
) -> tuple[optuna.Study, Statements]:
    """Return a study with ten finished trials, and what it sends."""
    name = f"{PREFIX}{uuid.uuid4()}"
    study = optuna.create_study(
        study_name=name, storage=get_storage(url), pruner=pruner
    )
    for _ in range(10):
        values = dict.fromkeys(range(5), 1.0)
        study.add_trial(
            optuna.trial.create_trial(value=1.0, intermediate_values=values)
        )
    backend = study._storage._backend
    assert isinstance(backend, RDBStorage)
    return study, Statements(backend.engine)


@pytest.fixture(
    params=["sqlite", *(pytest.param(s, marks=pytest.mark.service) for s in SERVERS)]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a new SQLite file, or of a server, where the studies are deleted."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
        return
    url = request.getfixturevalue(f"{request.param}_url")
    yield url
    for name in optuna.get_all_study_names(url):
        if name.startswith(PREFIX):
            optuna.delete_study(study_name=name, storage=url)


def test_no_statement_until_a_cut(url: str) -> None:
    """Not one, whether signals are reported or not, from the first step on."""
    guard = GuardPruner()
    study, statements = study_and_statements(url, guard)
    trial = study.ask()
    for step in range(50):
        trial.report(1 / (step + 1), step)
        statements.take()
        guard.observe(trial, grad_norm=1.0)
        assert trial.should_prune() is False
        assert statements.take() == []


def test_reporting_through_the_guard_sends_what_optuna_sends(url: str) -> None:
    """``guard.report`` costs the statements of ``trial.report``, no more."""
    guard = GuardPruner()
    study, statements = study_and_statements(url, guard)
    trial = study.ask()
    statements.take()
    trial.report(1.0, 0)
    plain = statements.take()
    guard.report(trial, 0.9, 1, grad_norm=1.0, lr=0.1)
    assert statements.take() == plain


def test_a_cut_writes_three_attributes_and_the_constraint(url: str) -> None:
    """Three user attributes; the TPE sampler's constraint is a system attribute."""
    study, statements = study_and_statements(url, GuardPruner())
    trial = study.ask()
    trial.report(NAN, 0)
    statements.take()
    assert trial.should_prune() is True
    sent = statements.take()
    inserts = [s.split()[2] for s in sent if s.startswith("INSERT")]
    assert inserts == ["trial_user_attributes"] * 3 + ["trial_system_attributes"]
    assert not [s for s in sent if s.startswith(("UPDATE", "DELETE"))]


def test_a_question_after_the_cut_sends_nothing(url: str) -> None:
    """The verdict is known by then."""
    study, statements = study_and_statements(url, GuardPruner())
    trial = study.ask()
    trial.report(NAN, 0)
    trial.should_prune()
    statements.take()
    assert trial.should_prune() is True
    assert statements.take() == []


@pytest.mark.parametrize("wrapped", [NopPruner, MedianPruner])
def test_a_whole_healthy_trial_sends_what_it_sends_without_the_guard(
    url: str, wrapped: type[BasePruner]
) -> None:
    """From ask to tell, the statements are the same, one for one."""

    def objective(trial: optuna.Trial) -> float:
        for step in range(10):
            trial.report(1 / (step + 1), step)
            assert not trial.should_prune()
        return -trial.number  # the best by itself: Optuna looks up the best trial

    sent = []
    for pruner in (wrapped(), GuardPruner(wrapped())):
        study, statements = study_and_statements(url, pruner)
        study.optimize(objective, n_trials=2)
        sent.append(statements.take())
    assert sent[0]
    assert sent[0] == sent[1]


def test_comparing_trials_reads_when_a_trial_starts_and_never_again(url: str) -> None:
    """The finished trials are read with the first report; then nothing is sent."""
    policy = Policy.thrifty("value", "max", budget_steps=50)
    study, statements = study_and_statements(url, GuardPruner(policy=policy))
    for _ in range(2):
        trial = study.ask()
        sent = []
        for step in range(50):
            trial.report(1.0 + step, step)
            statements.take()
            assert trial.should_prune() is False
            sent.append(statements.take())
        assert 0 < len(sent[0]) < 20
        assert not [s for s in sent[0] if not s.startswith("SELECT")]
        assert sent[1:] == [[]] * 49


def test_each_finished_trial_is_read_once(url: str) -> None:
    """A start reads the trials that finished since, however many there were before."""
    policy = Policy.thrifty("value", "max", budget_steps=5)
    guard = GuardPruner(policy=policy)
    study, statements = study_and_statements(url, guard)
    costs = []
    for _ in range(4):
        trial = study.ask()
        trial.report(1.0, 0)
        statements.take()
        trial.should_prune()
        costs.append(len(statements.take()))
        study.tell(trial, 1.0)
    assert costs[1] == costs[2] == costs[3] <= costs[0]
