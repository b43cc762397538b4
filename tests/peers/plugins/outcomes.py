"""Pytest plugin: what became of every test, as JSON in the file ``PEERS_OUTCOMES``.

It is loaded into another project's tests, so it imports nothing of this one's.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_outcomes: dict[str, dict[str, str]] = {}


@pytest.hookimpl
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that cannot be imported."""
    if report.failed:
        _note(report, "error")


@pytest.hookimpl
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test's outcome; what fails before or after it is an error."""
    if report.when == "call":
        _note(report, report.outcome)
    elif report.failed:
        _note(report, "error")
    elif report.skipped:
        _note(report, "skipped")


@pytest.hookimpl
def pytest_sessionfinish() -> None:
    """Write the outcomes down."""
    file = Path(os.environ["PEERS_OUTCOMES"])
    file.write_text(json.dumps(_outcomes), encoding="utf-8")


def _note(report: pytest.CollectReport | pytest.TestReport, outcome: str) -> None:
    crash = getattr(report.longrepr, "reprcrash", None)
    why = str(crash.message) if crash else str(report.longrepr or "")
    first = why.strip().splitlines()[0] if why.strip() else ""
    _outcomes[report.nodeid] = {"outcome": outcome, "why": first}
