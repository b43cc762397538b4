"""What counts as a difference between two runs of the same tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.comparison import Comparison, Outcome, run_tests

PASSED, FAILED = Outcome("passed"), Outcome("failed", "assert not True")
BOTH = {"test_a": PASSED, "test_b": FAILED}


def test_tests_that_fail_both_ways_do_not_differ() -> None:
    """What does not work without the guard need not work with it."""
    comparison = Comparison(BOTH, BOTH, {})
    assert comparison.differences == {}
    assert comparison.broken == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PASSED, FAILED),
        (FAILED, PASSED),
        (PASSED, Outcome("error")),
        (PASSED, Outcome("skipped")),
    ],
)
def test_every_change_that_is_not_documented_is_named(
    before: Outcome, after: Outcome
) -> None:
    """Also one for the better."""
    comparison = Comparison({**BOTH, "test_x": before}, {**BOTH, "test_x": after}, {})
    changed = f"test_x: {before.outcome} -> {after.outcome} ({after.why})"
    assert comparison.broken == [changed]


def test_a_test_that_vanishes_differs() -> None:
    """Or appears: a module may not be importable in one of the runs."""
    more = {**BOTH, "test_x": PASSED}
    assert Comparison(more, BOTH, {}).broken == ["test_x: passed -> not run ()"]
    assert Comparison(BOTH, more, {}).broken == ["test_x: not run -> passed ()"]


def test_a_documented_difference_is_none_that_breaks() -> None:
    """From passed to failed, as it says."""
    comparison = Comparison(BOTH, {**BOTH, "test_a": FAILED}, {"test_a": "NaN"})
    assert [*comparison.differences] == ["test_a"]
    assert comparison.broken == []
    assert comparison.row() == {
        "tests": 2,
        "baseline passed": 1,
        "guarded passed": 0,
        "differences": 1,
        "documented": 1,
    }


def test_a_documented_difference_that_does_not_show_is_named() -> None:
    """Unless the test was not run at all."""
    documented = {"test_a": "NaN", "test_of_another_file": "NaN"}
    broken = Comparison(BOTH, BOTH, documented).broken
    assert broken == ["test_a: no difference, but one is documented"]


def test_a_documented_test_that_cannot_run_is_named() -> None:
    """Only a failure is documented."""
    comparison = Comparison(
        BOTH, {**BOTH, "test_a": Outcome("error", "no module")}, {"test_a": "NaN"}
    )
    assert comparison.broken == ["test_a: passed -> error (no module)"]


def test_nothing_that_passes_is_nothing_to_compare() -> None:
    """Two runs without a test agree, and say nothing."""
    assert len(Comparison({}, {}, {}).broken) == 1


def test_outcomes_are_those_of_the_other_projects_tests(tmp_path: Path) -> None:
    """By name, with the first line of what failed."""
    (tmp_path / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\nmarkers = ['slow']\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 1 == 2\n"
        "def test_left_out(): pytest.skip('not here')\n"
        "@pytest.mark.slow\n"
        "def test_slow(): pass\n"
        "@pytest.fixture\n"
        "def broken(): raise ValueError('no')\n"
        "def test_unready(broken): pass\n"
    )
    (tmp_path / "tests" / "test_other.py").write_text("import nothing_of_this_name\n")
    found = run_tests(tmp_path, ["tests"], [], {})
    assert {name.removeprefix("tests/"): o.outcome for name, o in found.items()} == {
        "test_other.py": "error",
    } | {
        f"test_some.py::test_{name}": outcome
        for name, outcome in {
            "good": "passed",
            "bad": "failed",
            "left_out": "skipped",
            "unready": "error",
        }.items()
    }
    assert found["tests/test_some.py::test_bad"].why == "assert 1 == 2"
