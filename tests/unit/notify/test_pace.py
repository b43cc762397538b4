"""A robot's limit, over all processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tune_guard.notify.pace import SLACK_S, Pace
from tune_guard.notify.service import Limit

LIMIT = Limit(count=3, per_s=60.0, silence_s=600.0)


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Hand:
    """The clock."""
    return Hand()


def test_so_many_leave_at_once_and_the_next_one_waits(
    tmp_path: Path, clock: Hand
) -> None:
    """Until the first of them counts no more."""
    pace = Pace(tmp_path / "x.pace", LIMIT, clock)
    assert [pace.reserve() for _ in range(4)] == [0.0, 0.0, 0.0, 60.0 + SLACK_S]
    clock.now += 60.0
    assert pace.reserve() == SLACK_S
    clock.now += SLACK_S
    assert pace.reserve() == 0.0


def test_two_processes_count_together(tmp_path: Path, clock: Hand) -> None:
    """The file is all that they share."""
    one, other = (Pace(tmp_path / "x.pace", LIMIT, clock) for _ in range(2))
    assert [one.reserve(), other.reserve(), one.reserve()] == [0.0, 0.0, 0.0]
    assert other.reserve() > 0.0


def test_a_silence_holds_for_all(tmp_path: Path, clock: Hand) -> None:
    """Who was told to wait tells the others."""
    one, other = (Pace(tmp_path / "x.pace", LIMIT, clock) for _ in range(2))
    one.silence(600.0)
    assert other.reserve() == 600.0
    clock.now += 600.0
    assert other.reserve() == 0.0


def test_a_clock_that_was_set_back_stops_nothing_for_ever(
    tmp_path: Path, clock: Hand
) -> None:
    """A day back: no wait is longer than an hour."""
    pace = Pace(tmp_path / "x.pace", LIMIT, clock)
    for _ in range(3):
        pace.reserve()
    pace.silence(600.0)
    clock.now -= 86_400.0
    assert pace.reserve() <= 3600.0
    clock.now += 3600.0
    assert pace.reserve() == 0.0


@pytest.mark.parametrize("content", [b"[", b"{}", b'["x", 1]', b"\xff\xff", b"null"])
def test_a_torn_file_counts_as_full(
    tmp_path: Path, clock: Hand, content: bytes
) -> None:
    """Better a minute late than ten minutes silent."""
    path = tmp_path / "x.pace"
    path.write_bytes(content)
    pace = Pace(path, LIMIT, clock)
    assert pace.reserve() == 60.0 + SLACK_S
    clock.now += 60.0 + SLACK_S
    assert pace.reserve() == 0.0


def test_without_a_file_a_process_counts_for_itself(clock: Hand) -> None:
    """Nothing raises."""
    pace = Pace(Path("/proc/nowhere/x.pace"), LIMIT, clock)
    assert [pace.reserve() for _ in range(3)] == [0.0, 0.0, 0.0]
    assert pace.reserve() > 0.0
