from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.unit.hostile import OF_ANY_KIND
from tune_guard.record import (
    BLAME,
    DETAIL,
    KEYS,
    REASON,
    STATUS,
    STEP,
    Outcome,
    Status,
    StopRecord,
)
from tune_guard.strict_json import to_json
from tune_guard.verdict import HEALTHY, Blame, Finding, Level, Tier, Verdict

FULL = StopRecord(
    reason="plateau",
    outcome=Outcome.GUARD,
    step=12,
    blame=Blame.CONFIG,
    metric="val_loss",
    value=0.5,
    threshold=0.4,
    message="val_loss has not improved.",
    objective="val_loss",
    mode="min",
    best_value=0.45,
    best_step=3,
    attempt=2,
    trial="t1",
    host="h1",
    gpu_uuid="GPU-1",
    warnings=("divergence@4", "slow_step@9"),
    evidence="evidence/t1",
    time="2026-01-02T03:04:05+00:00",
    version="0.1.0",
)


def strict(detail: Any) -> str:
    """Write JSON as the strictest reader takes it."""
    return json.dumps(detail, allow_nan=False, ensure_ascii=False)


# ------------------------------------------------------------------ the five keys


def test_the_keys_are_written_detail_first_and_reason_last() -> None:
    """Whoever finds the reason finds the rest too."""
    written = list(FULL.metadata())
    assert written[0] == DETAIL
    assert written[-1] == REASON
    assert set(written) == set(KEYS)


def test_the_keys_have_their_public_names() -> None:
    """They lie in people's files and databases and are never renamed."""
    assert KEYS == (
        "tune_guard/status",
        "tune_guard/reason",
        "tune_guard/step",
        "tune_guard/blame",
        "tune_guard/detail",
    )


def test_a_record_reads_back_equal() -> None:
    """As a dictionary, and as a JSON text of the detail."""
    stored = FULL.metadata()
    assert StopRecord.from_metadata(stored) == FULL
    assert StopRecord.from_metadata({**stored, DETAIL: to_json(stored[DETAIL])}) == FULL


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_numbers_are_text_and_read_back(value: float) -> None:
    """Strict JSON has no NaN; the record has."""
    record = replace(FULL, value=value, threshold=value, best_value=value)
    text = strict(record.metadata())
    back = StopRecord.from_metadata(json.loads(text))
    assert back is not None
    assert repr((back.value, back.threshold)) == repr((value, value))


def test_a_completed_trial_has_an_empty_reason() -> None:
    """No reason, no step, no blame; healthy."""
    stored = StopRecord(trial="t1").metadata()
    assert (stored[STATUS], stored[REASON]) == ("healthy", "")
    assert (stored[STEP], stored[BLAME]) == (-1, "")
    back = StopRecord.from_metadata(stored)
    assert back is not None
    assert back.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("outcome", "warnings", "status"),
    [
        (Outcome.GUARD, (), Status.STOPPED),
        (Outcome.GUARD, ("plateau@1",), Status.STOPPED),
        (Outcome.PRUNER, (), Status.HEALTHY),
        (Outcome.COMPLETED, ("plateau@1",), Status.WARNED),
    ],
)
def test_the_status_is_the_health_not_the_end(
    outcome: Outcome, warnings: tuple[str, ...], status: Status
) -> None:
    """A trial that a pruner cut may have been in good health."""
    assert StopRecord(outcome=outcome, warnings=warnings).status is status


def test_the_time_is_utc_to_the_second() -> None:
    """ISO 8601 with its zone, so that machines agree."""
    time = dt.datetime.fromisoformat(StopRecord().time)
    assert time.utcoffset() == dt.timedelta(0)
    assert time.microsecond == 0


# ------------------------------------------------------------- of a verdict


def test_the_record_of_a_verdict_holds_the_deciding_finding() -> None:
    """Rule, step, blame and the numbers that crossed."""
    found = Finding(
        rule="slow_step",
        step=7,
        tier=Tier.FATAL,
        blame=Blame.INFRASTRUCTURE,
        metric="step_time_s",
        value=0.4,
        threshold=0.2,
        message="slow",
    )
    record = StopRecord.of(Verdict(Level.STOP, (found,)), trial="t1")
    assert (record.reason, record.step) == ("slow_step", 7)
    assert (record.value, record.threshold, record.trial) == (0.4, 0.2, "t1")
    assert (record.outcome, record.blame) == (Outcome.GUARD, Blame.INFRASTRUCTURE)


def test_the_record_of_a_healthy_verdict_is_that_of_a_completed_trial() -> None:
    """Nothing decided."""
    assert StopRecord.of(HEALTHY, trial="t1").outcome is Outcome.COMPLETED


# -------------------------------------------------------------- under one kilobyte


@pytest.mark.parametrize(
    "letter", ["x", "é", "中", "\U0001f600", '"', "\\", "\n", "\0"]
)
@pytest.mark.parametrize(
    "name", ["message", "trial", "host", "metric", "gpu_uuid", "evidence", "reason"]
)
def test_the_detail_stays_under_a_kilobyte_whatever_is_long(
    name: str, letter: str
) -> None:
    """optuna-dashboard cuts at 1,024 characters; a cut JSON is none."""
    detail = replace(FULL, **{name: letter * 5000}).metadata()[DETAIL]
    assert len(strict(detail).encode()) < 1000
    assert json.loads(strict(detail))["message"]


def test_the_detail_stays_under_a_kilobyte_when_everything_is_long() -> None:
    """Every text, and many warnings."""
    texts = {
        f.name: "y" * 900
        for f in fields(StopRecord)
        if isinstance(getattr(FULL, f.name), str)
    }
    record = replace(FULL, **texts, warnings=("w" * 300,) * 50)  # type: ignore[arg-type]
    assert len(strict(record.metadata()[DETAIL]).encode()) < 1000


def test_an_ordinary_detail_is_not_shortened() -> None:
    """What fits stays whole."""
    assert FULL.metadata()[DETAIL]["message"] == FULL.message


def test_a_text_that_no_storage_takes_is_made_one() -> None:
    """A file name may hold bytes that are no text, and so may a trial's name."""
    record = replace(FULL, trial="t\udcff", message="a\ud800b")
    back = StopRecord.from_metadata(json.loads(strict(record.metadata()).encode()))
    assert back is not None
    assert (back.trial, back.message) == ("t?", "a?b")


@pytest.mark.parametrize("value", OF_ANY_KIND, ids=range(len(OF_ANY_KIND)))
def test_a_record_of_any_values_is_written(value: Any) -> None:
    """Whatever an adapter or a rule puts in, strict JSON comes out."""
    strict(StopRecord(message=value, value=value, best_step=value).metadata())


# ----------------------------------------------------------------- reading back


@pytest.mark.parametrize(
    "detail",
    [
        None,
        math.nan,
        5,
        [],
        "",
        "{",
        '{"schema": 1, "rule": "pla',
        "[1, 2]",
        "null",
        '"text"',
        "[" * 100_000,
        {},
        {"schema": 99, "outcome": "devoured", "warnings": 5, "value": "high"},
        {"value": 10**400, "best_step": 10**400, "attempt": "x", "warnings": {}},
        '{"value": 1' + "0" * 400 + "}",
        {"value": [1], "best_step": math.inf, "attempt": None, "message": {"a": 1}},
        {"outcome": [1], "message": 5, "trial": None},
        {"attempt": math.nan, "best_step": "3.0", "threshold": True},
    ],
    ids=range(18),
)
def test_a_damaged_detail_is_read_as_far_as_it_goes(detail: Any) -> None:
    """Reason and step survive; nothing raises; what was read can be written."""
    stored = {**FULL.metadata(), DETAIL: detail}
    record = StopRecord.from_metadata(stored)
    assert record is not None
    assert (record.reason, record.step, record.blame) == ("plateau", 12, Blame.CONFIG)
    strict(record.metadata())


@pytest.mark.parametrize(
    ("reason", "status", "outcome"),
    [
        ("plateau", "stopped", Outcome.GUARD),
        ("pruner:MedianPruner", "healthy", Outcome.PRUNER),
        ("scheduler:ASHAScheduler", "warned", Outcome.SCHEDULER),
        ("error:ValueError", "healthy", Outcome.ERROR),
        ("", "healthy", Outcome.COMPLETED),
        ("criterion:training_iteration", "healthy", Outcome.CRITERION),
    ],
)
def test_the_outcome_is_known_without_the_detail(
    reason: str, status: str, outcome: Outcome
) -> None:
    """A cut trial must not count as completed because its detail was cut short."""
    stored = {REASON: reason, STATUS: status, DETAIL: '{"schema": 1, "rul'}
    record = StopRecord.from_metadata(stored)
    assert record is not None
    assert record.outcome is outcome


@pytest.mark.parametrize(
    "step", [None, "x", math.nan, math.inf, [], True, -(10**400), ""]
)
def test_a_damaged_step_is_none(step: Any) -> None:
    """-1 stands for no step."""
    record = StopRecord.from_metadata({**FULL.metadata(), STEP: step})
    assert record is not None
    assert record.step == -1


@pytest.mark.parametrize("reason", [None, 5, math.nan, ["plateau"], np.array([1, 2])])
def test_without_a_reason_nothing_was_stored(reason: Any) -> None:
    """An empty cell of a table is no record."""
    assert StopRecord.from_metadata({**FULL.metadata(), REASON: reason}) is None
    assert StopRecord.from_metadata({}) is None
