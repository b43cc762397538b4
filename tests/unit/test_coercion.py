from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.unit.hostile import RECURSIVE, Hostile
from tune_guard.coercion import to_bits, to_flag, to_largest, to_number

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


# ------------------------------------------------------- to_largest, to_bits, to_flag


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


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        ("0x0000000000000060", 96.0),
        (" 0X20 ", 32.0),
        ("32", 32.0),
        (["0x60"], 96.0),
        ((["0x60"],), 96.0),
        (["0x60", "0x20"], None),
        (RECURSIVE, None),
        (np.int64(64), 64.0),
        ("0xZZ", None),
        ("0x" + "f" * 400, None),
        ("[Not Supported]", None),
        ("Active", None),
        (True, None),
        (Hostile(), None),
    ],
)
def test_a_mask_is_read_as_nvidia_smi_prints_it(
    value: object, bits: float | None
) -> None:
    """In hexadecimal, with 16 digits; what no GPU reports is text of its own."""
    assert to_bits(value) == bits


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
