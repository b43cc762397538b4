"""What is stated to be supported is what the nightly rows run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from tests.versions.rows import ROWS

ROOT = Path(__file__).resolve().parents[2]
_TOML = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = _TOML["project"]
GUIDE = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")


def lower_bounds() -> dict[str, str]:
    """Return the oldest release of each distribution that the project allows."""
    extras = PROJECT["optional-dependencies"]
    stated = [*PROJECT["dependencies"], *(x for e in extras.values() for x in e)]
    found = [re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", text) for text in stated]
    return {match[1]: match[2] for match in found if match}


def same(one: str, other: str) -> bool:
    """Whether two versions are the same but for zeros at the end."""
    return re.sub(r"(\.0)+$", "", one) == re.sub(r"(\.0)+$", "", other)


def test_the_oldest_rows_run_the_oldest_that_is_allowed() -> None:
    """A bound that no row runs is a guess."""
    bounds = lower_bounds()
    pins = {**ROWS["oldest-torch"].pins, **ROWS["oldest"].pins}
    assert {n: v for n, v in pins.items() if not same(v, bounds[n])} == {}
    assert {"ray", "optuna", "torch"} <= set(pins)
    needed = {text.partition(">=")[0] for text in PROJECT["dependencies"]}
    assert needed <= set(pins)


def test_every_python_that_is_named_is_run() -> None:
    """The oldest is what the package asks for."""
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert sorted({row.python for row in ROWS.values()}) == sorted(named)
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_guide_names_the_rows_and_the_bounds() -> None:
    """In its tables."""
    assert [name for name in ROWS if f"| {name} |" not in GUIDE] == []
    bounds = lower_bounds()
    for label, name in (("Ray", "ray"), ("Optuna", "optuna"), ("PyTorch", "torch")):
        assert re.search(rf"^\| {label} \| {bounds[name]} \|", GUIDE, re.MULTILINE)


def test_the_tests_that_need_torch_are_run_with_the_oldest() -> None:
    """All other rows skip them whole; a path that is gone would end the row."""
    run = {path for path in ROWS["oldest-torch"].parallel if path.startswith("tests/")}
    assert [path for path in run if not (ROOT / path).exists()] == []
    need = {
        f"tests/unit/{path.name}"
        for path in (ROOT / "tests" / "unit").glob("test_*.py")
        if re.search(r"^import torch$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert need <= run
