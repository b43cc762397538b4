"""GPU telemetry through the real pynvml, over a stub of NVML that plays recordings."""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tune_guard import Policy, TrialGuard
from tune_guard.notices import Notices
from tune_guard.rules import GpuFault, NonFinite, ThermalThrottle
from tune_guard.worker.gpu.sampler import GpuSampler

Play = Callable[..., None]

A = "GPU-aaaa1111-0000-0000-0000-000000000000"
B = "GPU-bbbb2222-0000-0000-0000-000000000000"


@pytest.fixture
def notices() -> Notices:
    """Return notices of their own."""
    return Notices()


@pytest.fixture
def sampler(notices: Notices) -> Iterator[GpuSampler]:
    """Return a sampler without its thread: the test looks by itself."""
    made = GpuSampler(0, notices=notices)
    yield made
    made.close()


def looks(sampler: GpuSampler, play: Play, *ticks: int) -> dict[str, Any]:
    """Look at some samples of the recording; return what a report would carry."""
    assert sampler.open()
    for tick in ticks:
        play(tick=tick)
        sampler.look()
    return sampler.since_report()


def watched(sampler: GpuSampler, *rules: Any) -> TrialGuard:
    """Return a guard whose machine is looked at by the test."""
    guard = TrialGuard(Policy(metric="loss", mode="min", rules=rules), gpu="off")
    guard._trial.steps.machine._sampler = sampler
    return guard


# ---------------------------------------------------------------- what is read


def test_a_healthy_gpu_tells_all(nvml: Play, sampler: GpuSampler) -> None:
    """Every value arrives, in its unit, summed up over the samples."""
    nvml("healthy")
    assert looks(sampler, nvml, 0, 1, 2) == {
        "gpu_temperature_celsius": 62.0,
        "gpu_clock_mhz": 1980.0,
        "gpu_utilization_ratio": pytest.approx(0.98),
        "gpu_power_watts": 650.0,
        "gpu_memory_used_bytes": 45_000_000_000,
        "gpu_reasons": 0,
        "gpu_thermal_ratio": 0.0,
        "gpu_ecc_uncorrected": 2,
        "gpu_throttled_s": 0.0,
    }
    assert sampler.uuid == A


def test_what_is_not_supported_is_unknown(
    nvml: Play, sampler: GpuSampler, notices: Notices
) -> None:
    """NotSupported and FunctionNotFound alike: None, never 0, one notice each."""
    nvml("partial")
    assert looks(sampler, nvml, 1, 2, 3) == {
        "gpu_temperature_celsius": 60.0,
        "gpu_clock_mhz": 1500.0,
    }
    named = [topic for topic in notices.messages if topic.startswith("nvml:")]
    assert named == [
        "nvml:memory",
        "nvml:utilization",
        "nvml:power",
        "nvml:clock event reasons",
        "nvml:ECC errors",
        "nvml:thermal violation time",
        "nvml:XID events",
    ]


def test_an_error_that_passes_costs_one_value(
    nvml: Play, sampler: GpuSampler, notices: Notices
) -> None:
    """It is unknown for that sample, and asked again."""
    nvml("partial")
    assert looks(sampler, nvml, 0) == {"gpu_temperature_celsius": 60.0}
    assert looks(sampler, nvml, 1)["gpu_clock_mhz"] == 1500.0
    assert sum("unknown for now" in m for m in notices.messages.values()) == 1


def test_a_driver_that_goes_away_is_named_once(
    nvml: Play, sampler: GpuSampler, notices: Notices
) -> None:
    """After three looks at which nothing answered; no value is made up."""
    nvml("driver_gone")
    assert looks(sampler, nvml, 0, 1)["gpu_temperature_celsius"] == 60.0
    assert looks(sampler, nvml, 2, 3, 4, 5) == {}
    assert [t for t in notices.messages if t.startswith(("gpu", "nvml"))] == ["gpu"]
    assert "every call failed" in notices.messages["gpu"]


def test_a_driver_that_is_not_loaded_is_named(
    nvml: Play, sampler: GpuSampler, notices: Notices
) -> None:
    """Training goes on without telemetry."""
    nvml("no_driver")
    assert not sampler.open()
    sampler.look()
    assert sampler.since_report() == {}
    assert "DriverNotLoaded" in notices.messages["gpu"]


READ = """
import json, os
from tune_guard.notices import Notices
from tune_guard.worker.gpu.sampler import GpuSampler
notices = Notices()
sampler = GpuSampler(0, notices=notices)
sampler.open(); sampler.look()
print(json.dumps([sampler.since_report(), list(notices.messages.values())]))
"""


def in_a_process(code: str, library: Path | None, recording: Path) -> Any:
    """Run code in a process that finds the library by its usual name."""
    environment = {**os.environ, "NVML_STUB": str(recording), "NVML_STUB_TICK": "0"}
    environment["LD_LIBRARY_PATH"] = "" if library is None else str(library)
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env=environment,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


RECORDINGS = Path(__file__).parent / "nvml" / "recordings"


@pytest.mark.parametrize("driver", ["OLD_DRIVER", "NEW_DRIVER"])
def test_drivers_that_lack_functions_are_read(
    nvml_builds: Callable[..., Path], driver: str
) -> None:
    """The names of before release 535, and those that CUDA 14 leaves."""
    library = nvml_builds(f"-D{driver}")
    found, notices = in_a_process(READ, library, RECORDINGS / "thermal.txt")
    assert found["gpu_temperature_celsius"] == 70.0
    assert found["gpu_reasons"] == 0
    unsupported = [n for n in notices if "does not report" in n]
    assert len(unsupported) == (driver == "NEW_DRIVER")


def test_a_machine_without_nvml_is_named() -> None:
    """No library at all: one notice, no exception."""
    found, notices = in_a_process(READ, None, RECORDINGS / "healthy.txt")
    if found:
        pytest.skip("this machine has NVML")
    assert len(notices) == 1
    assert "LibraryNotFound" in notices[0]


# ------------------------------------------------------------ which GPU it is


@pytest.mark.parametrize(
    ("visible", "uuid"),
    [
        (B, B),
        ("GPU-bbbb", B),
        ("1", B),
        ("MIG-5f5f5f5f-1111-2222-3333-444444444444", B),
        ("0", A),
    ],
)
def test_the_visible_gpu_is_watched(
    nvml: Play,
    sampler: GpuSampler,
    monkeypatch: pytest.MonkeyPatch,
    visible: str,
    uuid: str,
) -> None:
    """By UUID, prefix, number; a slice's values are those of its GPU."""
    nvml("two_gpus")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    heat = looks(sampler, nvml, 0)["gpu_temperature_celsius"]
    assert (sampler.uuid, heat) == (uuid, 90.0 if uuid == B else 40.0)


@pytest.mark.parametrize("visible", ["GPU-zzzz", "5", "MIG-ffff"])
def test_an_unknown_gpu_is_not_watched(
    nvml: Play,
    sampler: GpuSampler,
    notices: Notices,
    monkeypatch: pytest.MonkeyPatch,
    visible: str,
) -> None:
    """Telemetry is unavailable, with one notice; never that of GPU 0."""
    nvml("two_gpus")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert not sampler.open()
    assert not sampler.open()
    assert (sampler.uuid, sampler.since_report()) == ("", {})
    assert list(notices.messages) == ["gpu"]


def test_devices_in_another_order_are_not_mixed_up(
    nvml: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA's device 0 is the fast GPU, NVML's the one in the first slot."""
    nvml("unlike_gpus")
    unsure = GpuSampler(0, notices=Notices())
    assert not unsure.open()
    told = GpuSampler(0, uuid=B, notices=Notices())
    assert looks(told, nvml, 0)["gpu_temperature_celsius"] == 90.0
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    by_bus = GpuSampler(0, notices=Notices())
    assert looks(by_bus, nvml, 0)["gpu_temperature_celsius"] == 40.0


def test_cudas_name_of_a_slice_is_understood(nvml: Play) -> None:
    """CUDA gives a slice's UUID without saying that it is one."""
    nvml("two_gpus")
    sampler = GpuSampler(
        0, uuid="GPU-5f5f5f5f-1111-2222-3333-444444444444", notices=Notices()
    )
    assert looks(sampler, nvml, 0)["gpu_temperature_celsius"] == 90.0
    assert sampler.uuid == B


# ------------------------------------------------------------- what is judged


def epochs(guard: TrialGuard, sampler: GpuSampler, play: Play, count: int) -> list[str]:
    """Report once a sample; return the reason after each."""
    assert sampler.open()
    reasons = []
    for tick in range(count):
        play(tick=tick)
        sampler.look()
        reasons.append(guard.check_epoch(1.0).reason)
    return reasons


def test_sustained_heat_stops(nvml: Play, sampler: GpuSampler) -> None:
    """A lone slowdown at 5 does not; the fifth hot report in a row, 14, does."""
    nvml("thermal")
    guard = watched(sampler, ThermalThrottle(consecutive=5))
    reasons = epochs(guard, sampler, nvml, 16)
    assert reasons[:14] == [""] * 14
    assert guard.verdict.step == 14
    record = guard.record()
    assert (record.reason, record.blame) == ("thermal_throttle", "infrastructure")
    assert record.gpu_uuid == A


def test_heat_without_a_loss_of_speed_does_not(
    nvml: Play, sampler: GpuSampler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bits alone are no damage: the clock must be down too."""
    text = (RECORDINGS / "thermal.txt").read_text().replace("1250", "1700")
    (tmp_path / "fast.txt").write_text(text.replace(" 1100", " 1700"))
    nvml("thermal")
    monkeypatch.setenv("NVML_STUB", str(tmp_path / "fast.txt"))
    guard = watched(sampler, ThermalThrottle(consecutive=5))
    epochs(guard, sampler, nvml, 16)
    assert not guard.verdict.stop
    assert guard.record().warnings == ("thermal_throttle@14",)


def test_a_power_cap_is_no_heat(nvml: Play, sampler: GpuSampler) -> None:
    """It holds the clock in every sample of a healthy, busy GPU."""
    nvml("power_cap")
    guard = watched(sampler, ThermalThrottle(consecutive=5))
    assert epochs(guard, sampler, nvml, 12) == [""] * 12


def test_a_lost_gpu_stops_at_its_step(
    nvml: Play, sampler: GpuSampler, notices: Notices
) -> None:
    """A fault of the machine: neither heat nor a missing capability."""
    nvml("lost")
    guard = watched(sampler, ThermalThrottle(consecutive=1), GpuFault())
    assert epochs(guard, sampler, nvml, 5) == ["", "", "", "gpu_fault", "gpu_fault"]
    assert guard.verdict.step == 3
    assert guard.record().metric == "gpu_lost"
    assert notices.messages == {}


def test_a_lost_gpu_stops_between_reports(nvml: Play, sampler: GpuSampler) -> None:
    """The next step hears of it, without waiting for a report."""
    nvml("lost")
    guard = watched(sampler, GpuFault())
    assert sampler.open()
    verdicts = []
    for tick in range(4):
        nvml(tick=tick)
        sampler.look()
        verdicts.append(guard.check_step(1.0))
    assert [v.stop for v in verdicts] == [False, False, False, True]
    assert (guard.verdict.reason, guard.verdict.step) == ("gpu_fault", 3)


def test_a_fatal_xid_stops(nvml: Play, sampler: GpuSampler) -> None:
    """XID 31 is the program's own; 79 says that the GPU fell off the bus."""
    nvml("faults")
    guard = watched(sampler, GpuFault())
    assert epochs(guard, sampler, nvml, 3) == ["", "", "gpu_fault"]
    assert guard.record().value == 79.0


def test_a_new_memory_error_stops(nvml: Play, sampler: GpuSampler) -> None:
    """Errors of before the trial are no fault of now."""
    nvml("faults")
    guard = watched(sampler, GpuFault(xids=(48,)))
    assert epochs(guard, sampler, nvml, 5) == ["", "", "", "", "gpu_fault"]
    assert guard.record().metric == "gpu_ecc_uncorrected"


def test_unknown_telemetry_judges_nothing(nvml: Play, sampler: GpuSampler) -> None:
    """Neither healthy nor sick; the other rules work."""
    nvml("partial")
    guard = watched(sampler, ThermalThrottle(), GpuFault(), NonFinite())
    assert epochs(guard, sampler, nvml, 6) == [""] * 6
    assert guard.check_step(float("nan")).reason == "non_finite"


# -------------------------------------------------------- threads and processes


class Signalling(GpuSampler):
    """A sampler that says when its thread has looked."""

    looked = threading.Event()

    def look(self) -> None:
        """Look and say so."""
        super().look()
        self.looked.set()


def test_the_thread_looks_by_itself(nvml: Play, notices: Notices) -> None:
    """And ends when it is closed."""
    nvml("healthy")
    sampler = Signalling(0, notices=notices)
    sampler.start()
    assert sampler.looked.wait(30.0)
    assert sampler.since_report()["gpu_temperature_celsius"] == 60.0
    thread = sampler._thread
    sampler.close()
    assert thread is not None
    assert not thread.is_alive()


def test_a_guard_starts_the_thread_for_a_given_gpu(nvml: Play) -> None:
    """``gpu=0`` watches that GPU whatever the loss lies on."""
    nvml("healthy")
    with TrialGuard(Policy.default("loss", "min"), gpu=0) as guard:
        sampler = guard._trial.steps.machine._sampler
        assert sampler is not None
        assert sampler._thread is not None
        assert guard.row({"loss": 1.0})["gpu_uuid"] == A
    assert sampler._thread is None


def test_a_guard_is_pickled_with_its_sampler_running(nvml: Play) -> None:
    """The copy opens NVML of its own."""
    nvml("healthy")
    with TrialGuard(Policy.default("loss", "min"), gpu=0) as guard:
        copy: TrialGuard = pickle.loads(pickle.dumps(guard))  # noqa: S301
        assert copy.row({"loss": 1.0})["gpu_uuid"] == A
        copy.close()


def test_a_fork_opens_nvml_anew(nvml: Play, sampler: GpuSampler) -> None:
    """The child has neither the thread nor the handles of its parent."""
    nvml("healthy")
    sampler.start()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        before = sampler.since_report()
        sampler.look()
        found = [before, sampler.since_report(), sampler._pid == os.getpid()]
        os.write(write, json.dumps(found).encode())
        os._exit(0)
    os.waitpid(child, 0)
    _, after, is_own = json.loads(os.read(read, 65536))
    os.close(read)
    os.close(write)
    assert is_own
    assert after["gpu_temperature_celsius"] == 60.0


def test_closing_in_a_fork_leaves_the_parent_alone(
    nvml: Play, sampler: GpuSampler
) -> None:
    """A child that ends must not close its parent's NVML."""
    nvml("healthy")
    assert sampler.open()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        sampler.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert looks(sampler, nvml, 0)["gpu_temperature_celsius"] == 60.0


def test_missing_bindings_are_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without ``nvidia-ml-py`` the notice says what to install."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with caplog.at_level(logging.WARNING, "tune_guard"):
        guard = TrialGuard(Policy.default("loss", "min"), gpu=0)
    assert "tune-guard[gpu]" in caplog.text
    assert not guard.check_step(1.0).stop
