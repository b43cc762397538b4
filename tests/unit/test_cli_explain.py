"""The commands that explain: a bundle judged again, a recorded trial, evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.evidence.support import store, watched
from tests.unit.sweeps.ray_files import RayExperiment, row, stamped
from tune_guard import Policy
from tune_guard.cli import main
from tune_guard.cli.traces import chosen, sparkline
from tune_guard.evidence.parts import OBSERVATIONS, RECORD
from tune_guard.evidence.trace import Point
from tune_guard.record import Outcome, StopRecord

LOSS = ["--metric", "loss", "--mode", "min"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A trial that was cut for a NaN at step 3."""
    reports = [{"loss": loss} for loss in (1.0, 0.9, 0.8, float("nan"))]
    store(watched(Policy.default("loss", "min"), reports), tmp_path / "bundle")
    return tmp_path / "bundle"


@pytest.fixture
def sweep(tmp_path: Path) -> str:
    """A sweep of two trials: one went without a gain for eight reports."""
    experiment = RayExperiment(tmp_path / "sweep")
    flat = [0.5] * 9 + [0.4]
    experiment.trial("a_t0", [row(i, loss=loss) for i, loss in enumerate(flat, 1)])
    experiment.trial("a_t1", [row(i, loss=1 / i) for i in range(1, 11)])
    return str(experiment.path)


@pytest.fixture
def patience(tmp_path: Path) -> str:
    """A policy that cuts after ten reports without a gain."""
    path = tmp_path / "policy.yaml"
    rules = "{metric: loss, mode: min,\n rules: [plateau: {patience: 10, holds: []}]}"
    path.write_text(rules)
    return str(path)


def output(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, as one line of words."""
    return " ".join(capsys.readouterr().out.split())


def as_json(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what was printed, read as strict JSON."""
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_a_bundle_is_explained(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verdict, number, what to try, and that it comes out again: exit 0."""
    assert main(["explain", str(bundle)]) == 0
    said = output(capsys)
    assert "non_finite at step 3, blame: config." in said
    assert "last finite 0.8). Lower the learning rate" in said
    assert "over 4 stored observations: the same verdict at the same step." in said


def test_a_bundle_that_does_not_lead_there_exits_1(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its observations were changed."""
    text = (bundle / OBSERVATIONS).read_text()
    (bundle / OBSERVATIONS).write_text(text.replace('"NaN"', "0.7"))
    assert main(["explain", str(bundle)]) == 1
    assert "No rule stops the trial on the 4 stored observations." in output(capsys)


def test_a_bundle_is_explained_to_machines(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Strict JSON, though the number is NaN."""
    assert main(["explain", str(bundle), "--json"]) == 0
    found = as_json(capsys)
    assert (found["same"], found["record"]["value"]) == (True, "NaN")
    assert found["again"]["verdict"]["step"] == 3


def test_a_near_miss_is_explained(
    sweep: str, patience: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight of ten reports without a gain: exit 0, because nothing stops it."""
    assert main(["explain", sweep, "t0", "--policy", patience, *LOSS]) == 0
    said = output(capsys)
    assert "This policy lets it run to its end." in said
    assert "plateau without a gain" in said
    assert "8 10 9" in said  # closest, fires at, at step


@pytest.mark.parametrize("number", ["1", "00001"])
def test_a_trial_of_ray_is_found_by_its_number(
    number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends the id. That another id begins with it does not matter."""
    experiment = RayExperiment(tmp_path / "numbered")
    for trial in ("1e268_00000", "1e268_00001"):
        rows = [row(1, loss=1.0) | {"trial_id": trial}]
        experiment.trial(f"train_{trial}_0_lr=0.1", rows)
    assert main(["explain", str(experiment.path), number, *LOSS]) == 0
    assert "Trial train_1e268_00001_0_lr=0.1:" in output(capsys)


@pytest.mark.parametrize("source", ["sqlite:///study.db", "redis://host/0", "sweep"])
def test_a_sweep_without_a_trial_asks_for_one(
    source: str, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says how to list them."""
    source = sweep if source == "sweep" else source
    assert main(["explain", source]) == 2
    said = capsys.readouterr().err
    assert f"name the trial: `tune-guard explain {source} TRIAL`" in said
    assert f"`tune-guard report {source} --json` lists the trials" in said
    assert "Protocol" not in said


def test_a_trial_that_the_policy_stops_exits_1(
    sweep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says with which sentence."""
    path = tmp_path / "strict.yaml"
    path.write_text(
        "metric: loss\nmode: min\nrules: [plateau: {patience: 5, holds: []}]\n"
    )
    assert main(["explain", sweep, "a_t0", "--policy", str(path)]) == 1
    said = output(capsys)
    assert "This policy stops it: loss has not improved on 0.5 (step 1)" in said
    assert "plateau stopped the trial at step 6." in said


@pytest.mark.parametrize(
    ("readings", "said"),
    [
        (2, "Readings are stored up to step 2 only: so far the policy lets it run."),
        (0, "No reading of it is stored: the policy has nothing to judge."),
    ],
)
def test_a_trial_whose_rows_are_behind_is_not_said_to_run_to_its_end(
    readings: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was cut at step 4, and the storage does not have these rows yet."""
    stored = StopRecord(reason="divergence", outcome=Outcome.GUARD, step=4, message="M")
    text = json.dumps({**stored.metadata(), "training_iteration": 4})
    experiment = RayExperiment(tmp_path / "live")
    rows = [stamped(step, loss=1.0) for step in range(1, readings + 1)]
    experiment.trial("a_t0", rows, tune_guard=text)
    experiment.trial("a_t1", [stamped(1, loss=1.0)])
    assert main(["explain", str(experiment.path), "a_t0", *LOSS]) == 0
    found = output(capsys)
    assert f"Trial a_t0: divergence after 4 steps. M {said}" in found


def test_one_rule_is_shown_step_by_step(
    sweep: str, patience: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its number, its limit, and the share of the way."""
    words = ["explain", sweep, "t0", "--policy", patience, "--rule", "plateau", *LOSS]
    assert main(words) == 0
    assert "9 8 10 80% 10 0 10 0%" in output(capsys)


def test_every_number_is_in_the_json(
    sweep: str, patience: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Step, value, limit and share of every report."""
    assert main(["explain", sweep, "t0", "--policy", patience, "--json", *LOSS]) == 0
    numbers = as_json(capsys)["rules"]["plateau"]["numbers"]["without a gain"]
    assert numbers["points"][8] == [9, 8.0, 10.0, 0.8]
    assert numbers["closest"] == {"step": 9, "value": 8.0, "limit": 10.0, "share": 0.8}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["t9"], "There is no trial `t9`. Known: `a_t0`, `a_t1`."),
        (["a_"], "`a_` may be any of 2 trials"),
        (["t0", "--rule", "plato"], "No rule 'plato' watched the trial."),
    ],
    ids=["unknown", "ambiguous", "rule"],
)
def test_wrong_use_exits_2(
    sweep: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what to write instead."""
    assert main(["explain", sweep, *words, *LOSS]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_evidence_is_verified(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every file with its size: exit 0."""
    assert main(["evidence", str(bundle)]) == 0
    said = output(capsys)
    assert "non_finite at step 3:" in said
    assert f"record.json {(bundle / RECORD).stat().st_size} verified" in said


def test_damaged_evidence_exits_1(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And names the file."""
    (bundle / RECORD).write_text("{}")
    assert main(["evidence", str(bundle), "--json"]) == 1
    (found,) = as_json(capsys)["bundles"]
    assert found["problems"][0].startswith("record.json: damaged")


def test_no_evidence_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what to give."""
    assert main(["evidence", str(tmp_path)]) == 2
    assert "Give the trial's directory, or a bundle." in capsys.readouterr().err


def test_a_sparkline_is_full_where_a_rule_fires() -> None:
    """However far beyond it went."""
    assert (
        sparkline([Point(i, 0, 0, share) for i, share in enumerate((0, 1, 9))]) == " ██"
    )


def test_of_many_points_the_closest_is_always_shown() -> None:
    """Forty of a thousand, with first, last and closest."""
    points = [Point(i, 0, 0, float(i == 567)) for i in range(1000)]
    steps = [point.step for point in chosen(points)]
    assert {0, 567, 999} <= set(steps)
    assert len(steps) == 40
