"""What is kept is checked at construction."""

from __future__ import annotations

from typing import Any

import pytest

from tune_guard import ConfigError
from tune_guard.evidence import PARTS, Evidence
from tune_guard.evidence.parts import in_order, json_part
from tune_guard.evidence.settings import checked


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("parts", "record"),
        ("parts", ()),
        ("parts", ("record", "record")),
        ("parts", 5),
        ("most_bytes", 0),
        ("most_bytes", 1.5),
        ("most_bytes", True),
        ("most_s", 0),
        ("most_s", float("inf")),
        ("most_s", "10"),
        ("folder", 5),
        ("artifact_store", "s3://bucket"),
        ("checkpoint_every_steps", 0),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(name: str, value: Any) -> None:
    """The message names the argument and what it must be."""
    with pytest.raises(ConfigError, match=f"`{name}` must be"):
        Evidence(**{name: value})


def test_an_unknown_part_names_the_nearest() -> None:
    """A typing error is found at once."""
    with pytest.raises(ConfigError, match="Did you mean `observations`"):
        Evidence(parts=("observation",))


def test_what_is_no_evidence_is_refused() -> None:
    """True is a likely mistake."""
    assert checked(None) is None
    with pytest.raises(ConfigError, match="`evidence` must be an Evidence"):
        checked(True)


def test_the_order_is_the_users() -> None:
    """Parts that are not named are not written."""
    parts = [json_part(kind, kind, dict) for kind in PARTS]
    chosen = in_order(parts, Evidence(parts=("rules", "record")))
    assert [part.kind for part in chosen] == ["rules", "record"]
