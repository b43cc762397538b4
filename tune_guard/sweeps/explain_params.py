"""Which hyperparameters explain a reason: claims that would hold on new trials.

Every hyperparameter is tested for every reason, and all p-values are corrected
together (Holm). A share such as "94% non_finite where lr > 0.03" is measured on
trials that had no part in the choice of the region (five-fold cross-validation).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tune_guard.record import Outcome
from tune_guard.sweeps.claims import Claim, Explained, Share
from tune_guard.sweeps.regions import Condition, Split, split
from tune_guard.sweeps.spreads import varied
from tune_guard.sweeps.sweep import NO_FINDING, UNKNOWN
from tune_guard.sweeps.wording import counted
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from tune_guard.sweeps.sweep import Trial

FEWEST_EACH = 8
"""Trials that ended for a reason, and that did not, under which nothing is said."""

ALPHA = 0.05
"""Chance that any claim about a sweep is false, all of them taken together."""

_FOLDS = 5
_CLEAR = 0.95
_SICK = frozenset({Outcome.GUARD, Outcome.ERROR})
_SILENT_OUTCOMES = frozenset({Outcome.INTERRUPTED, Outcome.EXPERIMENT_STOP})


def explain(trials: Sequence[Trial]) -> Explained:
    """Find the regions of the space that explain each reason.

    The trials of a reason are held against those that were not sick. Trials that
    something outside of their configuration ended do not count: a fault of the
    machine, an interruption, the end of the experiment. Nor do those whose end is
    not known.

    Args:
        trials: All trials of a sweep.

    Raises:
        ModuleNotFoundError: If scipy is not installed: ``tune-guard[report]``.

    Example:
        >>> from tune_guard.sweeps import Trial
        >>> cut = {"outcome": Outcome.GUARD, "reason": "non_finite"}
        >>> trials = [
        ...     Trial(id=str(i), params={"lr": i / 100}, **(cut if i > 30 else
        ...           {"outcome": Outcome.COMPLETED})) for i in range(60)]
        >>> print(explain(trials).claims[0].where)
        lr > 0.3
    """
    told = [trial for trial in trials if _tells(trial)]
    names, silent = varied(told), {}
    found: dict[str, list[Split]] = {}
    ended = [trial for trial in told if not trial.healthy and trial.outcome]
    for reason in dict.fromkeys(map(_reason, ended)):
        sick, others = _sides(told, reason)
        if min(len(sick), len(others)) < FEWEST_EACH:
            silent[reason] = (
                f"too few: {counted(len(sick))}, beside {counted(len(others), 'other')}"
            )
        else:
            found[reason] = _tests(names, told, reason)
    claims = _without_repeats(_claims(found, names, told))
    for reason in found.keys() - {claim.reason for claim in claims}:
        silent[reason] = "no hyperparameter explains it"
    claims.sort(key=lambda c: (-c.inside.hits, c.p_value))
    return Explained(
        claims=tuple(claims), tests=sum(map(len, found.values())), silent=silent
    )


def _without_repeats(claims: Sequence[Claim]) -> list[Claim]:
    """Leave out a claim whose hyperparameters a surer one of its reason names too."""
    kept: list[Claim] = []
    for claim in sorted(claims, key=lambda c: (-len(c.conditions), c.p_value, -c.gap)):
        names = {condition.name for condition in claim.conditions}
        if not any(
            names <= {condition.name for condition in other.conditions}
            for other in kept
            if other.reason == claim.reason
        ):
            kept.append(claim)
    return kept


def _tells(trial: Trial) -> bool:
    """Whether a trial's end says something about its hyperparameters."""
    if trial.reason == NO_FINDING:
        return True
    if trial.outcome is None or trial.outcome in _SILENT_OUTCOMES:
        return False
    return trial.blame is not Blame.INFRASTRUCTURE and trial.reason != UNKNOWN


def _reason(trial: Trial) -> str:
    return trial.reason or str(trial.outcome or "")


def _is(trial: Trial, reason: str) -> bool:
    return not trial.healthy and _reason(trial) == reason


def _sides(trials: Iterable[Trial], reason: str) -> tuple[list[Trial], list[Trial]]:
    """Return the trials that ended for a reason, and those that were not sick.

    A trial that died of something else is on neither side: nobody knows whether
    it would have lived long enough to end for this reason.
    """
    sick, others = [], []
    for trial in trials:
        if _is(trial, reason):
            sick.append(trial)
        elif trial.outcome not in _SICK:
            others.append(trial)
    return sick, others


def _tests(names: Iterable[str], trials: Sequence[Trial], reason: str) -> list[Split]:
    sick, others = _sides(trials, reason)
    found = (split(name, sick, others, fewest=FEWEST_EACH) for name in names)
    return [test for test in found if test is not None]


def _claims(
    found: Mapping[str, Sequence[Split]], names: Sequence[str], trials: Sequence[Trial]
) -> list[Claim]:
    pairs = [(reason, test) for reason, tests in found.items() for test in tests]
    corrected = holm([test.p_value for _, test in pairs])
    claims = []
    for (reason, test), p_value in zip(pairs, corrected, strict=True):
        if p_value < ALPHA:
            claim = _claim(reason, test, p_value, names, trials)
            if claim.inside.interval[0] > claim.outside.interval[1]:
                claims.append(claim)
    return claims


def _claim(
    reason: str,
    test: Split,
    p_value: float,
    names: Sequence[str],
    trials: Sequence[Trial],
) -> Claim:
    second = _second(reason, test.condition, names, trials)
    conditions = (test.condition, *([second[0].condition] if second else []))
    fitted = [condition.name for condition in conditions]
    inside, outside = _held_out(reason, fitted, trials)
    return Claim(
        reason=reason,
        conditions=conditions,
        inside=inside,
        outside=outside,
        gap=test.gap,
        p_value=max(p_value, second[1]) if second else p_value,
        test=test.test,
    )


def _second(
    reason: str, first: Condition, names: Sequence[str], trials: Sequence[Trial]
) -> tuple[Split, float] | None:
    """Find what tells apart the trials of one region, and its corrected p-value."""
    inside = [trial for trial in trials if first.holds(trial.params)]
    hits = sum(_is(trial, reason) for trial in inside)
    if hits >= _CLEAR * len(inside):
        return None
    tests = _tests([name for name in names if name != first.name], inside, reason)
    # Twice: this is the second of two rounds of tests.
    corrected = [2 * p for p in holm([test.p_value for test in tests])]
    pairs = zip(corrected, (-test.gap for test in tests), tests, strict=True)
    p_value, _, test = min(pairs, key=lambda pair: pair[:2], default=(1.0, 0.0, None))
    return (test, p_value) if test is not None and p_value < ALPHA else None


def _held_out(
    reason: str, names: Sequence[str], trials: Sequence[Trial]
) -> tuple[Share, Share]:
    """Measure the shares in regions that were chosen without the trials counted."""
    counts = [[0, 0], [0, 0]]
    for kept, held in folds(trials, lambda trial: _is(trial, reason)):
        regions = _fitted(reason, names, kept)
        for trial in held:
            holds = [region.holds(trial.params) for region in regions]
            place = counts[0 if holds and all(holds) else 1]
            place[0] += _is(trial, reason)
            place[1] += 1
    return Share(*counts[0]), Share(*counts[1])


def _fitted(
    reason: str, names: Sequence[str], trials: Sequence[Trial]
) -> list[Condition]:
    """Choose the regions of these hyperparameters, each within the ones before."""
    regions: list[Condition] = []
    for name in names:
        sick, others = _sides(trials, reason)
        test = split(name, sick, others, fewest=1)
        if test is None:
            return regions
        regions.append(test.condition)
        trials = [trial for trial in trials if test.condition.holds(trial.params)]
    return regions


def folds(
    trials: Sequence[Trial], alike: Callable[[Trial], Any]
) -> Iterable[tuple[list[Trial], list[Trial]]]:
    """Split trials five times into kept and held out, each held out once.

    Args:
        trials: The trials.

        alike: A function of a trial; its values are spread evenly over the folds.
    """
    shuffled = list(trials)
    random.Random(0).shuffle(shuffled)  # noqa: S311 - a fixed split, no secret
    shuffled.sort(key=alike)
    for fold in range(_FOLDS):
        kept = [trial for i, trial in enumerate(shuffled) if i % _FOLDS != fold]
        yield kept, shuffled[fold::_FOLDS]


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number, so that any false one has its rate.

    Source: S. Holm, A simple sequentially rejective multiple test procedure,
        Scandinavian Journal of Statistics 6 (1979).

    Example:
        >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, worst = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = worst
    return corrected
