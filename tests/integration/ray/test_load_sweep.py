"""Real Ray sweeps, loaded from their directory and from their result grid."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tune_guard.record import Outcome
from tune_guard.sweeps import UNKNOWN, load_sweep
from tune_guard.sweeps.compare import compare
from tune_guard.sweeps.objective import best_trial, resolve
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from collections.abc import Callable

    from tune_guard.sweeps import Sweep, Trial

STEPS = 5


def train(config: dict[str, Any]) -> None:
    """Improve for five steps, unless the trial's fate is another."""
    import numpy as np
    from ray import tune

    fate = config["fate"]
    mark = Path(tempfile.gettempdir(), f"{tune.get_context().get_trial_id()}.mark")
    for step in range(1, STEPS + 1):
        loss, norm = 1.0 / step, 1.0
        if step == 3:
            if fate == "breaks":
                loss = np.float32("nan")
            elif fate == "hides":
                loss, norm = 0.0, float("nan")
            elif fate == "fails":
                raise FloatingPointError
            elif fate == "retries" and not mark.exists():
                mark.touch()
                raise OSError
        tune.report({"loss": loss, "grad_norm": norm, "eval": {"acc": step / 10}})
    mark.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def grid(sweep: Callable[..., Any]) -> Any:
    """The results of a guarded sweep with one trial of every fate."""
    from ray import tune

    return sweep(
        train,
        ["completes", "breaks", "hides", "fails", "retries"],
        failure_config=tune.FailureConfig(max_failures=1),
    )


@pytest.fixture(scope="module")
def loaded(grid: Any) -> Sweep:
    """The same sweep, from its directory."""
    return load_sweep(grid.experiment_path)


def by_fate(loaded: Sweep) -> dict[str, Trial]:
    """Return the trials by what was to become of them."""
    return {trial.params["fate"]: trial for trial in loaded.trials}


def test_every_end_is_read(loaded: Sweep) -> None:
    """Who ended it, why, at which step, and whose fault it is."""
    found = {
        fate: (t.outcome, t.reason, t.step, t.blame, t.steps_run)
        for fate, t in by_fate(loaded).items()
        if fate != "fails"
    }
    cut = (Outcome.GUARD, "non_finite", 3, Blame.CONFIG, 3)
    assert found["breaks"] == found["hides"] == cut
    assert found["completes"][:2] == found["retries"][:2] == (Outcome.COMPLETED, "")
    assert found["completes"][4] == found["retries"][4] == STEPS
    failed = by_fate(loaded)["fails"]
    assert (failed.outcome, failed.reason) == (
        Outcome.ERROR,
        "error:FloatingPointError",
    )


def test_the_objective_is_known_from_the_records(loaded: Sweep) -> None:
    """No ``--metric`` is needed for a guarded sweep."""
    assert (loaded.metric, loaded.mode) == ("loss", "min")


def test_a_hidden_nan_does_not_rank_best(loaded: Sweep) -> None:
    """Its loss of 0.0 came with a gradient norm of NaN."""
    ranked = resolve(loaded)
    hidden = by_fate(ranked)["hides"]
    assert (hidden.best_value, hidden.best_step, hidden.last_value) == (0.5, 2, 0.0)
    best = best_trial(ranked)
    assert best is not None
    assert best.params["fate"] in ("completes", "retries")
    assert best.best_value == 1 / STEPS


def test_a_numpy_nan_is_read_out_of_its_text(loaded: Sweep) -> None:
    """Ray wrote "null"; the place is named."""
    broken = by_fate(loaded)["breaks"]
    assert str(loaded.curves.of(broken.id)["loss"].last) == "nan"
    (problem,) = [p for p in loaded.problems if broken.name in p.file]
    assert (problem.line, problem.repaired) == (3, True)


def test_a_retry_is_one_curve(loaded: Sweep) -> None:
    """Two rows of the lost attempt are in the file and not in the curve."""
    trial = by_fate(loaded)["retries"]
    curve = loaded.curves.of(trial.id)["loss"]
    assert list(curve.steps) == [1, 2, 3, 4, 5]
    assert any(trial.name in p.file and p.lines == 2 for p in loaded.problems)


def test_the_live_grid_is_the_same_sweep(grid: Any, loaded: Sweep) -> None:
    """With the same trials in the order they were made, ends and curves."""
    live = load_sweep(grid)
    fates = [trial.params["fate"] for trial in live.trials]
    assert fates == ["completes", "breaks", "hides", "fails", "retries"]
    assert live.trials == loaded.trials
    assert list(live.curves.of(live.trials[0].id)) == list(
        loaded.curves.of(live.trials[0].id)
    )
    assert live.records.keys() == loaded.records.keys()


def test_the_comparison_counts_what_happened(loaded: Sweep) -> None:
    """Two cut, one failed, two healthy."""
    found = compare(resolve(loaded))
    counts = {group.reason: len(group.trials) for group in found.groups}
    assert counts == {"completed": 2, "non_finite": 2, "error:FloatingPointError": 1}
    assert found.findings == 3
    assert found.saved is not None
    assert found.saved.steps == 2 * (STEPS - 3)


def test_a_sweep_without_the_guard_is_read(sweep: Callable[..., Any]) -> None:
    """Ray says error or terminated, and no more; a criterion is the budget."""
    from ray import tune

    grid = sweep(
        train,
        ["completes", "breaks", "fails"],
        stop={"training_iteration": 4},
        callbacks=[],
        tune_config={"metric": "loss", "mode": "min"},
    )
    foreign = load_sweep(grid)
    assert isinstance(grid, tune.ResultGrid)
    found = {fate: (t.outcome, t.reason) for fate, t in by_fate(foreign).items()}
    assert found == {
        "completes": (Outcome.CRITERION, ""),
        "breaks": (Outcome.CRITERION, ""),
        "fails": (Outcome.ERROR, "error:FloatingPointError"),
    }
    assert (foreign.metric, foreign.mode, foreign.budget_steps) == ("loss", None, 4)


def test_trials_that_a_foreign_scheduler_cut_are_unknown(
    sweep: Callable[..., Any],
) -> None:
    """Ray calls them terminated as well."""
    from ray.tune.schedulers import ASHAScheduler

    scheduler = ASHAScheduler(metric="loss", mode="max", grace_period=1, max_t=STEPS)
    grid = sweep(
        train,
        ["completes"] * 4,
        stop=None,
        callbacks=[],
        tune_config={"scheduler": scheduler, "max_concurrent_trials": 1},
    )
    reasons = {trial.reason for trial in load_sweep(grid).trials}
    assert reasons <= {"", UNKNOWN}


def test_a_trial_that_was_started_anew_counts_once(
    cluster: None, tmp_path: Path
) -> None:
    """Ray gives it another id, and forgets the one that failed."""
    from ray import tune

    mark = tmp_path / "mark"

    def once(config: dict[str, Any]) -> None:
        tune.report({"loss": 1.0})
        if config["fate"] == "fails" and not mark.exists():
            mark.touch()
            raise OSError

    space = {"fate": tune.grid_search(["completes", "fails"])}
    place = tune.RunConfig(name="sweep", storage_path=str(tmp_path))
    tune.Tuner(once, param_space=space, run_config=place).fit()
    home = tmp_path / "sweep"
    assert [trial.outcome for trial in load_sweep(home).trials] == [
        Outcome.COMPLETED,
        Outcome.ERROR,
    ]

    tune.Tuner.restore(str(home), trainable=once, restart_errored=True).fit()
    sweep = load_sweep(home)
    assert [trial.outcome for trial in sweep.trials] == [Outcome.COMPLETED] * 2
    assert [p.what for p in sweep.problems] == [
        "left out: it failed, and was started anew as another trial"
    ]
