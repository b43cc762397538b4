"""Calibration: the level that is chosen, refusals, and what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tune_guard.cli import main
from tune_guard.policy import DEFAULT, Policy
from tune_guard.sweeps.calibrate import TooFewSweepsError, chosen_from
from tune_guard.sweeps.levels import LEVELS
from tune_guard.sweeps.past import Judged, Past
from tune_guard.sweeps.promise import Goal
from tune_guard.sweeps.report.calibrated import as_yaml


def judged(*losses: float, budget: int = 20) -> Judged:
    """Return a judged sweep with these losses, the rest of the levels bad."""
    rest = (1.0,) * (len(LEVELS) - len(losses))
    saved = tuple(number / 10 for number in range(len(LEVELS)))
    return Judged((*losses, *rest), saved, 10, 0, ("loss", "min"), budget)


def test_the_boldest_level_that_passes_is_chosen() -> None:
    """The fourth is the default policy."""
    found = chosen_from(Past(judged=[judged(0, 0, 0, 0)] * 45), Goal(false_kill=0.05))

    assert found.chosen.level.name == "default"
    assert found.policy.rules == DEFAULT
    assert (found.policy.metric, found.policy.budget_steps) == ("loss", 20)
    assert found.chosen.saved == pytest.approx(0.3)


def test_too_few_sweeps_are_refused_with_the_number_needed() -> None:
    """44 are one too few for 5% at 90%; they could carry 5.1%."""
    with pytest.raises(TooFewSweepsError, match=r"needs 45\. .*--false-kill 0\.051"):
        chosen_from(Past(judged=[judged(0, 0)] * 44), Goal(false_kill=0.05))


def test_no_sweeps_at_all_are_refused() -> None:
    """Without a promise that they could carry."""
    with pytest.raises(TooFewSweepsError, match=r"^0 sweeps") as refused:
        chosen_from(Past(), Goal())
    assert "could carry" not in str(refused.value)


def test_where_nothing_could_be_read_that_is_said_first() -> None:
    """Who mistyped a path needs no statistics."""
    past = Past(problems=["/nope does not exist."])
    with pytest.raises(TooFewSweepsError, match=r"^/nope does not exist\. 0 sweeps"):
        chosen_from(past, Goal())


def test_sweeps_that_even_the_most_lenient_level_harms_are_refused() -> None:
    """It says how many it killed."""
    with pytest.raises(TooFewSweepsError, match=r"killed 50\.00% of the best"):
        chosen_from(Past(judged=[judged(0.5)] * 300), Goal(false_kill=0.05))


def test_the_policy_that_is_written_can_be_read_and_says_its_promise() -> None:
    """YAML with a comment on what it rests on."""
    past = Past(judged=[judged(0, 0, 0, 0, 0)] * 50, small=3)
    found = chosen_from(past, Goal(false_kill=0.05))
    text = as_yaml(found, ["one", "two\nlines"])

    assert Policy.from_yaml(text) == found.policy
    assert "# Promise, with 90% confidence" in text
    assert "# It rests on 50 sweeps and their 500 uncut trials:" in text
    assert "arXiv:2110.01052" in text


# ----------------------------------------------------------------------- command


def table(folder: Path, sweeps: int) -> Path:
    """Write a CSV of sweeps of ten trials: one learns, the others are stuck."""
    rows = ["sweep_id,trial_id,step,metric_name,value,mode"]
    for number in range(sweeps):
        for trial in range(10):
            rows += [
                f"s{number},t{trial},{step},loss,{1 if trial else 1 / step},min"
                for step in range(1, 21)
            ]
    path = folder / "past.csv"
    path.write_text("\n".join(rows))
    return path


def test_the_command_writes_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """24 sweeps carry 10% at 90%; stuck trials are what every level finds."""
    out = tmp_path / "policy.yaml"
    asked = ["--metric", "loss", "--false-kill", "0.1", "--output", str(out)]
    status = main(["calibrate", str(table(tmp_path, 24)), *asked])

    said = capsys.readouterr().err
    assert status == 0
    assert Policy.from_yaml(out).metric == "loss"
    assert "Promise, with 90% confidence" in " ".join(said.split())


def test_the_command_refuses_too_little(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, no file, and the number of sweeps that it takes."""
    out = tmp_path / "policy.yaml"
    past = str(table(tmp_path, 3))
    status = main(["calibrate", past, "--metric", "loss", "--output", str(out)])

    assert status == 2
    assert not out.exists()
    assert "needs 230" in capsys.readouterr().err
