"""The public API as a user types it: checked by mypy, never run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, assert_type

import optuna
from optuna.distributions import BaseDistribution

from tune_guard import Policy, Space, StopRecord, Verdict
from tune_guard.space import Categorical, Float, Int, SpaceError


def spaces(trial: optuna.Trial) -> None:
    """A space goes to both engines and back to YAML."""
    space = Space.from_yaml(Path("space.yaml"))
    assert_type(space, Space)
    assert_type(space.to_ray(), dict[str, Any])
    assert_type(space.to_optuna(), dict[str, BaseDistribution])
    assert_type(space.suggest(trial), dict[str, Any])
    assert_type(
        space.sample(random.Random(1)), dict[str, str | int | float | bool | None]
    )
    assert_type(space.contains({"lr": 0.1}), bool)
    assert_type(space.to_yaml(), str)


def parameters() -> Space | SpaceError:
    """A space is also built in Python; a mistake is a ValueError."""
    try:
        return Space(
            {
                "lr": Float(low=1e-4, high=1.0, log=True),
                "optimizer": Categorical(choices=("sgd", "adam")),
                "layers": Int(low=1, high=3, when={"optimizer": "sgd"}),
            }
        )
    except SpaceError as error:
        assert_type(error.parameter, str)
        return error


def policies() -> tuple[Policy, type[Verdict], type[StopRecord]]:
    """A policy needs a metric and a mode."""
    policy = Policy.default("val_loss", "min", warmup_steps=5, patience=20)
    assert_type(policy, Policy)
    return policy, Verdict, StopRecord
