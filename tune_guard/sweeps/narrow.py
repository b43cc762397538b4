"""Narrow a search space: leave out what kills, never what the best trials need."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from tune_guard.record import Outcome
from tune_guard.space import Categorical, Float, Int, Space
from tune_guard.sweeps.claims import Claim, Share
from tune_guard.sweeps.cut_space import without
from tune_guard.sweeps.explain_params import FEWEST_EACH, explain, folds
from tune_guard.sweeps.first_looks import ranked
from tune_guard.sweeps.regions import (
    Condition,
    is_number,
    round_between,
    value_of,
    word,
)
from tune_guard.sweeps.sweep import NO_FINDING
from tune_guard.sweeps.wording import counted
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from tune_guard.space import Parameter
    from tune_guard.sweeps.sweep import Sweep, Trial

TOP_RATIO = 0.1
"""The best tenth of the trials, at least three, whose region stays."""

KEPT_AT_LEAST = 0.9
"""Cross-validated share of the best tenth under which nothing is cut."""

_FEWEST_TOP = 3
_MARGIN = 0.05
_MOST_CUTS = 20
_MOST_ENDS = 100
_SICK = frozenset({Outcome.GUARD, Outcome.ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """A narrower space, and what it would have done.

    Args:
        space: The space; the given one when nothing is cut.

        cuts: The regions that are left out.

        avoided: Dead trials that lie in the regions left out, of all dead ones.

        kept: Trials of the best tenth that stay, of all of these. Both are
            measured on trials that had no part in choosing the regions.

        others_kept: The same for all trials that did not die.

        beyond: Claims about two hyperparameters together, which a space of ranges
            cannot leave out.

        why: Why nothing is cut; empty when something is.
    """

    space: Space
    cuts: tuple[Condition, ...]
    avoided: Share
    kept: Share
    others_kept: Share
    beyond: tuple[Claim, ...] = ()
    why: str = ""


class _Ranked(NamedTuple):
    """Trials, and which of them died and which are the best."""

    trials: Sequence[Trial]
    dead: Collection[str]
    top: Collection[str]


def narrow(sweep: Sweep, space: Space) -> Narrowed:
    """Leave out of a space the regions in which trials die.

    A region is one end of a range, or a choice. It is cut where at least eight
    trials lie in it, most of them dead, it is deadlier than the rest (95% intervals
    apart), and no trial of the best tenth lies in it or within 5% of the range.
    Nothing is cut if, on trials held out, under 90% of the best tenth would stay,
    or the regions are no deadlier than the rest.

    Args:
        sweep: A sweep that has an objective.

        space: The space it was drawn from.
    """
    told = [trial for trial in sweep.trials if _tells(trial)]
    dead = {trial.id for trial in told if trial.outcome in _SICK}
    best = ranked(sweep)
    top = {t.id for t in best[: max(_FEWEST_TOP, int(TOP_RATIO * len(best)))]}
    # A good trial that something cut in the end did not die of where it lay.
    dead -= top
    cuts = _cuts(space, _Ranked(told, dead, top))
    avoided, kept, others = _held_out(space, told, dead, top)
    why = _why(sweep, dead, top, cuts) or _refuted(avoided, kept, others)
    return Narrowed(
        space=space if why else without(space, cuts),
        cuts=() if why else tuple(cuts),
        avoided=avoided,
        kept=kept,
        others_kept=others,
        beyond=_beyond(sweep),
        why=why,
    )


def _beyond(sweep: Sweep) -> tuple[Claim, ...]:
    claims = explain(sweep.trials).claims if find_spec("scipy") else ()
    return tuple(claim for claim in claims if len(claim.conditions) > 1)


def _tells(trial: Trial) -> bool:
    """Whether a trial's end says something about where it lay."""
    if trial.reason == NO_FINDING:
        return True
    if trial.outcome in (None, Outcome.INTERRUPTED, Outcome.EXPERIMENT_STOP):
        return False
    return trial.blame is not Blame.INFRASTRUCTURE


def _why(
    sweep: Sweep,
    dead: Collection[str],
    top: Collection[str],
    cuts: Sequence[Condition],
) -> str:
    if sweep.mode is None or len(top) < _FEWEST_TOP:
        return "too few trials have a value of the objective to know the best region"
    if len(dead) < FEWEST_EACH:
        return f"{counted(len(dead))} died: too few to say where not to look"
    if not cuts:
        return "no region is deadly enough that holds none of the best trials"
    return ""


def _refuted(avoided: Share, kept: Share, others: Share) -> str:
    """Return what trials held out say against the cuts; empty for nothing."""
    lost = Share(others.of - others.hits, others.of)
    if avoided.interval[0] <= lost.interval[1]:
        return (
            f"on trials held out, {avoided.hits} of {avoided.of} dead ones and"
            f" {lost.hits} of {lost.of} others would be left out, which may be chance"
        )
    if kept.ratio < KEPT_AT_LEAST:
        return (
            f"on trials held out only {kept.hits} of the {kept.of} best would stay:"
            " the best region lies too near to what kills"
        )
    return ""


def _held_out(
    space: Space, trials: Sequence[Trial], dead: Collection[str], top: Collection[str]
) -> tuple[Share, Share, Share]:
    """Count what cuts that were chosen without a trial would have done to it."""
    counts = [[0, 0], [0, 0], [0, 0]]
    for chosen, held in folds(
        trials, lambda trial: (trial.id in dead, trial.id in top)
    ):
        cuts = _cuts(space, _Ranked(chosen, dead, top))
        for trial in held:
            out = any(cut.holds(trial.params) for cut in cuts)
            kinds = [(trial.id in dead, out), (trial.id in top, not out)]
            kinds.append((trial.id not in dead, not out))
            for count, (member, hit) in zip(counts, kinds, strict=True):
                count[0] += member and hit
                count[1] += member
    avoided, kept, others = (Share(*count) for count in counts)
    return avoided, kept, others


def _cuts(space: Space, known: _Ranked) -> list[Condition]:
    """Choose regions one by one, each the one that now saves most."""
    cuts: list[Condition] = []
    while len(cuts) < _MOST_CUTS:
        found = [
            (gain, -position, cut)
            for position, cut in enumerate(_candidates(space, known, cuts))
            if (gain := _gain(cut, known)) > 0
        ]
        if not found:
            break
        cut = max(found, key=lambda item: item[:2])[2]
        cuts.append(cut)
        left = [trial for trial in known.trials if not cut.holds(trial.params)]
        known = known._replace(trials=left)
    return cuts


def _gain(cut: Condition, known: _Ranked) -> int:
    """Return the dead trials that a cut avoids, less the others; 0 for none."""
    inside = [trial for trial in known.trials if cut.holds(trial.params)]
    dead_inside = sum(trial.id in known.dead for trial in inside)
    dead = sum(trial.id in known.dead for trial in known.trials)
    there = Share(dead_inside, len(inside))
    elsewhere = Share(dead - dead_inside, len(known.trials) - len(inside))
    if there.of < FEWEST_EACH or there.interval[0] <= elsewhere.interval[1]:
        return 0
    return dead_inside - (len(inside) - dead_inside)


def _candidates(
    space: Space, known: _Ranked, cuts: Sequence[Condition]
) -> Iterator[Condition]:
    for name, parameter in space.parameters.items():
        used = [cut for cut in cuts if cut.name == name]
        if isinstance(parameter, Categorical):
            yield from _choices(name, parameter, known, used)
        elif isinstance(parameter, (Float, Int)):
            sides = {cut.kind for cut in used}
            yield from (c for c in _ends(name, parameter, known) if c.kind not in sides)


def _choices(
    name: str, parameter: Categorical, known: _Ranked, used: Sequence[Condition]
) -> Iterator[Condition]:
    gone = {choice for cut in used for choice in cut.choices}
    needed = {word(value_of(t.params, name)) for t in known.trials if t.id in known.top}
    left = [word(c) for c in parameter.choices if word(c) not in gone]
    for choice in left:
        if choice not in needed and len(left) > 1:
            yield Condition(name=name, kind="among", choices=(choice,))


def _ends(name: str, parameter: Float | Int, known: _Ranked) -> Iterator[Condition]:
    """Yield both ends of a range, cut between any two neighbouring values."""
    pairs = [(value_of(t.params, name), t.id) for t in known.trials]
    values = sorted({v for v, _ in pairs if v is not None and is_number(v)})
    best = [v for v, trial in pairs if trial in known.top and v is not None]
    if not best or not values:
        return
    low, high = _with_margin(parameter, min(best), max(best))
    stride = max(1, len(values) // _MOST_ENDS)
    for below, above in list(itertools.pairwise(values))[::stride]:
        cut = round_between(below, above)
        if isinstance(parameter, Int):
            cut = math.floor(cut)
        if cut < low:
            yield Condition(name=name, kind="at_most", cut=cut)
        if cut > high:
            yield Condition(name=name, kind="above", cut=cut)


def _with_margin(parameter: Parameter, low: float, high: float) -> tuple[float, float]:
    """Widen the range of the best trials by a share of the whole range."""
    if not isinstance(parameter, (Float, Int)):
        return low, high
    if parameter.log and low > 0:
        factor = (parameter.high / parameter.low) ** _MARGIN
        return low / factor, high * factor
    margin = (parameter.high - parameter.low) * _MARGIN
    return low - margin, high + margin
