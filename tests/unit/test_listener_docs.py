"""What the documents say of the listeners' settings is what the code reads."""

from __future__ import annotations

import re
from pathlib import Path

from tune_guard.notify.worth import CHOOSABLE

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")


def test_every_variable_is_documented_and_no_other_is() -> None:
    """Those that the package reads, by name."""
    code = "\n".join(path.read_text() for path in (ROOT / "tune_guard").rglob("*.py"))
    read = set(re.findall(r'"(TUNE_GUARD_[A-Z_]+)"', code))
    shown = set(re.findall(r"^\| `(TUNE_GUARD_[A-Z_]+)`", DOCS, re.MULTILINE))
    listeners = {name for name in read if name in DOCS}
    assert shown == listeners
    assert {"TUNE_GUARD_ALERTS", "TUNE_GUARD_PROMETHEUS"} <= shown
    assert set(re.findall(r"TUNE_GUARD_[A-Z_]+", DOCS)) <= read


def test_every_kind_of_alert_is_documented() -> None:
    """With when it comes."""
    for kind in CHOOSABLE:
        assert f"| `{kind}` |" in DOCS
