"""Files and states that are damaged, cut short, edited, or of a newer version."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.mutations import documents
from tests.fuzz.targets import every_target

TARGETS = every_target()

_SLOW = {"stopper_state", "optuna_journal", "optuna_sqlite", "mlflow_sqlite", "parquet"}


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_hostile_input_is_refused_as_documented(name: str) -> None:
    """Whatever the bytes, no other error comes out, and no code in them runs."""
    target = TARGETS[name]

    @settings(
        max_examples=8 if name in _SLOW else 25,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
    @given(data=documents(target.seeds()))
    def check(data: bytes) -> None:
        target.call(data)

    check()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_valid_documents_are_read(name: str) -> None:
    """What the mutations begin with is no error itself."""
    for seed in TARGETS[name].seeds():
        TARGETS[name].call(seed)
