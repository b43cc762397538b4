"""Several sweeps side by side: before and after a change of the space or policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tune_guard.sweeps.claims import Share
from tune_guard.sweeps.explain_params import ALPHA, FEWEST_EACH, holm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.compare import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How often a reason came in each sweep.

    Args:
        reason: The reason.

        shares: Its share of each sweep's trials, in their order.

        p_values: Of Fisher's exact test against the first sweep, corrected for
            the number of tests; None for the first, and where both sweeps
            together have too few trials.
    """

    reason: str
    shares: tuple[Share, ...]
    p_values: tuple[float | None, ...]

    def changed(self, position: int) -> bool:
        """Whether the sweep at ``position`` differs from the first for sure."""
        p_value = self.p_values[position]
        return p_value is not None and p_value < ALPHA


def changes(sweeps: Sequence[Comparison]) -> tuple[Change, ...]:
    """Compare the share of each reason between sweeps, the commonest first.

    Args:
        sweeps: Comparisons, the one to hold the others against first.

    Raises:
        ModuleNotFoundError: If scipy is not installed: ``tune-guard[report]``.
    """
    reasons = dict.fromkeys(g.reason for sweep in sweeps for g in sweep.groups)
    rows = {reason: [_share(sweep, reason) for sweep in sweeps] for reason in reasons}
    tests = {
        (reason, i): _fisher(shares[0], shares[i])
        for reason, shares in rows.items()
        for i in range(1, len(shares))
        if min(shares[0].of, shares[i].of) >= FEWEST_EACH
    }
    corrected = dict(zip(tests, holm(list(tests.values())), strict=True))
    found = [
        Change(
            reason=reason,
            shares=tuple(shares),
            p_values=tuple(corrected.get((reason, i)) for i in range(len(shares))),
        )
        for reason, shares in rows.items()
    ]
    return tuple(sorted(found, key=lambda c: -sum(s.ratio for s in c.shares)))


def _share(sweep: Comparison, reason: str) -> Share:
    hits = sum(len(g.trials) for g in sweep.groups if g.reason == reason)
    return Share(hits, sweep.trials)


def _fisher(first: Share, second: Share) -> float:
    from scipy import stats

    table = [[share.hits, share.of - share.hits] for share in (first, second)]
    return float(stats.fisher_exact(table).pvalue)
