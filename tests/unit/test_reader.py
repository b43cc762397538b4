from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.hostile import Hostile
from tune_guard.notices import Notices
from tune_guard.observation import Keys, Observation
from tune_guard.reader import ReportReader


def read(report: dict[Any, Any], metric: str = "score", **more: Any) -> Observation:
    """Read one report with a fresh reader."""
    keys, extra = more.get("keys", Keys()), more.get("extra", ())
    notices = more.get("notices") or Notices()
    return ReportReader(metric, keys, extra, notices).read(1, report)


def test_a_signal_that_is_not_reported_is_none() -> None:
    """Missing telemetry is neither healthy nor unhealthy."""
    observation = read({"score": 1.0})
    assert (observation.metric, observation.loss) == (1.0, None)
    assert (observation.step_skipped, observation.gpu_lost) == (None, None)


def test_aliases_are_tried_in_their_order() -> None:
    """The first key of several that is reported is the signal's."""
    report = {"train_loss": 2.0, "loss": 1.0}
    assert read(report).loss == 1.0
    assert read(report, keys=Keys(loss=("train_loss", "loss"))).loss == 2.0


def test_a_later_alias_is_found_beside_a_folder_that_lacks_the_first() -> None:
    """`train/nll` is not there only because something under `train` is."""
    keys = Keys(loss=("train/nll", "nll"))
    assert read({"train": {"acc": 0.5}, "nll": 1.0}, keys=keys).loss == 1.0
    assert read({"train": {"nll": 2.0}, "nll": 1.0}, keys=keys).loss == 2.0


def test_a_nested_key_that_comes_and_goes_is_read_whenever_it_is_there() -> None:
    """What lies under a folder may differ from report to report."""
    reader = ReportReader("a/b", Keys(loss="a/loss"), (), Notices())
    reports: list[dict[str, Any]] = [
        {"a": {}},
        {"a": {"b": 1.0, "loss": 2.0}},
        {"a": 3},
    ]
    seen = [reader.read(i, report) for i, report in enumerate(reports)]
    assert [(o.metric, o.loss) for o in seen] == [
        (None, None),
        (1.0, 2.0),
        (None, None),
    ]


def test_stray_blanks_around_keys_do_not_matter() -> None:
    """A CSV header often holds them."""
    observation = read({" score ": "1.0", "loss\t": 2}, metric=" score")
    assert (observation.metric, observation.loss) == (1.0, 2.0)


def test_no_key_at_all_leaves_a_signal_unwatched() -> None:
    """An empty list switches a signal off."""
    assert read({"loss": 1.0}, keys=Keys(loss=())).loss is None


def test_the_exact_key_wins_over_one_with_blanks() -> None:
    """Of `score` and `score `, the key that was configured is read."""
    assert read({"score": 1.0, "score ": 2.0}).metric == 1.0


def test_the_reader_knows_under_which_key_a_signal_came() -> None:
    """Messages name the key that the user reported."""
    reader = ReportReader("score", Keys(), (), Notices())
    reader.read(1, {"train": {"loss": 1.0}})
    assert reader.names["loss"] == "train/loss"


def test_each_unusable_key_is_named_once() -> None:
    """A list under the metric's key is said once, with what was seen."""
    notices = Notices()
    reader = ReportReader("score", Keys(), (), notices)
    for step in range(3):
        assert reader.read(step, {"score": [1.0, 2.0]}).metric is None
    (message,) = notices.messages.values()
    assert "`score`" in message
    assert "[1.0, 2.0]" in message


def test_none_and_absence_are_not_called_unusable() -> None:
    """Nothing is wrong with a step that has no value."""
    notices = Notices()
    read({"score": None, "gpu_lost": math.nan}, notices=notices)
    assert notices.messages == {}


def test_one_hostile_value_does_not_hide_the_others() -> None:
    """A flag whose text cannot be made leaves the NaN beside it visible."""
    notices = Notices()
    report = {"score": Hostile(), "step_skipped": Hostile(), "loss": math.nan}
    observation = read(report, notices=notices)
    assert observation.metric is None
    assert observation.step_skipped is None
    assert math.isnan(observation.loss or 0.0)
    assert len(notices.messages) == 2


def test_a_huge_unusable_value_is_named_in_short() -> None:
    """A notice is one line, whatever was reported."""
    notices = Notices()
    read({"score": list(range(10**6))}, notices=notices)
    assert len("".join(notices.messages.values())) < 250


def test_a_rule_asks_for_signals_and_for_further_keys_by_name() -> None:
    """What is neither, or was not reported, is None."""
    observation = read({"score": 1.0, "loss": 2.0, "a": {"b": 3.0}}, extra=("a/b",))
    asked = ("metric", "loss", "a/b", "lr", "a/c", "warming", "get")
    assert [observation.get(name) for name in asked] == [1.0, 2.0, 3.0] + [None] * 4


def test_extra_keys_hold_single_numbers_only() -> None:
    """Several elements under a watched key are no observation there either."""
    notices = Notices()
    report = {"a": 1.0, "b": [1.0, 2.0], "c": {"d": "2.5"}}
    observation = read(report, extra=("a", "b", "c/d"), notices=notices)
    assert observation.values == {"a": 1.0, "c/d": 2.5}
    assert list(notices.messages) == ["unusable:b"]


def test_a_report_is_not_changed() -> None:
    """The user's dictionary stays as it was."""
    report = {"score": [1.0], "lr": [0.1, 0.2], "a": {"b": None}}
    copy = {"score": [1.0], "lr": [0.1, 0.2], "a": {"b": None}}
    read(report, extra=("a/b",))
    assert report == copy


def test_reports_of_ever_new_shapes_stay_bounded() -> None:
    """A key that holds a counter must not fill the memory."""
    reader = ReportReader("score", Keys(), (), Notices())
    for step in range(1000):
        assert reader.read(step, {"score": 1.0, f"key{step}": 1}).metric == 1.0
    assert len(reader._plans) <= 32


def test_a_folder_named_like_a_signal_is_no_value_of_it() -> None:
    """Who reports `loss/val` below `loss` has made no mistake to be named."""
    notices = Notices()
    report = {"loss": {"train": 2.0, "val": 1.0}}
    observation = read(report, metric="loss/val", notices=notices)
    assert (observation.metric, observation.loss) == (1.0, None)
    assert not notices.messages
    read(report, keys=Keys(loss="loss"), notices=notices)
    assert list(notices.messages) == ["unusable:loss"]


@pytest.mark.parametrize("first", [{"val": 1.0}, None, "n/a"])
def test_what_is_no_value_does_not_hide_the_signals_next_name(first: object) -> None:
    """A loss that went NaN as `train_loss` went unseen beside a folder `loss`."""
    observation = read({"loss": first, "train_loss": 2.0, "score": 1.0})
    assert observation.loss == 2.0


def test_the_rates_of_groups_by_name_are_a_value() -> None:
    """A mapping under `lr` hides a later name, as a number does."""
    observation = read({"lr": {"head": 0.1, "body": 0.2}, "learning_rate": 9.0})
    assert observation.lr == 0.2
