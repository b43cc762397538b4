"""ThermalThrottle: sustained heat that costs speed, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.rules.watching import (
    losses,
    stop_step,
    stop_step_restarted,
    warn_steps,
    watch,
)
from tune_guard import Monitor, Policy
from tune_guard.exceptions import ConfigError
from tune_guard.rules import ThermalThrottle
from tune_guard.rules.thermal_holds import GpuIdle, SpeedKept
from tune_guard.verdict import Blame

COOL, POWER_CAP, SLOWDOWN, SW_HEAT, HW_HEAT = 0x0, 0x4, 0x8, 0x20, 0x40


def bits(values: list[Any]) -> list[dict[str, Any]]:
    """Return one report for each value of ``gpu_reasons``."""
    return losses(values, key="gpu_reasons")


def gpu(
    reasons: int, clock: float = 1700.0, step_time: float = 0.014, busy: float = 0.98
) -> dict[str, float]:
    """Return a report with all telemetry."""
    return {
        "gpu_reasons": reasons,
        "gpu_clock_mhz": clock,
        "step_time_s": step_time,
        "gpu_utilization_ratio": busy,
        "gpu_temperature_celsius": 84,
    }


def timed(values: list[float], every_s: float, key: str) -> list[dict[str, float]]:
    """Return one report for each value of ``key``, ``every_s`` seconds apart."""
    return [{key: v, "time_total_s": i * every_s} for i, v in enumerate(values)]


class TestReports:
    """Reports in a row, where no time is known."""

    def test_the_fifth_throttled_report_in_a_row_stops(self) -> None:
        """Bits and temperature alone: steps 0 to 4."""
        reports = [{"loss": 1.0, "gpu_reasons": 32, "gpu_temp": 86}] * 6
        assert stop_step(ThermalThrottle(), reports) == 4

    @pytest.mark.parametrize("reasons", [0x1, 0x2, 0x4, 0x8, 0x10, 0x80, 0x100, 0x18F])
    def test_other_reasons_are_no_heat(self, reasons: int) -> None:
        """Idle, clock settings, power cap, slowdown, power brake."""
        assert stop_step(ThermalThrottle(), bits([reasons] * 50)) is None

    @pytest.mark.parametrize("reasons", [0x20, 0x40, 0x48, 0x64])
    def test_a_thermal_bit_counts_beside_others(self, reasons: int) -> None:
        """SW and HW thermal slowdown."""
        assert stop_step(ThermalThrottle(), bits([reasons] * 9)) == 4

    def test_a_cool_report_starts_the_count_anew(self) -> None:
        """Four hot, one cool, five hot."""
        values = [SW_HEAT] * 4 + [COOL] + [HW_HEAT] * 9
        assert stop_step(ThermalThrottle(), bits(values)) == 9

    def test_missing_telemetry_is_neither_hot_nor_cool(self) -> None:
        """It does not count and does not reset."""
        values = [SW_HEAT, None, SW_HEAT, math.nan, -1, "?", SW_HEAT]
        assert stop_step(ThermalThrottle(consecutive=3), bits(values)) == 6

    def test_no_telemetry_at_all_judges_nothing(self) -> None:
        """A trial on a machine without a GPU."""
        assert stop_step(ThermalThrottle(), losses([1.0] * 50)) is None

    def test_a_sustained_slowdown_with_lost_speed(self) -> None:
        """One hot report at 5 is nothing; 10 to 14 are five in a row."""
        reports = [gpu(COOL)] * 5 + [gpu(0x48, 1250.0, 0.015)] + [gpu(COOL)] * 4
        reports += [gpu(SW_HEAT, 1100.0, 0.024)] * 6
        assert stop_step(ThermalThrottle(), reports) == 14
        assert stop_step_restarted(ThermalThrottle(), reports) == 14

    def test_warm_up_does_not_mute_it(self) -> None:
        """Heat harms from the first step."""
        assert stop_step(ThermalThrottle(), bits([SW_HEAT] * 9), warmup_steps=50) == 4

    def test_another_machine_starts_anew(self) -> None:
        """Four hot reports there, four here."""
        policy = Policy(metric="loss", mode="min", rules=(ThermalThrottle(),))
        monitor = Monitor(policy)
        for step in range(4):
            assert not monitor.observe(step, {"gpu_reasons": SW_HEAT}).stop
        monitor.begin_attempt(4)
        for step in range(4, 8):
            assert not monitor.observe(step, {"gpu_reasons": SW_HEAT}).stop


class TestTime:
    """A share of throttled time, where reports carry a time."""

    def test_throttled_without_a_break_it_stops_after_the_window(self) -> None:
        """One sample a second: at 60 s."""
        reports = timed([SW_HEAT] * 100, 1.0, "gpu_reasons")
        assert stop_step(ThermalThrottle(), reports) == 60

    def test_a_third_of_the_time_is_not_enough(self) -> None:
        """Two thirds are, after a longer time."""
        less = timed([SW_HEAT, COOL, COOL] * 500, 1.0, "gpu_reasons")
        assert stop_step(ThermalThrottle(), less) is None
        more = timed([SW_HEAT, SW_HEAT, COOL] * 500, 1.0, "gpu_reasons")
        assert stop_step(ThermalThrottle(), more) == 120

    def test_rare_samples_need_three_in_a_row(self) -> None:
        """Ten minutes apart, one bit says nothing about the time between."""
        reports = timed([COOL] * 3 + [SW_HEAT] * 9, 600.0, "gpu_reasons")
        assert stop_step(ThermalThrottle(), reports) == 5

    def test_a_measured_share_counts_for_the_whole_time(self) -> None:
        """Ten minutes, throttled nine tenths of them."""
        reports = timed([0.0, 0.0, 0.9], 600.0, "gpu_thermal_ratio")
        assert stop_step(ThermalThrottle(), reports) == 2
        reports = timed([0.0, 0.0, *[0.4] * 50], 600.0, "gpu_thermal_ratio")
        assert stop_step(ThermalThrottle(), reports) is None

    def test_consecutive_counts_reports_whatever_the_time(self) -> None:
        """A hundredth of a second apart."""
        reports = timed([SW_HEAT] * 9, 0.01, "gpu_reasons")
        assert stop_step(ThermalThrottle(consecutive=5), reports) == 4
        assert stop_step(ThermalThrottle(), reports) is None

    def test_a_clock_that_goes_back_adds_nothing(self) -> None:
        """No negative time."""
        reports = timed([SW_HEAT] * 30, 1.0, "gpu_reasons") * 2
        assert stop_step(ThermalThrottle(), reports) is None

    def test_a_restart_changes_nothing(self) -> None:
        """The share survives."""
        reports = timed([SW_HEAT] * 100, 1.0, "gpu_reasons")
        assert stop_step_restarted(ThermalThrottle(), reports) == 60


class TestHolds:
    """Heat alone is no harm."""

    def test_heat_without_lost_speed_only_warns(self) -> None:
        """Clock and step time as before."""
        reports = [gpu(COOL)] * 5 + [gpu(SW_HEAT)] * 9
        assert stop_step(ThermalThrottle(), reports) is None
        assert warn_steps(ThermalThrottle(), reports)[0] == 9
        assert stop_step(ThermalThrottle(holds=()), reports) == 9

    @pytest.mark.parametrize(
        ("clock", "step_time", "stops"),
        [
            (1440.0, 0.014, True),
            (1450.0, 0.014, False),
            (1700.0, 0.019, True),
            (1700.0, 0.018, False),
        ],
    )
    def test_either_loss_of_speed_is_enough(
        self, clock: float, step_time: float, stops: bool
    ) -> None:
        """15% of the clock, or a third more step time."""
        reports = [gpu(COOL)] * 5 + [gpu(SW_HEAT, clock, step_time)] * 9
        assert (stop_step(ThermalThrottle(), reports) == 9) is stops

    def test_a_gpu_that_was_never_cool_has_no_baseline(self) -> None:
        """What is not known does not excuse."""
        assert stop_step(ThermalThrottle(), [gpu(SW_HEAT)] * 9) == 4

    def test_an_idle_gpu_only_warns(self) -> None:
        """Half busy or less."""
        reports = [gpu(SW_HEAT, busy=0.5)] * 9
        assert stop_step(ThermalThrottle(), reports) is None
        assert stop_step(ThermalThrottle(), [gpu(SW_HEAT, busy=0.51)] * 9) == 4

    def test_an_idle_gpu_is_no_baseline(self) -> None:
        """Its low clock would excuse any throttling."""
        idle = [gpu(COOL, clock=300.0, busy=0.1)] * 20
        reports = [*[gpu(COOL)] * 5, *idle, *[gpu(SW_HEAT, clock=1100.0)] * 5]
        assert stop_step(ThermalThrottle(), reports) == 29


class TestFinding:
    """What it says, and whose fault it is."""

    def test_the_sentence_names_the_chain(self) -> None:
        """Heat, temperature, clock, step time."""
        reports = [gpu(COOL)] * 5 + [gpu(SW_HEAT, 1100.0, 0.024)] * 5
        found = watch(ThermalThrottle(), reports)[-1].cause
        assert found is not None
        assert found.blame is Blame.INFRASTRUCTURE
        assert (found.metric, found.value, found.threshold) == ("gpu_reasons", 5.0, 5.0)
        assert found.message == (
            "Heat throttles the GPU: 5 reports in a row, steps 5-9; 84 °C, clock 1100"
            " MHz (cool: 1700), step time 0.024 s (cool: 0.014). Improve its cooling,"
            " or run the trial on another machine."
        )

    def test_the_sentence_says_only_what_is_known(self) -> None:
        """Bits alone."""
        found = watch(ThermalThrottle(), bits([SW_HEAT] * 5))[-1].cause
        assert found is not None
        assert found.message.startswith(
            "Heat throttles the GPU: 5 reports in a row, steps 0-4. Improve"
        )


class TestConfiguration:
    """What is refused."""

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"window_s": 0}, "`window_s` must be >= 1"),
            ({"consecutive": 0}, "`consecutive` must be >= 1"),
            ({"consecutive": 1.5}, "`consecutive` must be a whole number"),
            ({"holds": 1}, "`holds` must be a tuple of holds"),
        ],
    )
    def test_a_wrong_value_is_refused(
        self, parameters: dict[str, Any], message: str
    ) -> None:
        """At construction, by name, with advice."""
        with pytest.raises(ConfigError, match=message):
            ThermalThrottle(**parameters)

    def test_a_wrong_hold_is_refused(self) -> None:
        """At construction, by name."""
        with pytest.raises(ConfigError, match="`utilization_ratio` must be a number"):
            GpuIdle(utilization_ratio=-0.1)
        with pytest.raises(ConfigError, match="`clock_ratio` must be a number"):
            SpeedKept(clock_ratio=math.nan)
