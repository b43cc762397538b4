from __future__ import annotations

import json
import math
from enum import IntEnum

import numpy as np
import pytest
import torch

from tests.unit.hostile import OF_ANY_KIND
from tune_guard.record import Outcome
from tune_guard.strict_json import from_json, number, plain


class Colour(IntEnum):
    """A number with a name."""

    RED = 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4, 4),
        (True, True),
        (None, None),
        ("x", "x"),
        (0.5, 0.5),
        (math.nan, "NaN"),
        (np.float32(0.5), 0.5),
        (np.float64("inf"), "Infinity"),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([2.5]), 2.5),
        (torch.tensor(2.5), 2.5),
        (Outcome.GUARD, "guard"),
        (Colour.RED, 1),
        ((1, (2.0, math.inf)), [1, [2.0, "Infinity"]]),
        ({1: {"a": np.float64(1.5)}}, {"1": {"a": 1.5}}),
    ],
)
def test_values_become_plain(value: object, expected: object) -> None:
    """Only what strict JSON knows; storages refuse numpy's types."""
    got = plain(value)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    "value",
    [*OF_ANY_KIND, torch.tensor([1.0, 2.0])],
    ids=range(len(OF_ANY_KIND) + 1),
)
def test_a_value_of_any_kind_becomes_strict_json(value: object) -> None:
    """A record is written whatever an adapter or a rule puts in."""
    json.dumps(plain(value), allow_nan=False, ensure_ascii=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1e-3", 1e-3),
        (3, 3.0),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        ("x", None),
        (None, None),
        (True, None),
        ([1], None),
    ],
)
def test_a_number_is_read_back(value: object, expected: float | None) -> None:
    """Numbers and their texts; a flag is none."""
    assert number(value) == expected


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1" * 5000, "{'a': 1}"])
def test_a_text_that_is_no_json_is_none(text: str) -> None:
    """Also one that nests deeper than a reader goes."""
    assert from_json(text) is None
