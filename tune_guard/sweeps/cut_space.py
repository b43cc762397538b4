"""Leave regions out of a search space."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tune_guard.space import Categorical, Constant, Float, Int, Parameter, Space
from tune_guard.sweeps.regions import word

if TYPE_CHECKING:
    from tune_guard.sweeps.regions import Condition


def without(space: Space, cuts: Iterable[Condition]) -> Space:
    """Return a space without these regions.

    A parameter that only exists beside a choice that is left out goes with it.

    Args:
        space: A space.

        cuts: Regions of its parameters, none of which holds all of one.

    Example:
        >>> from tune_guard.sweeps.regions import Condition
        >>> space = Space({"lr": Float(low=1e-4, high=1.0, log=True)})
        >>> cut = Condition(name="lr", kind="above", cut=0.03)
        >>> without(space, [cut]).parameters["lr"].high
        0.03
    """
    parameters = dict(space.parameters)
    for cut in cuts:
        parameters[cut.name] = _cut(parameters[cut.name], cut)
    kept: dict[str, Parameter] = {}
    for name, parameter in parameters.items():
        when = _possible(parameter.conditions, kept)
        if when is not None:
            kept[name] = dataclasses.replace(parameter, when=when)
    return Space(kept)


def _cut(parameter: Parameter, cut: Condition) -> Parameter:
    match parameter:
        case Categorical(choices=choices):
            kept = [choice for choice in choices if word(choice) not in cut.choices]
            return dataclasses.replace(parameter, choices=kept)
        case Float() | Int() if cut.cut is not None:
            return _shorter(parameter, cut.cut, above=cut.kind == "above")
    return parameter


def _shorter(parameter: Float | Int, at: float, *, above: bool) -> Parameter:
    """Move one bound to a cut; on a grid, to its nearest point that is kept."""
    low, step = parameter.low, parameter.step
    if step is not None:
        # A millionth of a step: a point may lie a rounding error beside the grid.
        steps = math.floor((at - low) / step + 1e-6)
        at = low + (steps if above else steps + 1) * step
        if isinstance(parameter, Float):
            at = float(f"{at:.12g}")
    bound: Any = int(at) if isinstance(parameter, Int) else float(at)
    changed: dict[str, Any] = {"high" if above else "low": bound}
    return dataclasses.replace(parameter, **changed)


def _possible(
    conditions: Mapping[str, tuple[object, ...]], kept: Mapping[str, Parameter]
) -> dict[str, list[Any]] | None:
    """Return the conditions that can still be met; None when one never can."""
    when: dict[str, list[Any]] = {}
    for parent, wanted in conditions.items():
        if parent not in kept:
            return None
        left = [value for value in wanted if _takes(kept[parent], value)]
        if not left:
            return None
        when[parent] = left
    return when


def _takes(parameter: Parameter, value: object) -> bool:
    if isinstance(parameter, (Categorical, Constant, Int)):
        return parameter.holds(value)
    return False
