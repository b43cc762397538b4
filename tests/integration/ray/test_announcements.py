"""What a real sweep announces: every trial's start and end, once, and lost attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.ray.support import POLICY
from tune_guard.events import (
    Event,
    HealthSample,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialStarted,
)
from tune_guard.ray import announcer

FATES = ["nan", "completes", "raises", "retried", "machine"]


def faulty(config: dict[str, Any]) -> None:
    """Train with a fate; a marker on disk counts the attempts."""
    from ray import tune

    from tune_guard import StopRecord
    from tune_guard.verdict import Blame
    from tune_guard.worker import HardwareFault

    fate, marker = config["fate"], Path(config["marks"]) / config["fate"]
    attempt = len(marker.read_text()) + 1 if marker.exists() else 1
    marker.write_text("x" * attempt)
    for step in range(1, 5):
        bad = fate == "nan" and step == 3
        tune.report({"loss": float("nan") if bad else 1.0 / step, "gpu_uuid": "GPU-1"})
        if step == 2 and fate == "raises":
            msg = "a bug"
            raise ValueError(msg)
        if step == 2 and fate == "retried" and attempt == 1:
            msg = "a hiccup"
            raise OSError(msg)
        if step == 2 and fate == "machine":
            record = StopRecord(
                reason="gpu_fault", step=2, blame=Blame.INFRASTRUCTURE, message="lost"
            )
            raise HardwareFault(record.message, record)


@pytest.fixture(scope="module")
def heard(sweep: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """Run one sweep with somebody listening, and return what it said."""
    from ray import tune

    events: list[Event] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(announcer, "announce", events.append)
        patch.setattr(announcer, "is_on", lambda: True)
        patch.setattr(announcer, "wants_samples", lambda: True)
        sweep(
            faulty,
            FATES,
            space={
                "fate": tune.grid_search(FATES),
                "marks": str(tmp_path_factory.mktemp("marks")),
                "nested": {"lr": 0.1},
            },
            failure_config=tune.FailureConfig(max_failures=1),
        )
    return events


def of(heard: list[Event], kind: type) -> list[Any]:
    """Return the events of one kind."""
    return [event for event in heard if isinstance(event, kind)]


def fates(heard: list[Event]) -> dict[str, str]:
    """Return the fate of each trial by its id."""
    return {event.trial: event.params["fate"] for event in of(heard, TrialStarted)}


def test_a_sweep_begins_and_ends_once_under_its_name(heard: list[Event]) -> None:
    """First and last of all."""
    assert isinstance(heard[0], SweepStarted)
    assert isinstance(heard[-1], SweepEnded)
    assert len(of(heard, SweepStarted)) == len(of(heard, SweepEnded)) == 1
    assert {event.sweep for event in heard} == {"sweep"}  # type: ignore[union-attr]
    assert POLICY.metric == heard[-1].metric
    assert heard[-1].best_value == 0.25
    assert not heard[-1].interrupted


def test_each_trial_starts_once_though_it_is_tried_again(heard: list[Event]) -> None:
    """With its hyperparameters, nested ones flat."""
    started = of(heard, TrialStarted)
    assert sorted(fates(heard).values()) == sorted(FATES)
    assert len(started) == len(FATES)
    assert all(event.params["nested/lr"] == 0.1 for event in started)


def test_each_trial_ends_once_with_its_reason(heard: list[Event]) -> None:
    """Who ended it, and whose fault it was."""
    names = fates(heard)
    ended = [event for event in of(heard, TrialEnded) if event.final]
    assert len(ended) == len(FATES)
    found = {
        names[event.trial]: (
            str(event.record.outcome),
            event.record.reason,
            str(event.record.blame or ""),
        )
        for event in ended
    }
    assert found["nan"] == ("guard", "non_finite", "config")
    assert found["completes"] == ("completed", "", "")
    assert found["raises"] == ("error", "error:ValueError", "")
    assert found["retried"] == ("completed", "", "")
    assert found["machine"][1:] == ("gpu_fault", "infrastructure")
    assert all(event.time_s > 0 for event in ended)


def test_attempts_that_are_tried_again_are_told_as_such(heard: list[Event]) -> None:
    """Each with its reason; a machine's fault is one at the first attempt already."""
    names = fates(heard)
    lost = [event for event in of(heard, TrialEnded) if not event.final]
    found = {names[event.trial]: event.record.reason for event in lost}
    assert found == {
        "raises": "error:ValueError",
        "retried": "error:OSError",
        "machine": "gpu_fault",
    }
    assert len(lost) == 3


def test_margins_come_with_the_reports(heard: list[Event]) -> None:
    """At their steps."""
    names = fates(heard)
    samples = [s for s in of(heard, HealthSample) if names[s.trial] == "completes"]
    assert [sample.step for sample in samples] == [1, 2, 3, 4]
    assert all(sample.margins["non_finite"] == 0.0 for sample in samples)


def test_a_guard_inside_a_worker_leaves_telling_to_the_driver(cluster: None) -> None:
    """Also in a class, where Ray has no session."""
    import ray

    from tune_guard import TrialGuard

    @ray.remote
    class Worker:
        def alone(self) -> bool:
            return TrialGuard(POLICY, gpu="off")._trial._announcer is None

    assert ray.get(Worker.remote().alone.remote())  # type: ignore[attr-defined]
    assert TrialGuard(POLICY, gpu="off")._trial._announcer is not None
