from __future__ import annotations

import math
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch

from tune_guard.exceptions import ConfigError
from tune_guard.notices import Notices
from tune_guard.observation import (
    Keys,
    Observation,
    check_keys,
    flat_keys,
    lookup,
    to_flag,
    to_largest,
    to_number,
)
from tune_guard.reader import ReportReader


class Hostile:
    """An object of which every conversion raises."""

    def __init__(self, error: type[Exception] = RuntimeError) -> None:
        self.error = error

    def _raise(self, *_: object) -> Any:
        raise self.error

    __float__ = __int__ = __bool__ = __str__ = __repr__ = __eq__ = __gt__ = _raise
    __iter__ = __len__ = _raise
    __hash__ = object.__hash__


def read(report: dict[Any, Any], metric: str = "score", **more: Any) -> Observation:
    """Read one report with a fresh reader."""
    keys, extra = more.get("keys", Keys()), more.get("extra", ())
    notices = more.get("notices") or Notices()
    return ReportReader(metric, keys, extra, notices).read(1, report)


# ------------------------------------------------------------------- to_number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1.5, 1.5),
        (0, 0.0),
        ("12.5", 12.5),
        (" 12.5\n", 12.5),
        ("1e-3", 1e-3),
        ("-Infinity", -math.inf),
        (Decimal("0.25"), 0.25),
        (Fraction(1, 4), 0.25),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        (Fraction(10**400), math.inf),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.longdouble("0.5"), 0.5),
        (np.int64(7), 7.0),
        (np.array(2.5), 2.5),
        (np.array([2.5]), 2.5),
        (np.array([[2.5]]), 2.5),
        (np.array(["2.5"]), 2.5),
        (torch.tensor(2.5), 2.5),
        (torch.tensor([2.5], requires_grad=True), 2.5),
        (torch.tensor([2.5], dtype=torch.bfloat16), 2.5),
        ([2.5], 2.5),
        (("2.5",), 2.5),
        ([[np.float32(2.5)]], 2.5),
    ],
)
def test_a_number_in_any_wrapping_is_read(value: object, number: float) -> None:
    """Numbers, numeric text and one-element arrays, tensors, lists are numbers."""
    assert to_number(value) == number


@pytest.mark.parametrize(
    "value",
    ["nan", "NaN", np.float32("nan"), np.array([np.nan]), torch.tensor(math.nan)],
)
def test_nan_in_any_wrapping_stays_nan(value: object) -> None:
    """The text NaN, as exported histories hold it, is the number."""
    number = to_number(value)
    assert number is not None
    assert math.isnan(number)


RECURSIVE: list[Any] = []
RECURSIVE.append(RECURSIVE)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        np.bool_(True),
        np.array([True]),
        torch.tensor(True),
        "",
        "good",
        "1_000",
        "1,5",
        b"1.0",
        np.bytes_(b"2.0"),
        1 + 2j,
        np.complex64(1),
        torch.tensor(1 + 2j),
        [],
        [1.0, 2.0],
        [None],
        [True],
        (1.0, 2.0),
        np.array([]),
        np.array([1.0, 2.0]),
        np.array([None]),
        np.datetime64(5, "ns"),
        np.timedelta64(5, "ns"),
        torch.tensor([1.0, 2.0]),
        torch.empty(1, device="meta"),
        {},
        {"value": 1.0},
        {1.0},
        object(),
        float,
        RECURSIVE,
        Hostile(),
        Hostile(OverflowError),
        Hostile(RecursionError),
    ],
)
def test_what_is_no_single_number_is_none(value: object) -> None:
    """None, bools, other text and several elements are no observation."""
    assert to_number(value) is None


# ------------------------------------------------------- to_largest and to_flag


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ([0.0, 1e-4], 1e-4),
        ((1e-4, 0.0), 1e-4),
        ({"head": 1e-3, "body": 1e-4}, 1e-3),
        (np.array([0.0, 1e-4]), 1e-4),
        (torch.tensor([0.0, 0.5]), 0.5),
        ([None, "1e-4", "x"], 1e-4),
        ("1e-4", 1e-4),
        ([], None),
        ("high", None),
        (None, None),
        (object(), None),
        (Hostile(), None),
    ],
)
def test_the_largest_of_several_learning_rates_counts(
    value: object, number: float | None
) -> None:
    """A list of learning rates has one per parameter group; some are frozen."""
    assert to_largest(value) == number


@pytest.mark.parametrize("rates", [[math.nan, 1e-4], [1e-4, math.nan]])
def test_a_nan_among_learning_rates_is_passed_over_in_any_order(
    rates: list[float],
) -> None:
    """The order of the groups does not decide what the largest is."""
    assert to_largest(rates) == 1e-4


def test_only_nan_learning_rates_are_nan() -> None:
    """Where nothing else was reported, NaN is not hidden."""
    assert math.isnan(to_largest([math.nan, math.nan]) or 0.0)


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        (True, True),
        (False, False),
        (1, True),
        (0.0, False),
        ("TRUE", True),
        (" false ", False),
        ("1.0", True),
        (np.bool_(True), True),
        (np.array([False]), False),
        (torch.tensor(True), True),
        (torch.tensor([1.0]), True),
        ([True], True),
    ],
)
def test_a_flag_in_any_wrapping_is_read(value: object, flag: bool) -> None:
    """Trainers report flags as bools, numbers, text and tensors."""
    assert to_flag(value) is flag


@pytest.mark.parametrize(
    "value",
    [math.nan, None, "maybe", "", [True, False], RECURSIVE, object(), Hostile()],
)
def test_what_is_no_flag_is_none(value: object) -> None:
    """A missing cell of a table is NaN and says neither true nor false."""
    assert to_flag(value) is None


# -------------------------------------------------------------- lookup, flat_keys


@pytest.mark.parametrize(
    "report",
    [
        {"a/b/c": 1},
        {"a": {"b": {"c": 1}}},
        {"a/b": {"c": 1}},
        {"a": {"b/c": 1}},
        {"a": MappingProxyType({"b": OrderedDict(c=1)})},
        {" a ": {"b": {" c": 1}}},
        {"a/b": 5, "a": {"b": {"c": 1}}},
    ],
)
def test_a_key_is_found_flat_nested_and_partly_flat(report: dict[str, Any]) -> None:
    """Engines flatten reports in different places; stray blanks do not matter."""
    assert lookup(report, "a/b/c") == 1


@pytest.mark.parametrize(
    "report",
    [{}, {"a": 1}, {"a": {}}, {"a": {"b": 1}}, {"a": None}, {1: 2}, {"a": [{"b": 1}]}],
)
def test_an_absent_key_is_none(report: dict[Any, Any]) -> None:
    """Missing is None at any depth."""
    assert lookup(report, "a/b/c") is None


def test_the_exact_key_wins_over_one_with_blanks() -> None:
    """Of `loss` and ` loss`, the key that was asked for is read."""
    assert lookup({"loss ": 2, "loss": 1, " loss": 3}, "loss") == 1
    assert read({"score": 1.0, "score ": 2.0}).metric == 1.0


def test_flat_keys_names_every_leaf() -> None:
    """A nested report's keys are listed as one would configure them."""
    report = {"loss": 1, "eval": {"acc": 2, "by": {"class": 3}}, "empty": {}}
    assert flat_keys(report) == ["loss", "eval/acc", "eval/by/class"]


def test_flat_keys_ends_on_a_report_that_holds_itself() -> None:
    """Two self references would double with every level."""
    report: dict[str, Any] = {"loss": 1}
    report["a"] = report["b"] = report["c"] = report
    assert flat_keys(report) == ["loss"]


def test_flat_keys_is_bounded() -> None:
    """A report with very many keys costs no more than a large one."""
    wide = {f"layer{i}": {f"unit{j}": 0.0 for j in range(100)} for i in range(100)}
    assert len(flat_keys(wide)) == 500


def test_flat_keys_reads_keys_of_any_kind() -> None:
    """A key need not be text, nor have one."""
    assert flat_keys({1: 2, Hostile(): 3})[0] == "1"


# ------------------------------------------------------------------ ReportReader


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


# -------------------------------------------------------------------------- Keys


@pytest.mark.parametrize(
    "value", [5, None, "", "  ", ("loss", ""), ("loss", 3), {"a": 1}]
)
def test_a_key_that_is_no_text_is_refused(value: Any) -> None:
    """A wrong key is named when it is configured, not when it is read."""
    with pytest.raises(ConfigError, match="`loss`"):
        Keys(loss=value)


def test_a_list_of_keys_is_kept_as_a_tuple() -> None:
    """Keys can be compared and hashed."""
    keys: Any = ["a", "b"]
    assert Keys(loss=keys) == Keys(loss=("a", "b"))
    assert hash(Keys(loss=keys))


def test_no_key_at_all_leaves_a_signal_unwatched() -> None:
    """An empty list switches a signal off."""
    assert read({"loss": 1.0}, keys=Keys(loss=())).loss is None


def test_an_unknown_signal_is_refused_with_the_nearest() -> None:
    """A typo in a file's `keys` names the signal that was meant."""
    with pytest.raises(ConfigError, match="Did you mean `grad_norm`"):
        check_keys({"gradnorm": "g"})


@pytest.mark.parametrize("keys", [["loss"], "loss", 5])
def test_keys_that_are_no_mapping_are_refused(keys: Any) -> None:
    """`keys` must say which signal lies where."""
    with pytest.raises(ConfigError, match="`keys`"):
        check_keys(keys)


def test_the_step_is_no_signal() -> None:
    """The engine says which step a report is of; no key of the report does."""
    with pytest.raises(ConfigError, match="`step` is no signal"):
        check_keys({"step": "global_step"})
