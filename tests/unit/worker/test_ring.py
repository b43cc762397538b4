from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.unit.worker.support import NAN, guarded, policy
from tune_guard.notices import Notices
from tune_guard.rules import NonFinite
from tune_guard.worker.machine import Machine
from tune_guard.worker.pace import Pace
from tune_guard.worker.reader import Given, StepReader
from tune_guard.worker.ring import Reading, Ring, Transfer
from tune_guard.worker.steps import StepWatch
from tune_guard.worker.streams import Streams


class Device:
    """A device that finishes a step's work when the test says so."""

    def __init__(self) -> None:
        self.finished = 0
        self.started: list[FakeTransfer] = []
        self.waits = 0

    def copy(self, tensors: Any) -> FakeTransfer:
        """Start a transfer."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        transfer = FakeTransfer(self, len(self.started), flat)
        self.started.append(transfer)
        return transfer


class FakeTransfer:
    """A copy under way on the fake device; each step takes it a quarter second."""

    def __init__(self, device: Device, number: int, content: torch.Tensor) -> None:
        self.device = device
        self.number = number
        self.content = content

    def done(self) -> bool:
        """Whether the device got so far."""
        return self.number < self.device.finished

    def wait(self) -> None:
        """Let the device get so far."""
        self.device.waits += 1
        self.device.finished = max(self.device.finished, self.number + 1)

    def numbers(self) -> torch.Tensor:
        """Return what was copied."""
        assert self.done(), "read before it arrived"
        return self.content

    def since(self, earlier: Transfer) -> float:
        """Return seconds on the device."""
        assert isinstance(earlier, FakeTransfer)
        return 0.25 * (self.number - earlier.number)


@pytest.fixture
def device() -> Device:
    """Return a device that has finished nothing."""
    return Device()


def put(ring: Ring, step: int, *numbers: float, **more: Any) -> None:
    """Put a step's loss into a ring."""
    ring.put(Reading(step, names=("loss",), **more), [torch.tensor(numbers)])


def steps(readings: list[Reading]) -> list[int]:
    """Return the steps of some readings."""
    return [reading.step for reading in readings]


def test_nothing_is_read_before_it_arrived(device: Device) -> None:
    """The ring is asked every step and waits for none of two."""
    ring = Ring(device.copy)
    put(ring, 0, 1.0)
    assert ring.take() == []
    put(ring, 1, 0.9)
    assert ring.take() == []
    assert device.waits == 0


def test_what_arrived_is_read_in_order(device: Device) -> None:
    """Several steps at once, if the device caught up."""
    ring = Ring(device.copy)
    put(ring, 0, 1.0)
    put(ring, 1, 0.9)
    device.finished = 2
    taken = ring.take()
    assert steps(taken) == [0, 1]
    assert [reading.numbers()["loss"] for reading in taken] == pytest.approx([1.0, 0.9])


def test_a_step_is_at_most_two_late(device: Device) -> None:
    """Only a host that ran further ahead waits, for the oldest step."""
    ring = Ring(device.copy)
    late = []
    for step in range(6):
        put(ring, step, 1.0)
        late += [step - taken for taken in steps(ring.take())]
    assert late == [2, 2, 2, 2]


def test_a_device_that_keeps_up_is_never_waited_for(device: Device) -> None:
    """One step behind is what queued work looks like."""
    ring = Ring(device.copy)
    for step in range(20):
        put(ring, step, 1.0)
        device.finished = step
        ring.take()
    assert device.waits == 0


def test_all_can_be_waited_for(device: Device) -> None:
    """At a report nothing stays behind."""
    ring = Ring(device.copy)
    put(ring, 0, 1.0)
    put(ring, 1, 1.0)
    assert steps(ring.take(most_late=0)) == [0, 1]


def test_a_reading_without_tensors_keeps_its_place(device: Device) -> None:
    """It waits behind the step before."""
    ring = Ring(device.copy)
    put(ring, 0, 1.0)
    ring.put(Reading(1, known={"loss": 0.5}), [])
    assert ring.take() == []
    device.finished = 1
    assert steps(ring.take()) == [0, 1]


def test_the_device_times_its_own_steps(device: Device) -> None:
    """What the host measured is replaced, but for a step after a break."""
    ring = Ring(device.copy)
    put(ring, 0, 1.0)
    put(ring, 1, 1.0, step_time_s=9.0)
    put(ring, 2, 1.0)
    times = [reading.step_time_s for reading in ring.take(most_late=0)]
    assert times == [None, 0.25, None]


def test_numbers_behind_the_named_ones_are_kept_apart(device: Device) -> None:
    """They are the norms of single gradients."""
    ring = Ring(device.copy)
    put(ring, 0, 1.0, 3.0, 4.0)
    (reading,) = ring.take(most_late=0)
    rest = reading.rest()
    assert reading.numbers() == {"loss": 1.0}
    assert rest is not None
    assert rest.tolist() == [3.0, 4.0]


class OnDevice(torch.Tensor):
    """A tensor that says it lies on a GPU."""

    is_cuda = True  # type: ignore[assignment]


def on_device(value: float) -> torch.Tensor:
    """Return a scalar of the fake device."""
    return torch.tensor(value).as_subclass(OnDevice)


def watch(device: Device, *, sync: bool = False) -> StepWatch:
    """Return the watch over a trial whose numbers lie on the fake device."""
    notices, pace = Notices(), Pace()
    made = policy(NonFinite())
    return StepWatch(
        made,
        Streams(made, unit="report", trial_id="", notices=notices),
        reader=StepReader(notices, ring=Ring(device.copy)),
        machine=Machine("off", pace, notices),
        pace=pace,
        notices=notices,
        sync=sync,
    )


def take(watching: StepWatch, loss: float) -> bool:
    """Take a step; return whether it is stopped."""
    verdict = watching.take(None, on_device(loss), Given())
    assert verdict is not None
    return verdict.stop


def test_a_late_verdict_says_for_which_step_it_holds(device: Device) -> None:
    """The bad step is 1; the loop hears of it at 3 at the latest."""
    watching = watch(device)
    stopped = [take(watching, loss) for loss in (1.0, NAN, NAN, NAN)]
    assert stopped == [False, False, False, True]
    assert watching.streams.verdict.step == 1


def test_in_sync_a_verdict_is_never_late(device: Device) -> None:
    """Each step is waited for."""
    watching = watch(device, sync=True)
    assert [take(watching, loss) for loss in (1.0, NAN)] == [False, True]
    assert watching.streams.verdict.step == 1
    assert device.waits == 2


def test_a_report_waits_for_the_steps_before_it(device: Device) -> None:
    """A bad step is not left behind at the end of an epoch."""
    watching = watch(device)
    assert not take(watching, NAN)
    assert watching.finish().step == 0


def test_nothing_is_copied_for_numbers_on_the_host() -> None:
    """A loss on the CPU takes no part in the ring's transfers."""
    guard = guarded()
    ring = guard._trial.steps.reader.ring
    guard.check_step(torch.tensor(1.0))
    assert len(ring) == 0
