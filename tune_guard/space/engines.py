"""From the four kinds to Ray's domains and to Optuna's distributions and calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from tune_guard.space import checks
from tune_guard.space.parameters import Categorical, Constant, Float, Int, Parameter

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution


def to_ray(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return what Ray's ``param_space`` takes, conditions included."""
    from ray import tune

    space: dict[str, Any] = {}
    for name, parameter in parameters.items():
        domain = _ray_domain(parameter)
        if parameter.when:
            domain = tune.sample_from(_Conditional(name, parameter, domain))
        space[name] = domain
    return space


def _ray_domain(parameter: Parameter) -> Any:
    match parameter:
        case Float():
            return _ray_float(parameter)
        case Int():
            return _ray_int(parameter)
        case Categorical(choices=choices):
            from ray import tune

            return tune.choice(list(choices))
        case Constant(value=value):
            return value
    assert_never(parameter)


def _ray_float(parameter: Float) -> Any:
    from ray import tune

    low, high, step = parameter.low, parameter.high, parameter.step
    if step is None:
        return tune.loguniform(low, high) if parameter.log else tune.uniform(low, high)
    if not checks.remainder(0.0, low, step):
        return tune.quniform(low, high, step)
    # Ray counts its steps from zero, so it cannot express 0.05, 0.15, 0.25.
    return tune.choice(list(parameter.grid(step)))


def _ray_int(parameter: Int) -> Any:
    from ray import tune

    low, high, step = parameter.low, parameter.high, parameter.step
    if parameter.log:
        return tune.lograndint(low, high + 1)  # Ray leaves the upper bound out,
    if step == 1:
        return tune.randint(low, high + 1)
    if low % step == 0:
        return tune.qrandint(low, high, step)  # but not here.
    return tune.choice(list(parameter.grid()))


@dataclass(frozen=True)
class _Conditional:
    """What ``tune.sample_from`` calls: a draw if active, else None."""

    name: str
    parameter: Parameter
    domain: Any

    def __call__(self, config: dict[str, Any]) -> Any:
        siblings = _siblings(config, self.name)
        if siblings is None:
            msg = f"`{self.name}` is not in the config that Ray resolves"
            raise LookupError(msg)
        parents = [parent for parent in self.parameter.when if parent in siblings]
        values = {parent: siblings[parent] for parent in parents}
        if any(_is_unresolved(value) for value in values.values()):
            from ray.tune.search.variant_generator import RecursiveDependencyError

            msg = f"`{self.name}` depends on a parameter without a value yet"
            raise RecursiveDependencyError(msg)
        if not self.parameter.is_active(values):
            return None
        return self.domain.sample() if _is_unresolved(self.domain) else self.domain


def _is_unresolved(value: Any) -> bool:
    """Whether Ray still has to draw it: a domain or ``grid_search``.

    Ray is to be told, so that it asks again. Its own guard sees attribute access
    only and would hand out the domain itself.
    """
    return hasattr(value, "sample") or isinstance(value, dict)


def _siblings(config: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the part of a config in which ``name`` stands.

    Ray passes the whole config, in which the space may lie below a key such as
    ``train_loop_config``.
    """
    if name in config:
        return config
    # Not config.values(): Ray's mapping finds a parameter of that name first.
    for below in Mapping.values(config):
        found = _siblings(below, name) if isinstance(below, dict) else None
        if found is not None:
            return found
    return None


def to_optuna(parameters: Mapping[str, Parameter]) -> dict[str, BaseDistribution]:
    """Return Optuna's distribution of every parameter."""
    return {name: _distribution(parameter) for name, parameter in parameters.items()}


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna import distributions

    match parameter:
        case Float(low=low, high=high, log=log, step=step):
            return distributions.FloatDistribution(low, high, log=log, step=step)
        case Int(low=whole_low, high=whole_high, log=log, step=whole_step):
            return distributions.IntDistribution(
                whole_low, whole_high, log=log, step=whole_step
            )
        case Categorical(choices=choices):
            return distributions.CategoricalDistribution(choices)
        case Constant(value=value):
            return distributions.CategoricalDistribution((value,))
    assert_never(parameter)


def suggest(trial: optuna.Trial, name: str, parameter: Parameter) -> Any:
    """Ask ``trial`` for one parameter."""
    match parameter:
        case Float(low=low, high=high, log=log, step=step):
            return trial.suggest_float(name, low, high, log=log, step=step)
        case Int(low=whole_low, high=whole_high, log=log, step=whole_step):
            return trial.suggest_int(
                name, whole_low, whole_high, log=log, step=whole_step
            )
        case Categorical(choices=choices):
            return trial.suggest_categorical(name, choices)
        case Constant(value=value):
            return trial.suggest_categorical(name, (value,))
    assert_never(parameter)
