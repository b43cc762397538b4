"""The default policy's figures do not get worse: on the sample, and on more if there.

The sample lies in ``tests/benchmarks/sample``. The recorded sweeps of other people
are not part of this repository; where they lie beside it, a part of them is run too.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.benchmarks.sample.record import FILE, FOLDER, SWEEPS, rows, write
from tests.benchmarks.sweeps import promise
from tests.benchmarks.sweeps.data import load
from tests.benchmarks.sweeps.figures import measure
from tests.benchmarks.sweeps.guard import MakePolicy, default, run_guard, thrifty
from tune_guard.sweeps.replayed import Request, replay_sources
from tune_guard.sweeps.scoring import by_rule, score

pd = pytest.importorskip("pandas")

SAMPLE = FOLDER / "curves" / FILE
CURVES = Path(__file__).parents[3] / "shared" / "curves"
PART = (
    "deepobs_baselines",
    "dreamerv3_scores",
    "marllib_curves",
    "ray_accel_rllib",
    "rl_zoo_agents",
    "td3_curves",
    "tdmpc2_curves",
)


def test_the_default_policy_on_the_sample() -> None:
    """Real trainings of this repository: no false kill, a sixth of them saved."""
    found = replay_sources([str(SAMPLE)], Request())
    sweeps = list(found.sweeps.values())
    figures = score(sweeps)

    assert (figures.sweeps, figures.trials) == (3, 200)
    assert (figures.top, figures.false_kills, figures.best_lost) == (20, 0, 0)
    assert score(sweeps, top=0.3).false_kills == 0
    assert figures.cut >= 60
    assert figures.saved_ratio >= 0.158
    assert figures.premature <= 11
    assert (figures.sick, figures.sick_cut >= 21) == (31, True)
    assert figures.sick_saved_ratio >= 0.43


def test_every_rule_has_its_share_of_the_sample() -> None:
    """Cuts by rule: a rule that falls silent is noticed."""
    found = replay_sources([str(SAMPLE)], Request())
    cuts = {rule: s.cut for rule, s in by_rule(list(found.sweeps.values())).items()}

    assert cuts == {"relapse": 30, "no_progress": 14, "divergence": 12, "non_finite": 4}


def test_the_sample_is_small_and_keeps_what_is_not_finite() -> None:
    """Under 500 kB; a NaN is a reading and no gap."""
    table = pd.read_parquet(SAMPLE)

    assert SAMPLE.stat().st_size < 500_000
    assert len(table) == 200 * 40 * 4
    assert table.groupby("sweep_id", observed=True).trial_id.nunique().to_dict() == {
        name: count for name, (_, _, _, count, _) in SWEEPS.items()
    }
    found = replay_sources([str(SAMPLE)], Request())
    assert {t.reports for trials in found.sweeps.values() for t in trials} == {40}


def test_a_recorded_nan_stays_one(tmp_path: Path) -> None:
    """Pandas alone would write a null, which is no reading."""
    reports = [{"loss": 1.0, "val_loss": math.nan, "val_accuracy": 0, "grad_norm": 1}]
    trial = {"sweep_id": "s", "trial_id": "t"}
    write(tmp_path / "t.parquet", pd.DataFrame(rows(trial, reports)))

    arrow = pytest.importorskip("pyarrow.parquet")
    assert arrow.read_table(tmp_path / "t.parquet").column("value").null_count == 0


@pytest.mark.slow
@pytest.mark.skipif(
    not CURVES.is_dir(), reason="needs the recorded sweeps in ../shared/curves"
)
@pytest.mark.parametrize(
    ("policy", "kills", "third_kills", "saved", "sick"),
    [(default, 1, 13, 0.074, 0.58), (thrifty, 5, 30, 0.183, 0.64)],
    ids=["default", "thrifty"],
)
def test_a_part_of_the_recorded_sweeps(
    policy: MakePolicy, kills: int, third_kills: int, saved: float, sick: float
) -> None:
    """Seven sets, 3,014 trials: at most so many kills, at least so much saved."""
    studies = load(CURVES, PART)
    figures = pd.DataFrame([measure(s, run_guard(s, policy)[0]) for s in studies])
    total = figures.sum(numeric_only=True)

    assert total.kills <= kills
    assert total.third_kills <= third_kills
    assert figures.saved.mean() >= saved
    assert total.sick_saved / total.sick_reports >= sick


@pytest.mark.slow
@pytest.mark.skipif(
    not CURVES.is_dir(), reason="needs the recorded sweeps in ../shared/curves"
)
def test_a_calibrated_policy_keeps_its_promise_on_recorded_sweeps() -> None:
    """Calibrated on many pasts: the chosen level breaks it in at most a tenth.

    ``python -m tests.benchmarks.sweeps.promise`` does the same on all sets.
    """
    studies = load(CURVES, ["deepobs_baselines", "rl_zoo_agents", "tdmpc2_curves"])
    found = promise.table(promise.judge_all(studies))

    resampled = found[found.way == "resampled"]
    assert (resampled["promise broken"] <= 1 - promise.CONFIDENCE).all()
    assert (found["mean rate"] <= found.limit).all()
    assert (resampled.refused < 1).any()
