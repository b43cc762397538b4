"""What to change next, in sentences that a person can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tune_guard.record import Outcome
from tune_guard.sweeps.faults import UNNAMED
from tune_guard.sweeps.report.terminal import amount
from tune_guard.sweeps.sweep import UNKNOWN
from tune_guard.sweeps.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tune_guard.sweeps.compare import Comparison

_FEWEST_ON_NODE = 2


def advice(found: Comparison) -> tuple[str, ...]:
    """Return what the sweep says should change, the surest first.

    Args:
        found: A comparison.
    """
    return tuple(_sentences(found))


def _sentences(found: Comparison) -> Iterator[str]:
    explained = found.explained
    reasons = {group.reason for group in found.groups if group.sick}
    for claim in explained.claims if explained else ():
        if claim.reason in reasons:
            yield f"Leave out {claim.where}: {claim.figures}."
    for place in found.faults:
        if place.node != UNNAMED and len(place.trials) >= _FEWEST_ON_NODE:
            gpu = f" (GPU {place.gpu})" if place.gpu else ""
            why = ", ".join(f"{reason} {n}" for reason, n in place.reasons.items())
            yield (
                f"Check node {place.node}{gpu}: {len(place.trials)} of the"
                f" {counted(place.ran)} known to have run there failed for its fault:"
                f" {why}."
            )
    cut = [look for look in found.first_looks if look.why.startswith("number ")]
    if cut:
        ids = ", ".join(look.trial.id for look in cut)
        how = "replay would have cut them" if found.replayed else "cut"
        yield (
            f"Look at {ids}: {how}, though among the best tenth. If that is wrong, set"
            " the rule to warn."
        )
    if found.replayed and not found.saved and found.avoidable:
        cuts, spent = counted(found.replayed), amount(found.avoidable, found.unit)
        yield (
            f"Give the next sweep the guard: by replay it cuts {cuts} and saves"
            f" {spent}, {found.avoidable / found.compute:.0%} of the compute."
        )
    unknown = sum(len(g.trials) for g in found.groups if g.reason == UNKNOWN)
    if unknown:
        yield (
            f"{counted(unknown)} ended without a recorded reason: add the guard's"
            " callback or pruner to the next sweep."
        )
    interrupted = [g for g in found.groups if g.outcome is Outcome.INTERRUPTED]
    if interrupted:
        count = sum(len(group.trials) for group in interrupted)
        yield f"{counted(count)} never ended: resume the sweep, or clean up after it."
