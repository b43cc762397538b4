from __future__ import annotations

from typing import Any

import pytest

from tests.unit.worker.support import policy
from tests.unit.worker.test_pace import Clock
from tune_guard.notices import Notices
from tune_guard.rules import SlowStep
from tune_guard.worker import machine as module
from tune_guard.worker.machine import PULSE_S, Machine
from tune_guard.worker.pace import Pace
from tune_guard.worker.streams import Streams


class FakeSampler:
    """Telemetry that the test makes up."""

    made: list[FakeSampler]

    def __init__(self, device: int, **more: Any) -> None:
        self.device = device
        self.uuid = f"GPU-{device}"
        self.lost = False
        self.closed = False
        self.made.append(self)

    def start(self) -> None:
        """Start nothing."""

    def since_pulse(self) -> dict[str, Any]:
        """Return what was seen."""
        return {"gpu_temperature_celsius": 70.0}

    since_report = since_pulse

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


@pytest.fixture(autouse=True)
def samplers(monkeypatch: pytest.MonkeyPatch) -> list[FakeSampler]:
    """Return the samplers that are made."""
    FakeSampler.made = []
    monkeypatch.setattr(module, "GpuSampler", FakeSampler)
    return FakeSampler.made


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands still."""
    return Clock()


def machine(clock: Clock, gpu: Any = "auto") -> Machine:
    """Return a machine at the beginning of a trial."""
    return Machine(gpu, Pace(clock), Notices())


def test_a_pulse_comes_every_ten_seconds(clock: Clock) -> None:
    """With the median times since the one before."""
    watched = machine(clock)
    watched.add(0.5, None)
    assert watched.pulse() is None
    clock.now += PULSE_S
    watched.add(0.5, 0.1)
    watched.add(9.0, 0.1)
    assert watched.pulse() == {"time_s": 10.0, "step_time_s": 0.5, "data_time_s": 0.1}
    assert watched.pulse() is None
    clock.now += PULSE_S
    assert watched.pulse() == {"time_s": 20.0}


def test_a_lost_gpu_does_not_wait(clock: Clock, samplers: list[FakeSampler]) -> None:
    """The next step hears of it."""
    watched = machine(clock, gpu=0)
    assert watched.pulse() is None
    samplers[0].lost = True
    assert watched.pulse() is not None


def test_the_gpu_of_the_loss_is_watched(
    clock: Clock, samplers: list[FakeSampler]
) -> None:
    """Once it is known, and only that one."""
    watched = machine(clock)
    watched.trains_on(None)
    assert samplers == []
    watched.trains_on(1)
    watched.trains_on(1)
    assert [s.device for s in samplers] == [1]
    assert watched.report()["gpu_uuid"] == "GPU-1"


@pytest.mark.parametrize(("gpu", "devices"), [("off", []), (3, [3]), ("auto", [1])])
def test_the_user_says_which_gpu(
    clock: Clock, samplers: list[FakeSampler], gpu: Any, devices: list[int]
) -> None:
    """A number of CUDA's, the loss's own, or none."""
    watched = machine(clock, gpu)
    watched.trains_on(1)
    assert [s.device for s in samplers] == devices


def test_closing_ends_the_sampler(clock: Clock, samplers: list[FakeSampler]) -> None:
    """Its thread must not outlive the trial."""
    machine(clock, gpu=0).close()
    assert samplers[0].closed


def test_slow_steps_stop_between_reports(clock: Clock) -> None:
    """Five pulses in a row of twice the typical step time, counted in steps."""
    streams = Streams(policy(SlowStep()), unit="report", trial_id="", notices=Notices())
    watched = machine(clock)
    stopped = []
    for pulse in range(12):
        clock.now += PULSE_S
        watched.add(0.1 if pulse < 6 else 0.5, None)
        signals = watched.pulse()
        assert signals is not None
        named = {**signals, "time_total_s": signals["time_s"]}
        stopped.append(streams.pulse(pulse * 100, named).stop)
    assert stopped.index(True) == 10
    assert (streams.verdict.reason, streams.verdict.step) == ("slow_step", 1000)
