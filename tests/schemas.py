"""What is stored, held against the schemas that the package ships."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """Return a schema of the package: ``record-1`` or ``manifest-1``."""
    text = (files("tune_guard") / "schemas" / f"{name}.json").read_text(
        encoding="utf-8"
    )
    found: dict[str, Any] = json.loads(text)
    return found


def check(name: str, value: Any, part: str = "") -> None:
    """Fail unless a value has the schema, or a definition within it."""
    whole = schema(name)
    wanted = {"$ref": f"#/$defs/{part}", "$defs": whole["$defs"]} if part else whole
    wrong = [error.message for error in Draft202012Validator(wanted).iter_errors(value)]
    assert not wrong, wrong


def stamp_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the guard wrote into a row."""
    return {key: value for key, value in row.items() if key.startswith("tune_guard")}


def check_row(row: Any) -> None:
    """Fail unless a row of result.json is stamped as the schema says."""
    check("record-1", row, "row")
    detail = row["tune_guard/detail"]
    if detail:
        check("record-1", json.loads(detail), "detail")
