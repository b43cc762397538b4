from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest

from tests.unit.hostile import Hostile
from tune_guard.nested_keys import flat_keys, lookup


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
    assert flat_keys({1: 2, Hostile(): 3}) == ["1", "Hostile"]
