"""GpuFault: the first sign of a failed GPU stops, and no program's own fault does."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.rules.watching import (
    losses,
    stop_step,
    stop_step_restarted,
    watch,
)
from tune_guard import Monitor, Policy
from tune_guard.exceptions import ConfigError
from tune_guard.rules import GpuFault
from tune_guard.verdict import Blame


class TestTrigger:
    """Which report stops."""

    def test_a_lost_gpu_stops_at_once(self) -> None:
        """At the report that says so, also during warm-up."""
        reports = [{"loss": 1.0}] * 3 + [{"loss": 1.0, "gpu_lost": True}] * 2
        assert stop_step(GpuFault(), reports) == 3
        assert stop_step(GpuFault(), reports, warmup_steps=10) == 3

    def test_a_gpu_that_is_not_lost_is_fine(self) -> None:
        """False, 0 and None."""
        values = [False, 0, 0.0, None, "false"]
        assert stop_step(GpuFault(), losses(values, key="gpu_lost")) is None

    def test_a_loss_between_reports_counts_for_the_last_step(self) -> None:
        """A signal without a step of its own."""
        monitor = Monitor(Policy(metric="loss", mode="min", rules=(GpuFault(),)))
        monitor.observe(7, {"loss": 1.0})
        verdict = monitor.observe(None, {"gpu_lost": True})
        assert (verdict.stop, verdict.step) == (True, 7)

    @pytest.mark.parametrize("xid", [48, 74, 79, 95, 119, 120, 140])
    def test_a_fatal_xid_stops(self, xid: int) -> None:
        """Each of those that are always fatal."""
        assert stop_step(GpuFault(), losses([None, xid], key="gpu_xid")) == 1

    @pytest.mark.parametrize("xid", [0, 13, 31, 43, 45, 68, 94, 109])
    def test_other_xids_do_not(self, xid: int) -> None:
        """A program's own faults, and a contained error."""
        assert stop_step(GpuFault(), losses([xid] * 9, key="gpu_xid")) is None

    def test_the_list_of_xids_is_the_users(self) -> None:
        """94 alone."""
        rule = GpuFault(xids=(94,))
        assert stop_step(rule, losses([79, 94], key="gpu_xid")) == 1

    def test_memory_errors_must_rise(self) -> None:
        """Old ones are no fault of now."""
        key = "gpu_ecc_uncorrected"
        assert stop_step(GpuFault(), losses([2, 2, None, 2], key=key)) is None
        assert stop_step(GpuFault(), losses([2, 2, None, 3], key=key)) == 3

    def test_a_reset_counter_counts_anew(self) -> None:
        """From 2 to 0, then to 1."""
        key = "gpu_ecc_uncorrected"
        assert stop_step(GpuFault(), losses([2, 0, 0, math.nan, 1], key=key)) == 4

    def test_a_restart_keeps_the_first_count_and_another_machine_does_not(self) -> None:
        """The state describes the machine."""
        reports = losses([2, 2, 3], key="gpu_ecc_uncorrected")
        assert stop_step_restarted(GpuFault(), reports) == 2
        monitor = Monitor(Policy(metric="loss", mode="min", rules=(GpuFault(),)))
        monitor.observe(0, reports[0])
        monitor.begin_attempt(1)
        assert not monitor.observe(1, reports[2]).stop


class TestFinding:
    """What it says, and whose fault it is."""

    @pytest.mark.parametrize(
        ("report", "seen"),
        [
            ({"gpu_lost": True}, "the GPU is lost"),
            ({"gpu_xid": 79}, "XID 79, the GPU has fallen off the bus"),
            ({"gpu_ecc_uncorrected": 3}, "memory errors rose from 0 to 3"),
        ],
    )
    def test_the_sentence_names_the_sign(
        self, report: dict[str, Any], seen: str
    ) -> None:
        """And blames the machine."""
        reports = [{"gpu_ecc_uncorrected": 0}, report]
        found = watch(GpuFault(), reports)[-1].cause
        assert found is not None
        assert (found.rule, found.blame) == ("gpu_fault", Blame.INFRASTRUCTURE)
        assert found.metric == next(iter(report))
        assert seen in found.message


class TestConfiguration:
    """What is refused."""

    @pytest.mark.parametrize("xids", [79, "list", (79.0,), (True,), (-1,), None])
    def test_anything_but_xids_is_refused(self, xids: Any) -> None:
        """At construction, by name, with advice."""
        with pytest.raises(ConfigError, match="`xids` must be a list of XIDs"):
            GpuFault(xids=xids)
