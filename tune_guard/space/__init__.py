"""Search spaces: one YAML definition for Ray Tune and for Optuna.

A space is a YAML mapping from a parameter's name to its kind and range::

    lr:           {type: float, low: 1e-4, high: 1.0, log: true}
    hidden:       {type: int, low: 16, high: 128, step: 16}
    optimizer:    {type: categorical, choices: [sgd, adam]}
    momentum:     {type: float, low: 0.0, high: 0.99, when: {optimizer: sgd}}
    epochs:       {type: constant, value: 20}

The same file becomes Ray's domains with :meth:`Space.to_ray`, Optuna's
distributions with :meth:`Space.to_optuna`, and Optuna's suggest calls with
:meth:`Space.suggest`. None of the engines is imported before it is asked for.
"""

from __future__ import annotations

from tune_guard.space.checks import SpaceError
from tune_guard.space.definition import Space
from tune_guard.space.parameters import Categorical, Constant, Float, Int, Parameter

__all__ = [
    "Categorical",
    "Constant",
    "Float",
    "Int",
    "Parameter",
    "Space",
    "SpaceError",
]
