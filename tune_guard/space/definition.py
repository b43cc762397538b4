"""The space itself: parameters in order, their conditions, the way to each engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import did_you_mean
from tune_guard.space import engines, files
from tune_guard.space.checks import Scalar, SpaceError
from tune_guard.space.parameters import Float, Parameter

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class Space:
    """A search space, the same for Ray Tune and for Optuna.

    A parameter that is not active is absent from what Optuna and
    :meth:`sample` give, and None in a Ray config, where every key must stand;
    ``config.get("momentum")`` is None either way.

    Args:
        parameters: Name to parameter. A parent of a condition stands before
            the parameters that depend on it.

    Raises:
        SpaceError: If there is no parameter, a name cannot be used, or a
            condition names no earlier parameter or a value that it never takes.

    Example:
        >>> space = Space.from_yaml('''
        ... optimizer: {type: categorical, choices: [sgd, adam]}
        ... momentum:  {type: float, low: 0, high: 0.9, when: {optimizer: sgd}}
        ... ''')
        >>> space.contains({"optimizer": "sgd", "momentum": 0.5})
        True
        >>> space.contains({"optimizer": "adam", "momentum": 0.5})
        False
    """

    parameters: Mapping[str, Parameter]

    def __post_init__(self) -> None:
        if not self.parameters:
            msg = (
                "The space has no parameters. Write for example "
                "`lr: {type: float, low: 1e-4, high: 1.0, log: true}`."
            )
            raise SpaceError(msg)
        earlier: dict[str, Parameter] = {}
        for name, parameter in self.parameters.items():
            _check_name(name)
            _check_parents(name, parameter, earlier)
            earlier[name] = parameter

    @classmethod
    def from_yaml(cls, source: str | Path) -> Space:
        """Read a space from a file or from YAML text.

        Numbers may be written as ``1e-3``. Only ``true`` and ``false`` are
        booleans: ``no``, ``off`` and ``yes`` stay the texts they are.

        Args:
            source: A path, or the YAML itself if it holds a line break.

        Raises:
            SpaceError: If the file cannot be read or the definition is wrong;
                names the file, the line, the key and the nearest valid word.
        """
        label, text = files.load(source)
        entries = files.read(text, label)
        try:
            return cls({name: entry.parameter for name, entry in entries.items()})
        except SpaceError as error:
            entry = entries.get(error.parameter)
            line = entry.line_of(error.key) if entry else 1
            raise files.located(error, label, line) from None

    def to_yaml(self) -> str:
        """Return the definition as YAML that :meth:`from_yaml` reads back equal."""
        return files.dump(self.parameters)

    def to_ray(self) -> dict[str, Any]:
        """Return Ray Tune domains, for ``Tuner(param_space=...)``.

        Conditional parameters become ``tune.sample_from``; they also work below
        another key, such as ``train_loop_config``. Seed with
        ``numpy.random.seed``: Ray hands its generator to no function.
        Searchers cannot convert functions; give Ray's OptunaSearch
        ``space=space.suggest`` instead.
        """
        return engines.to_ray(self.parameters)

    def to_optuna(self) -> dict[str, optuna.distributions.BaseDistribution]:
        """Return Optuna distributions, conditional ones included.

        For ``study.ask(fixed_distributions=...)`` and ``create_trial``, which
        know no conditions; :meth:`suggest` does.
        """
        return engines.to_optuna(self.parameters)

    def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
        """Ask an Optuna trial for every active parameter, in order.

        Args:
            trial: A running trial, a FixedTrial, or what Ray's OptunaSearch
                hands to ``space=space.suggest``.

        Returns:
            The active parameters and their values, constants included.
        """
        values: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if parameter.is_active(values):
                values[name] = engines.suggest(trial, name, parameter)
        return values

    def sample(self, rng: Random) -> dict[str, Scalar]:
        """Draw one point without any engine: the active parameters only."""
        values: dict[str, Scalar] = {}
        for name, parameter in self.parameters.items():
            if parameter.is_active(values):
                values[name] = parameter.draw(rng)
        return values

    def contains(self, params: Mapping[str, object]) -> bool:
        """Whether these are the values of one point of the space.

        Every active parameter must be there with a value of its range, an
        inactive one absent or None, and nothing else.
        """
        if not params.keys() <= self.parameters.keys():
            return False
        values: dict[str, object] = {}
        for name, parameter in self.parameters.items():
            if parameter.is_active(values):
                if name not in params or not parameter.holds(params[name]):
                    return False
                values[name] = params[name]
            elif params.get(name) is not None:
                return False
        return True


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        msg = f"A parameter's name must be a text, but got {name!r}."
        raise SpaceError(msg)
    if "/" in name:
        msg = (
            f"`{name}` must not hold a `/`: Ray takes it for nesting. "
            f"Write `{name.replace('/', '_')}`."
        )
        raise SpaceError(msg, parameter=name)


def _check_parents(
    name: str, parameter: Parameter, earlier: Mapping[str, Parameter]
) -> None:
    for parent, wanted in parameter.conditions.items():
        if parent not in earlier:
            known = did_you_mean(parent, earlier) if earlier else "It is the first."
            msg = (
                f"`{name}` depends on `{parent}`, but no parameter before it has "
                f"that name. {known}"
            )
            raise SpaceError(msg, parameter=name, key="when")
        for value in wanted:
            _check_value(name, parent, earlier[parent], value)


def _check_value(name: str, parent: str, kind: Parameter, value: Scalar) -> None:
    if isinstance(kind, Float):
        msg = (
            f"`{name}` depends on `{parent}`, a float, which meets a given value "
            "by chance only. Depend on a categorical or an int."
        )
    elif kind.holds(value):
        return
    else:
        choices = [str(choice) for choice in getattr(kind, "choices", ())]
        hint = f" {did_you_mean(str(value), choices)}" if choices else ""
        msg = f"`{name}` needs `{parent}` = {value!r}, which it never is.{hint}"
    raise SpaceError(msg, parameter=name, key="when")
