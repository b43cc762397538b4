from __future__ import annotations

from typing import Any

from tune_guard.worker.gpu.window import Sample, Window

FATAL = frozenset({79})


def summed(*samples: Sample) -> dict[str, Any]:
    """Return the signals of some samples."""
    window = Window()
    for sample in samples:
        window.add(sample)
    return window.take(FATAL)


def of(name: str, *values: Any) -> list[Sample]:
    """Return a sample for each value of one field."""
    return [Sample(**{name: value}) for value in values]


def test_the_worst_is_kept() -> None:
    """Highest temperature, power and memory."""
    assert summed(*of("temperature_celsius", 60.0, 90.0, 70.0)) == {
        "gpu_temperature_celsius": 90.0
    }
    assert summed(*of("power_watts", 300.0, 700.0)) == {"gpu_power_watts": 700.0}
    assert summed(*of("memory_used_bytes", 5, 9, 7)) == {"gpu_memory_used_bytes": 9}


def test_clocks_are_a_median_and_utilisation_a_mean() -> None:
    """A single dip is no slow GPU."""
    assert summed(*of("clock_mhz", 1980.0, 1980.0, 300.0)) == {"gpu_clock_mhz": 1980.0}
    found = summed(*of("utilization_ratio", 1.0, 0.5))
    assert found == {"gpu_utilization_ratio": 0.75}


def test_reasons_give_bits_and_a_share_of_heat() -> None:
    """The power cap (0x4) is among the bits and no heat."""
    found = summed(*of("reasons", 0x4, 0x24, 0x0, 0x40))
    assert found == {"gpu_reasons": 0x64, "gpu_thermal_ratio": 0.5}


def test_what_was_never_known_is_not_reported() -> None:
    """Unknown is neither 0 nor healthy."""
    assert summed(Sample()) == {}
    assert summed() == {}


def test_a_gap_does_not_count() -> None:
    """A sample without the value is left out of the share."""
    found = summed(*of("reasons", 0x20, None, None))
    assert found["gpu_thermal_ratio"] == 1.0


def test_of_several_xids_a_fatal_one_is_told() -> None:
    """A program's own error must not hide the hardware's."""
    assert summed(*of("xid", 79, 31))["gpu_xid"] == 79
    assert summed(*of("xid", 31, 13))["gpu_xid"] == 13


def test_a_lost_gpu_is_told() -> None:
    """As a flag; a GPU that is there has none."""
    assert summed(Sample(temperature_celsius=50.0), Sample(lost=True))["gpu_lost"]
    assert "gpu_lost" not in summed(Sample(temperature_celsius=50.0))


def test_throttled_time_is_counted_across_windows() -> None:
    """From the last sample of the window before."""
    window = Window()
    for seconds in (10.0, 12.0):
        window.add(Sample(throttled_s=seconds))
    assert window.take(FATAL)["gpu_throttled_s"] == 2.0
    window.add(Sample(throttled_s=15.0))
    assert window.take(FATAL)["gpu_throttled_s"] == 3.0


def test_taking_begins_anew() -> None:
    """Nothing of the window before is left."""
    window = Window()
    window.add(Sample(temperature_celsius=90.0, xid=79))
    window.take(FATAL)
    assert window.take(FATAL) == {}


def test_a_window_is_bounded() -> None:
    """A report that never comes does not fill the memory."""
    window = Window()
    for _ in range(5000):
        window.add(Sample(xid=31))
    assert len(window) < 5000
