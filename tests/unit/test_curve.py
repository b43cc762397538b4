"""Curve: exact while short, bounded when long, the same after a restart."""

from __future__ import annotations

import pickle
import random

import pytest

from tune_guard.curve import Curve


def curve_of(scores: list[float], warm: int = 0) -> Curve:
    """Return a curve that has taken in the scores, one a step."""
    curve = Curve()
    for step, score in enumerate(scores):
        curve.add(score, step, warming=step < warm)
    return curve


class TestReadings:
    """What single readings leave behind."""

    def test_start_is_the_median_of_the_first_five(self) -> None:
        """A lucky first reading is not the start level; the sixth does not count."""
        assert curve_of([9.0, 1.0, 2.0, 1.5, 1.2, 100.0]).start == 1.5

    def test_a_lucky_reading_is_no_level_that_was_held(self) -> None:
        """The best median of five in a row is 1.0, the best reading 50."""
        curve = curve_of([1.0, 1.0, 1.0, 50.0, 1.0, 1.0, 0.5])
        assert (curve.held, curve.best) == (1.0, 50.0)

    def test_a_level_needs_five_readings(self) -> None:
        """After four there is none."""
        assert curve_of([1.0, 2.0, 3.0, 4.0]).held is None
        assert curve_of([1.0, 2.0, 3.0, 4.0, 5.0]).held == 3.0

    def test_first_and_last_steps_are_kept(self) -> None:
        """As the trainer counts them."""
        curve = Curve()
        curve.add(1.0, 100)
        curve.add(2.0, 300)
        assert (curve.first_step, curve.last_step, curve.first) == (100, 300, 1.0)


class TestWindows:
    """Newest readings against the history."""

    def test_a_window_is_exact_while_readings_are_few(self) -> None:
        """Best, middle and lowest of the last five."""
        curve = curve_of([float(i) for i in range(20)])
        window = curve.window(5)
        assert window == 5
        assert curve.top(window) == 19.0
        assert curve.middle(window) == 17.0
        assert curve.low(window) == 15.0

    def test_a_window_needs_more_history_than_its_length(self) -> None:
        """Five readings are not compared with themselves."""
        assert curve_of([1.0] * 5).window(5) == 0
        assert curve_of([1.0] * 6).window(5) == 5

    def test_readings_of_the_warm_up_are_in_no_window(self) -> None:
        """Of ten readings four are warm-up: six are left, five fit."""
        assert curve_of([1.0] * 9, warm=4).window(5) == 0
        assert curve_of([1.0] * 10, warm=4).window(5) == 5

    def test_a_window_covers_at_least_what_was_asked(self) -> None:
        """Of buckets of four readings, ten readings take three."""
        curve = curve_of([1.0] * 200)
        assert (curve.width, curve.window(10)) == (4, 3)

    def test_one_odd_reading_moves_no_middle(self) -> None:
        """A spike of a million is in the top and not in the middle."""
        curve = curve_of([1.0] * 50 + [1e6] + [1.0] * 49)
        assert curve.width == 2
        assert curve.top(40) == 1e6
        assert curve.low(40) == curve.middle(40) == max(curve.levels) == 1.0

    def test_quarters_give_the_level_of_each_part(self) -> None:
        """Four steps of ten readings; too short a history has none."""
        scores = [level for level in (1.0, 2.0, 3.0, 4.0) for _ in range(10)]
        assert curve_of(scores).quarters() == (1.0, 2.0, 3.0, 4.0)
        assert curve_of(scores[:3]).quarters() == ()

    def test_quarters_leave_the_warm_up_out(self) -> None:
        """Of 40 readings 20 are warm-up: the quarters are five readings each."""
        scores = [level for level in (1.0, 2.0, 3.0, 4.0) for _ in range(10)]
        assert curve_of(scores, warm=20).quarters() == (3.0, 3.0, 4.0, 4.0)


class TestBounds:
    """Memory, and what merging buckets changes."""

    def test_memory_stays_bounded(self) -> None:
        """100,000 readings take no more than 64."""
        curve = curve_of([random.Random(1).random() for _ in range(100_000)])
        assert len(curve.tops) == len(curve.middles) < 64
        assert len(pickle.dumps(curve.state())) < 1500

    def test_full_buckets_merge_in_pairs(self) -> None:
        """At 64 readings 32 buckets of two are left, none of them half full."""
        curve = curve_of([float(i) for i in range(64)])
        assert (curve.width, len(curve.tops), curve.pending) == (2, 32, 0)
        assert curve.tops[:3] == [1.0, 3.0, 5.0]
        assert curve.middles[5:8] == [8.5, 10.5, 12.5]

    def test_merged_buckets_hold_what_wide_ones_would(self) -> None:
        """The first 64 readings, merged, are like the next 64, filled at width 2."""
        pattern = [random.Random(2).random() for _ in range(64)]
        curve = curve_of(pattern * 2)
        wide = curve_of(pattern * 4)
        assert curve.width == 4
        assert wide.tops[16:32] == wide.tops[:16]
        assert wide.middles[17:32] == pytest.approx(wide.middles[1:16])

    def test_huge_readings_do_not_raise(self) -> None:
        """The largest floats of both signs are taken in."""
        curve = curve_of([1.7e308, -1.7e308] * 100)
        assert curve.best == 1.7e308


class TestRestart:
    """A stored curve goes on as if nothing had happened."""

    @pytest.mark.parametrize("cut", [0, 1, 4, 5, 63, 64, 65, 150])
    def test_a_restart_equals_no_restart(self, cut: int) -> None:
        """Whatever the bucket it falls into."""
        scores = [random.Random(3).gauss(0, 1) for _ in range(200)]
        whole, first = curve_of(scores), curve_of(scores[:cut])
        second = Curve()
        second.restore(pickle.loads(pickle.dumps(first.state())))  # noqa: S301
        for step in range(cut, 200):
            second.add(scores[step], step)
        assert second.state() == whole.state()

    def test_a_stored_state_is_not_changed_by_going_on(self) -> None:
        """A keyframe stays what it was."""
        curve = curve_of([1.0, 2.0, 3.0])
        state = curve.state()
        kept = pickle.dumps(state)
        curve.add(4.0, 3)
        other = Curve()
        other.restore(state)
        other.add(9.0, 3)
        assert pickle.dumps(state) == kept
