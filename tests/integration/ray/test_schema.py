"""What a real sweep leaves has the published schema."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.integration.ray.support import by_fate, rows_of, stored
from tests.schemas import check, check_row

FATES = ["cut", "fails", "healthy"]


@pytest.fixture(scope="module")
def results(sweep: Any) -> dict[str, Any]:
    """Run a trial that is cut, one that fails and one that completes."""
    from ray import tune

    def train(config: dict[str, Any]) -> None:
        for step in range(1, 4):
            if config["fate"] == "fails" and step == 3:
                raise RuntimeError
            bad = config["fate"] == "cut" and step == 2
            tune.report({"loss": math.nan if bad else 1 / step})

    return by_fate(sweep(train, FATES))


@pytest.mark.parametrize("fate", FATES)
def test_file_and_rows_have_the_schema(results: dict[str, Any], fate: str) -> None:
    """``tune_guard.json`` with all five keys, and every row of ``result.json``."""
    content = stored(results[fate])
    assert {"tune_guard/status", "tune_guard/blame"} <= set(content)
    check("record-1", content)
    for row in rows_of(results[fate]):
        check_row(row)
