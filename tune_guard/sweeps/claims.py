"""What can be said about a sweep's hyperparameters: shares, claims, silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tune_guard.sweeps.scoring import wilson

if TYPE_CHECKING:
    from tune_guard.sweeps.regions import Condition


class Share(NamedTuple):
    """How many of some trials ended for the reason.

    Args:
        hits: Trials that did.

        of: All of them.
    """

    hits: int
    of: int

    @property
    def ratio(self) -> float:
        """The share, from 0 to 1; 0 of none."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson interval of the share."""
        return wilson(self.hits, self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A region of the space in which trials end for one reason.

    Args:
        reason: The reason.

        conditions: One or two regions that hold together.

        inside: Share of the reason in the region, on trials that had no part in
            choosing it.

        outside: The same for all other trials.

        gap: Effect size: share of the reason's trials for which the first
            condition holds, less that of the other trials; from 0 to 1.

        p_value: The largest of the conditions', corrected for all tests.

        test: Name of the first condition's test.
    """

    reason: str
    conditions: tuple[Condition, ...]
    inside: Share
    outside: Share
    gap: float
    p_value: float
    test: str

    @property
    def where(self) -> str:
        """The region in words: ``lr > 0.03 and warmup ≤ 2``."""
        return " and ".join(map(str, self.conditions))

    @property
    def figures(self) -> str:
        """The shares in words: ``94% non_finite (47 of 50 trials, ...)``."""
        low, high = self.inside.interval
        return (
            f"{self.inside.ratio:.0%} {self.reason}"
            f" ({self.inside.hits} of {self.inside.of} trials, 95% interval"
            f" {low:.0%} to {high:.0%}); elsewhere {self.outside.ratio:.0%}"
            f" ({self.outside.hits} of {self.outside.of})"
        )

    def __str__(self) -> str:
        """Return the claim as one sentence."""
        return f"{self.where}: {self.figures}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What can be said about a sweep's hyperparameters, and what cannot.

    Args:
        claims: The claims, those that explain most trials first.

        tests: Number of tests for which the p-values are corrected.

        silent: Why nothing is said, by reason.
    """

    claims: tuple[Claim, ...] = ()
    tests: int = 0
    silent: Mapping[str, str] = field(default_factory=dict)
