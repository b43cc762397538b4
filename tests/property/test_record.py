from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.strategies import any_float, json_values
from tune_guard.coercion import to_flag, to_largest, to_number
from tune_guard.record import DETAIL, KEYS, Outcome, StopRecord
from tune_guard.strict_json import from_json, plain, to_json
from tune_guard.verdict import Blame

texts = st.text(max_size=60) | st.text(min_size=300, max_size=1500)
plain_texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.none() | any_float

records = st.builds(
    StopRecord,
    reason=texts,
    outcome=st.sampled_from(Outcome),
    step=st.integers(-1, 2**53),
    blame=st.none() | st.sampled_from(Blame),
    metric=texts,
    value=numbers,
    threshold=numbers,
    message=texts,
    objective=texts,
    mode=st.sampled_from(["min", "max", ""]),
    best_value=numbers,
    best_step=st.none() | st.integers(0, 2**53),
    attempt=st.integers(1, 1000),
    trial=texts,
    host=texts,
    gpu_uuid=texts,
    warnings=st.lists(texts, max_size=12).map(tuple),
    evidence=texts,
)

short_records = st.builds(
    StopRecord,
    reason=plain_texts,
    outcome=st.sampled_from(Outcome),
    step=st.integers(-1, 2**53),
    blame=st.none() | st.sampled_from(Blame),
    metric=plain_texts,
    value=numbers,
    threshold=numbers,
    message=plain_texts,
    best_value=numbers,
    best_step=st.none() | st.integers(0, 2**53),
    attempt=st.integers(1, 1000),
    trial=plain_texts,
    warnings=st.lists(plain_texts.filter(bool), max_size=3).map(tuple),
)


@settings(max_examples=150)
@given(record=records)
def test_metadata_is_strict_json_under_a_kilobyte(record: StopRecord) -> None:
    """Whatever a record holds, every storage takes it, and it can be read again."""
    stored = record.metadata()
    assert set(stored) == set(KEYS)
    text = json.dumps(stored[DETAIL], allow_nan=False, ensure_ascii=False)
    assert len(text.encode()) < 1000
    back = StopRecord.from_metadata({**stored, DETAIL: text})
    assert back is not None
    assert (back.step, back.blame, back.outcome) == (
        record.step,
        record.blame,
        record.outcome,
    )


@settings(max_examples=150)
@given(record=short_records)
def test_what_fits_reads_back_equal(record: StopRecord) -> None:
    """Nothing is shortened or rounded, NaN included."""
    stored = json.loads(json.dumps(record.metadata(), allow_nan=False))
    assert repr(StopRecord.from_metadata(stored)) == repr(record)


@settings(max_examples=150)
@given(stored=st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, json_values)))
def test_any_stored_values_are_read_without_an_error(stored: dict[str, Any]) -> None:
    """A record that was edited, cut or written by others."""
    record = StopRecord.from_metadata(stored)
    if record is not None:
        json.dumps(record.metadata(), allow_nan=False)


@settings(max_examples=100)
@given(
    detail=st.dictionaries(
        st.sampled_from([f.name for f in fields(StopRecord)]), json_values
    )
)
def test_any_detail_is_read_without_an_error(detail: dict[str, Any]) -> None:
    """Fields of the wrong kind are left out."""
    stored = {**StopRecord(reason="plateau", step=3).metadata(), DETAIL: detail}
    record = StopRecord.from_metadata(stored)
    assert record is not None
    json.dumps(record.metadata(), allow_nan=False)


@settings(max_examples=100)
@given(value=json_values)
def test_plain_values_are_strict_json(value: Any) -> None:
    """And what was plain before stays as it is, but for non-finite numbers."""
    assert from_json(to_json({"a": value})) == {"a": plain(value)}
    assert plain(plain(value)) == plain(value)


@settings(max_examples=150)
@given(value=json_values)
def test_any_value_is_read_or_passed_over(value: Any) -> None:
    """As a number, the largest of several, or a flag."""
    number = to_number(value)
    assert number is None or isinstance(number, float)
    assert to_flag(value) in (True, False, None)
    largest = to_largest(value)
    assert largest is None or isinstance(largest, float)
    if number is not None and not math.isnan(number):
        assert largest == number
