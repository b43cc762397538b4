"""The published schemas: they say what is stored, and nothing that is not."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from tests.property.test_record import records
from tests.schemas import check, schema
from tests.unit.evidence.support import only, store, watched
from tests.unit.sweeps.test_replay import NAN, sweep
from tune_guard import Policy, StopRecord
from tune_guard.record import DETAIL, KEYS, SCHEMA, STATUS, Outcome, Status
from tune_guard.sweeps.foreign import judged
from tune_guard.verdict import Blame

RECORD = schema("record-1")
DETAILS = RECORD["$defs"]["detail"]["properties"]


@pytest.mark.parametrize("name", ["record-1", "manifest-1"])
def test_the_schemas_are_schemas(name: str) -> None:
    """Of the draft that they name."""
    Draft202012Validator.check_schema(schema(name))


def test_the_schema_names_every_field() -> None:
    """A field that is added to the record is added there too."""
    stored = {f.name for f in fields(StopRecord)} - {"reason", "step"}
    assert set(DETAILS) == stored | {"schema", "rule", "status"}
    assert {key for key in RECORD["properties"] if "/" in key} == set(KEYS)


def test_the_schema_names_every_word() -> None:
    """Outcomes, blames and states; and the version that is written."""
    assert DETAILS["outcome"]["enum"] == [str(outcome) for outcome in Outcome]
    assert DETAILS["blame"]["enum"] == [str(blame) for blame in Blame]
    assert RECORD["$defs"]["status"]["enum"] == [str(status) for status in Status]
    assert DETAILS["schema"]["const"] == SCHEMA


@settings(max_examples=100)
@given(record=records)
def test_every_record_has_the_schema(record: StopRecord) -> None:
    """Whatever it holds, and however much had to be cut short."""
    stored = json.loads(json.dumps(record.metadata(), allow_nan=False))
    check("record-1", stored)
    check("record-1", stored[DETAIL], "detail")


def test_what_a_replay_finds_has_the_schema() -> None:
    """The same record as in production."""
    recorded = sweep(a=[1.0, NAN], b=[1.0, 0.5]).with_objective("loss", "min")
    found = judged(recorded, Policy.default("loss", "min"))
    assert found.records["a"].reason == "non_finite"
    for record in found.records.values():
        check("record-1", record.metadata())


def test_a_manifest_has_the_schema(tmp_path: Path) -> None:
    """As it lies in the bundle."""
    monitor = watched(only("non_finite"), [{"score": 1.0}, {"score": NAN}])
    store(monitor, tmp_path / "b")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["files"]
    check("manifest-1", manifest)


def test_a_record_of_a_newer_schema_is_read_as_far_as_it_goes() -> None:
    """Unknown fields and words are passed over; what is known keeps its meaning."""
    stored = StopRecord(reason="plateau", outcome=Outcome.GUARD, step=7).metadata()
    newer = {"schema": SCHEMA + 1, "outcome": "adopted", "metric": "loss", "mood": []}
    found = StopRecord.from_metadata({**stored, DETAIL: newer, STATUS: "adopted"})
    assert found is not None
    assert (found.reason, found.step, found.metric) == ("plateau", 7, "loss")
    assert found.outcome is Outcome.GUARD
