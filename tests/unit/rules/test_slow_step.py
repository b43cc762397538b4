"""SlowStep: a slow-down is judged against steps that were not slow themselves."""

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
from tune_guard.rules import SlowStep
from tune_guard.verdict import Blame


def times(values: list[Any]) -> list[dict[str, Any]]:
    """Return one report for each step time."""
    return losses(values, key="step_time_s")


COMPILING = [79.075, 0.607, 0.115, 0.106, *[0.1] * 11]


class TestTrigger:
    """Which step stops."""

    def test_compilation_is_no_baseline(self) -> None:
        """79 s, 0.6 s, then 0.1 s; five slow steps from 15 on."""
        assert stop_step(SlowStep(), times([*COMPILING, *[0.35] * 9])) == 19

    def test_the_first_steps_are_never_slow(self) -> None:
        """However long compilation goes on."""
        assert stop_step(SlowStep(), times([79.0] * 9 + [0.1] * 30)) is None

    def test_twice_the_median_is_not_slow_yet(self) -> None:
        """More than twice is."""
        assert stop_step(SlowStep(), times([0.1] * 10 + [0.2] * 30)) is None
        assert stop_step(SlowStep(), times([0.1] * 10 + [0.201] * 9)) == 14

    def test_a_step_in_time_starts_the_count_anew(self) -> None:
        """Four slow steps, one in time, then five slow ones."""
        values = [0.1] * 10 + [0.5] * 4 + [0.1] + [0.5] * 9
        assert stop_step(SlowStep(), times(values)) == 19

    def test_slow_steps_do_not_join_the_baseline(self) -> None:
        """However many there were before."""
        values = [0.1] * 5 + ([0.5] * 4 + [0.1]) * 10 + [0.25] * 5
        assert stop_step(SlowStep(), times(values)) == 59

    def test_a_slow_creep_becomes_the_baseline(self) -> None:
        """1% a step is no sudden slow-down."""
        values = [0.1 * 1.01**i for i in range(300)]
        assert stop_step(SlowStep(), times(values)) is None

    def test_values_that_are_no_times_are_no_observation(self) -> None:
        """They neither count nor reset."""
        odd = [math.nan, math.inf, None, 0.0, -1.0]
        values = [0.1] * 10 + [0.5, 0.5, *odd, 0.5, 0.5, 0.5]
        assert stop_step(SlowStep(), times(values)) == 19

    def test_warm_up_does_not_mute_it(self) -> None:
        """A slow machine is slow from the start."""
        reports = times([*COMPILING, *[0.35] * 9])
        assert stop_step(SlowStep(), reports, warmup_steps=100) == 19

    def test_a_restart_before_every_report_changes_nothing(self) -> None:
        """Baseline and count survive."""
        reports = times([*COMPILING, *[0.35] * 9])
        assert stop_step_restarted(SlowStep(), reports) == 19

    def test_another_machine_has_another_baseline(self) -> None:
        """A new attempt runs elsewhere, where steps take longer."""
        policy = Policy(metric="loss", mode="min", rules=(SlowStep(),))
        monitor = Monitor(policy)
        for step, report in enumerate(times([0.1] * 10)):
            monitor.observe(step, report)
        monitor.begin_attempt(10)
        verdicts = [monitor.observe(10 + i, {"step_time_s": 0.5}) for i in range(20)]
        assert not any(verdict.stop for verdict in verdicts)


class TestFinding:
    """What it says, and whose fault it is."""

    def test_the_sentence_says_what_was_seen(self) -> None:
        """Value, threshold, blame and sentence."""
        found = watch(SlowStep(), times([*COMPILING, *[0.35] * 5]))[-1].cause
        assert found is not None
        assert found.blame is Blame.INFRASTRUCTURE
        assert (found.metric, found.value, found.threshold) == (
            "step_time_s",
            0.35,
            0.2,
        )
        assert found.message == (
            "step_time_s = 0.35 s at step 19, 3.5 times the typical 0.1 s, for 5 steps"
            " in a row since step 15. Look for other jobs on the machine, or a"
            " throttled GPU. Where the training itself grows (larger inputs, layers"
            ' unfrozen), set actions={"slow_step": "warn"}.'
        )

    @pytest.mark.parametrize(
        ("data_time_s", "stalled"),
        [(0.27, True), (0.14, True), (0.12, False), (0.02, False), (None, False)],
    )
    def test_a_stalled_data_loader_is_named(
        self, data_time_s: float | None, stalled: bool
    ) -> None:
        """When waiting for data makes up most of the slow-down of 0.25 s."""
        usual = {"step_time_s": 0.1, "data_time_s": 0.01}
        slow = {"step_time_s": 0.35, "data_time_s": data_time_s}
        found = watch(SlowStep(), [usual] * 10 + [slow] * 5)[-1].cause
        assert found is not None
        assert ("data loader is stalled" in found.message) is stalled

    def test_a_loader_that_always_takes_most_of_a_step_is_not_blamed(self) -> None:
        """It takes 0.9 s before and after; the rest of the step grew."""
        usual = {"step_time_s": 1.0, "data_time_s": 0.9}
        slow = {"step_time_s": 2.5, "data_time_s": 0.9}
        found = watch(SlowStep(), [usual] * 10 + [slow] * 5)[-1].cause
        assert found is not None
        assert "data loader" not in found.message


class TestConfiguration:
    """What is refused."""

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"factor": 0.9}, "`factor` must be >= 1"),
            ({"factor": None}, "`factor` must be a number"),
            ({"min_history": 0}, "`min_history` must be >= 1"),
            ({"window": 4}, "`window` must be >= 5"),
            ({"consecutive": 0}, "`consecutive` must be >= 1"),
            ({"consecutive": "5"}, "`consecutive` must be a whole number"),
        ],
    )
    def test_a_wrong_value_is_refused(
        self, parameters: dict[str, Any], message: str
    ) -> None:
        """At construction, by name, with advice."""
        with pytest.raises(ConfigError, match=message):
            SlowStep(**parameters)
