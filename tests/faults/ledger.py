"""Expected verdicts against recorded ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Verdict = tuple[str, int | None]
"""Reason, and the step for which it holds."""


@dataclass(slots=True)
class Count:
    """What became of the verdicts of one fault.

    Args:
        sweeps: Sweeps that were run.

        expected: Verdicts that must be recorded.

        recorded: Those that are, with the right reason at the right step.

        lost: Those that are not.

        duplicated: Records beyond the one that a trial has, and records of trials
            that must have none.

        remarks: What is wrong, one phrase each.
    """

    sweeps: int = 0
    expected: int = 0
    recorded: int = 0
    lost: int = 0
    duplicated: int = 0
    remarks: list[str] = field(default_factory=list)

    def __add__(self, other: Count) -> Count:
        """Return the sum of two counts."""
        names = ("sweeps", "expected", "recorded", "lost", "duplicated")
        sums = [getattr(self, name) + getattr(other, name) for name in names]
        return Count(*sums, [*self.remarks, *other.remarks])


def compare(
    expected: Mapping[Any, Verdict | None],
    found: Iterable[tuple[Any, Verdict]],
) -> Count:
    """Hold the records that were found against those that must be there.

    Args:
        expected: For each trial its verdict; None where it must have none.

        found: Trial and verdict of each record; an empty reason is no verdict.
    """
    count = Count(sweeps=1)
    records = Counter((trial, verdict) for trial, verdict in found if verdict[0])
    for trial, verdict in expected.items():
        own = {v: n for (t, v), n in records.items() if t == trial}
        if verdict is None:
            count.duplicated += sum(own.values())
        else:
            count.expected += 1
            hit = own.get(verdict, 0) > 0
            count.recorded += hit
            count.lost += not hit
            count.duplicated += max(0, sum(own.values()) - 1)
        if own != ({} if verdict is None else {verdict: 1}):
            count.remarks.append(f"{trial}: expected {verdict}, found {own}")
    unknown = {trial for trial, _ in records} - expected.keys()
    count.duplicated += len(unknown)
    count.remarks += [f"{trial}: no such trial was run" for trial in unknown]
    return count
