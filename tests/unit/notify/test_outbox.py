"""What is kept until it is delivered."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tune_guard.notices import Notices
from tune_guard.notify import outbox
from tune_guard.notify.alert import Alert, Kind
from tune_guard.notify.digest import readable
from tune_guard.notify.outbox import Outbox
from tune_guard.notify.outbox_files import left_behind, parse


def alert(name: str) -> Alert:
    """Return an alert on one trial."""
    return Alert(kind=Kind.FAULT, trials=(name,), reason="gpu_fault")


def box(folder: Path, *marks: str) -> Outbox:
    """Return an outbox for services."""
    return Outbox(folder, marks, Notices())


def names(alerts: list[Alert]) -> list[str]:
    """Return the trials."""
    return [trial for found in alerts for trial in found.trials]


def on_disk(folder: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return what waits on disk, and for whom."""
    return [
        (entry.alert.trials[0], entry.marks)
        for _, _, entries in left_behind(folder)
        for entry in entries
    ]


def test_each_service_takes_at_its_own_pace(tmp_path: Path) -> None:
    """What one has taken waits for the other."""
    kept = box(tmp_path, "a", "b")
    for name in ("1", "2", "3"):
        kept.add(alert(name))
    kept.settle("a", 2)
    assert names(kept.waiting("a", 9)) == ["3"]
    assert names(kept.waiting("b", 2)) == ["1", "2"]
    assert on_disk(tmp_path) == [("1", ("b",)), ("2", ("b",)), ("3", ("a", "b"))]


def test_the_file_shrinks_when_all_is_delivered(tmp_path: Path) -> None:
    """A sweep of days does not fill the disk, and leaves nothing behind."""
    kept = box(tmp_path, "a")
    for _ in range(3):
        kept.add(alert("1"))
        kept.settle("a", 1)
    (path,) = tmp_path.glob("*.jsonl")
    assert path.stat().st_size == 0
    kept.close()
    assert list(tmp_path.glob("*.jsonl")) == []


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    """A process without an alert leaves no trace."""
    kept = box(tmp_path / "state", "a")
    kept.adopt()
    kept.close()
    assert not (tmp_path / "state").exists()


def test_a_dead_process_is_taken_over_for_the_services_that_are_ours(
    tmp_path: Path,
) -> None:
    """The rest stays for who sends there."""
    dead = box(tmp_path, "a", "b")
    dead.add(alert("1"))
    dead.add(alert("2"))
    dead.settle("a", 1)
    dead.close()
    heir = box(tmp_path, "a")
    assert heir.adopt() == 1
    assert names(heir.waiting("a", 9)) == ["2"]
    assert sorted(on_disk(tmp_path)) == [("1", ("b",)), ("2", ("a",)), ("2", ("b",))]
    other = box(tmp_path, "b")
    assert other.adopt() == 2
    assert heir.adopt() == 0


def test_a_living_process_is_left_alone(tmp_path: Path) -> None:
    """Its file is locked."""
    living = box(tmp_path, "a")
    living.add(alert("1"))
    assert box(tmp_path, "a").adopt() == 0
    assert [alive for _, alive, _ in left_behind(tmp_path)] == [True]


def test_a_full_memory_goes_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is sent by the next process, and nothing twice."""
    monkeypatch.setattr(outbox, "MOST_IN_MEMORY", 2)
    kept = box(tmp_path, "a")
    for name in ("1", "2", "3"):
        kept.add(alert(name))
    kept.settle("a", 2)
    kept.add(alert("4"))
    assert kept.waiting("a", 9) == []
    kept.close()
    heir = box(tmp_path, "a")
    heir.adopt()
    assert names(heir.waiting("a", 9)) == ["3", "4"]


def test_a_full_disk_is_said_once_and_memory_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing raises, and all is delivered while the process lives."""
    monkeypatch.setattr(outbox, "MOST_BYTES", 300)
    notices = Notices()
    kept = Outbox(tmp_path, ["a"], notices)
    for number in range(9):
        kept.add(alert(str(number)))
    assert names(kept.waiting("a", 99)) == [str(number) for number in range(9)]
    kept.settle("a", 9)
    assert list(notices.messages) == ["outbox"]


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    """Nobody can make the guard write elsewhere."""
    kept = box(tmp_path, "a")
    kept.add(alert("1"))
    (path,) = tmp_path.glob("*.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    target = tmp_path / "target"
    (tmp_path / "x-1-evil.jsonl").symlink_to(target)
    box(tmp_path, "a").adopt()
    assert not target.exists()


def test_a_claim_is_given_once_and_again_half_a_day_later(tmp_path: Path) -> None:
    """Several processes see the same first NaN; the next run has its own."""
    one, other = box(tmp_path, "a"), box(tmp_path, "a")
    assert [one.claim("x"), other.claim("x"), other.claim("y")] == [True, False, True]
    for path in (tmp_path / "said").iterdir():
        os.utime(path, (time.time() - 50_000, time.time() - 50_000))
    assert [other.claim("x"), one.claim("x")] == [True, False]
    assert box(Path("/proc/nowhere"), "a").claim("x")


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 1e999, "for": ["m"], "alert": {"kind": "cut"}}',
        '{"id": 1, "for": ["m"], "alert": {"kind": "cut", "sweep": ["s"]}}',
        '{"id": 1, "for": ["m"], "alert": {"kind": "cut", "time": 5}}',
        '{"to": "m", "until": 1e999}',
    ],
)
def test_a_line_that_was_written_by_hand_is_passed_over(line: str) -> None:
    """The alert behind it is read."""
    good = '{"id": 2, "for": ["m"], "alert": {"kind": "cut", "sweep": "s"}}'
    assert [entry.id for entry in parse(f"{line}\n{good}")] == [2]


def test_facts_that_no_language_has_words_for_are_left_out() -> None:
    """Also where only one of them asks for the fact."""
    facts = {"metric": "loss", "value": 1.5, "threshold": ["x"], "host": ["y"]}
    alert = readable(Alert(kind=Kind.CUT, sweep="s", facts=facts))
    assert alert.facts == {}
