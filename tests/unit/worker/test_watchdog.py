"""The watch in the training process: stacks of a training that has gone silent."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from tune_guard import Evidence, Policy, TrialGuard
from tune_guard.evidence.again import judge_again
from tune_guard.evidence.reader import find_bundles
from tune_guard.rules import Stalled
from tune_guard.worker.watchdog import StallWatch, rule_in, stacks

RULE = Stalled(timeout_s=100, first_report_s=300)
POLICY = Policy("loss", "min", rules=(RULE,))


class Called:
    """Somebody to call back."""

    def __init__(self) -> None:
        self.silences: list[tuple[float, bool]] = []

    def call(self, silent_s: float, reported: bool) -> None:
        """Note a silence."""
        self.silences.append((silent_s, reported))


@pytest.fixture
def called() -> Called:
    """Somebody to call back."""
    return Called()


def watch_of(called: Called) -> StallWatch:
    """Return a watch that heard of its trial at second 0; its thread is not started."""
    watch = StallWatch(RULE, called.call)
    watch._heard_s = 0.0
    return watch


def test_it_calls_shortly_before_it_is_too_long(called: Called) -> None:
    """At four fifths, once; the first report has its own time."""
    watch = watch_of(called)
    assert [watch.look(s) for s in (239.0, 240.0, 299.0)] == [True] * 3
    assert called.silences == [(240.0, False)]


def test_a_report_begins_a_new_silence(called: Called) -> None:
    """It is called again for the next one."""
    watch = watch_of(called)
    watch.look(250.0)
    watch.hear()
    watch._heard_s = 260.0
    for second in (300.0, 339.0, 340.0, 350.0):
        watch.look(second)
    assert called.silences == [(250.0, False), (80.0, True)]


def test_it_keeps_nobody_alive() -> None:
    """It has nobody to call when whoever is called is gone."""
    called = Called()
    watch = watch_of(called)
    assert watch.look(1.0)
    del called
    gc.collect()
    assert not watch.look(1000.0)


def test_a_guard_that_is_gone_is_watched_no_more() -> None:
    """In a process that goes on with the next trial."""
    guard = TrialGuard(Policy("loss", "min", rules=(Stalled(timeout_s=0.2),)))
    trial = weakref.ref(guard._trial)
    threads = [t for t in threading.enumerate() if t.name == "tune_guard-watchdog"]
    assert threads
    del guard
    gc.collect()
    assert trial() is None
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_without_the_rule_there_is_no_thread() -> None:
    """It costs nothing who does not ask for it."""
    before = threading.active_count()
    TrialGuard(Policy.default("loss", "min"))
    assert threading.active_count() == before
    off = Policy("loss", "min", rules=(RULE,), actions={"stalled": "off"})
    assert (rule_in(POLICY), rule_in(off)) == (RULE, None)


def test_stacks_show_where_every_thread_is() -> None:
    """By name, with the line that it waits in, and without the caller's own."""
    release = threading.Event()

    def waits_for_the_data_loader() -> None:
        release.wait()

    thread = threading.Thread(target=waits_for_the_data_loader, name="loader")
    thread.start()
    try:
        text = stacks()
    finally:
        release.set()
        thread.join()
    assert "Thread loader" in text
    assert "in waits_for_the_data_loader" in text
    assert "test_stacks_show_where_every_thread_is" not in text


def test_a_silence_leaves_a_bundle_with_the_stacks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Record, observations and stacks; the guard goes on if training does."""
    guard = TrialGuard(POLICY, evidence=Evidence(folder=tmp_path))
    guard.check_epoch(1.0)
    guard._trial._gone_silent(85.0, True)
    (bundle,) = find_bundles(str(tmp_path))
    record = bundle.record()
    assert record is not None
    assert (record.reason, record.step, record.value) == ("stalled", 0, 85.0)
    files = {f["file"] for f in bundle.manifest["files"]}
    assert {"stacks.txt", "observations.jsonl"} <= files
    assert not files & {"modules.json", "training.pt", "rng.json"}
    assert "came from outside the rules" in judge_again(bundle).why_not
    assert [m for m in caplog.messages if "No report for 85 s since step 0" in m]
    assert not guard.check_epoch(0.9).stop
    guard.close()


def test_a_trial_that_was_cut_is_not_silent(tmp_path: Path) -> None:
    """What follows its stop is its end."""
    guard: Any = TrialGuard(
        Policy.default("loss", "min"), evidence=Evidence(folder=tmp_path)
    )
    guard.check_epoch(float("nan"))
    guard._trial._stall_rule = RULE
    guard._trial._gone_silent(85.0, True)
    assert len(find_bundles(str(tmp_path))) == 1


def test_a_real_silence_is_noticed(tmp_path: Path) -> None:
    """By the thread itself, while the training waits for something."""
    rules = (Stalled(timeout_s=0.5, first_report_s=0.5),)
    guard = TrialGuard(
        Policy("loss", "min", rules=rules), evidence=Evidence(folder=tmp_path)
    )
    noticed = threading.Event()
    keep = guard._trial.keeper.keep_stacks
    guard._trial.keeper.keep_stacks = lambda *a: keep(*a) and (noticed.set() or "x")  # type: ignore[method-assign,func-returns-value]
    assert noticed.wait(60)
    (bundle,) = find_bundles(str(tmp_path))
    assert b"noticed.wait" in (bundle.bytes_of("stacks.txt") or b"")
    guard.close()
