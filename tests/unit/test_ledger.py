"""The ledger of injected faults counts what is lost and what is told twice."""

from __future__ import annotations

import pytest

from tests.faults.ledger import Count, Verdict, compare

NAN: Verdict = ("non_finite", 3)
EXPECTED = {"sick": NAN, "healthy": None}
NONE: Verdict = ("", None)


@pytest.mark.parametrize(
    ("found", "recorded", "lost", "duplicated"),
    [
        ([("sick", NAN), ("healthy", NONE)], 1, 0, 0),
        ([("sick", NONE), ("healthy", NONE)], 0, 1, 0),
        ([("sick", ("non_finite", 4))], 0, 1, 0),
        ([("sick", ("plateau", 3))], 0, 1, 0),
        ([("sick", NAN), ("sick", NAN)], 1, 0, 1),
        ([("sick", NAN), ("sick", ("plateau", 5))], 1, 0, 1),
        ([("sick", NAN), ("healthy", NAN)], 1, 0, 1),
        ([("sick", NAN), ("stranger", NAN)], 1, 0, 1),
        ([], 0, 1, 0),
    ],
    ids=[
        "right",
        "missing",
        "wrong step",
        "wrong reason",
        "twice",
        "two",
        "healthy",
        "stranger",
        "nothing",
    ],
)
def test_each_wrong_record_counts(
    found: list[tuple[str, Verdict]], recorded: int, lost: int, duplicated: int
) -> None:
    """And each is described, unless all is right."""
    count = compare(EXPECTED, found)
    assert (count.expected, count.sweeps) == (1, 1)
    assert (count.recorded, count.lost, count.duplicated) == (
        recorded,
        lost,
        duplicated,
    )
    assert bool(count.remarks) == bool(lost or duplicated)


def test_counts_add_up() -> None:
    """The last line of the table."""
    one = Count(1, 2, 1, 1, 0, ["a"])
    assert one + Count(1, 1, 1, 0, 2, ["b"]) == Count(2, 3, 2, 1, 2, ["a", "b"])
