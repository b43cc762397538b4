"""Faults of trials, workers and schedulers in Ray sweeps on one local cluster."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.faults.ledger import Count, Verdict, compare
from tests.faults.trials import COUNTING, POLICY, train
from tests.integration.ray.support import takes_over_at_4
from tune_guard import Policy, load_sweep

STUB = Path(__file__).parents[1] / "integration" / "worker" / "nvml" / "stub.c"
NAN: Verdict = ("non_finite", 3)
DIED: Verdict = ("error:ActorDiedError", 2)


def sweep(
    folder: Path, expected: Mapping[str, Verdict | None], **options: Any
) -> Count:
    """Run one sweep, a trial for each fate, and hold its records against it."""
    run(folder, list(expected), **options)
    return compare(expected, recorded(str(folder / "sweep")))


def run(
    folder: Path,
    fates: list[str],
    *,
    policy: Policy = POLICY,
    retries: int = 0,
    tune_config: Mapping[str, Any] | None = None,
    space: Mapping[str, Any] | None = None,
    trainable: Any = train,
    **run_config: Any,
) -> None:
    """Run one sweep, a trial for each fate."""
    from ray import tune

    from tune_guard.ray import GuardCallback, GuardStopper, Watchdog

    (folder / "marks").mkdir(exist_ok=True)
    given = {"fate": tune.grid_search(fates), "marks": str(folder / "marks")}
    settings = {"reuse_actors": True, "scheduler": Watchdog(POLICY)}
    run_config.setdefault("stop", GuardStopper(policy))
    run_config.setdefault("storage_path", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tune.Tuner(
            trainable,
            param_space={**given, **(space or {})},
            tune_config=tune.TuneConfig(**{**settings, **(tune_config or {})}),
            run_config=tune.RunConfig(
                name="sweep",
                verbose=0,
                callbacks=[GuardCallback(policy)],
                failure_config=tune.FailureConfig(max_failures=retries),
                **run_config,
            ),
        ).fit()


def recorded(source: str) -> list[tuple[Any, Verdict]]:
    """Return fate and verdict of every trial of a sweep; a completed one has none."""
    trials = load_sweep(source).trials
    return [(trial.params.get("fate"), (trial.reason, trial.step)) for trial in trials]


def one(fate: str, verdict: Verdict | None, *, retries: int = 0) -> Any:
    """Return what runs a sweep of one trial with this fate, beside a healthy one."""

    def run(folder: Path) -> Count:
        return sweep(folder, {fate: verdict, "healthy": None}, retries=retries)

    return run


def paused(folder: Path) -> Count:
    """A scheduler pauses every trial once; one goes NaN in its second process."""
    from ray.tune.schedulers import FIFOScheduler, TrialScheduler

    from tune_guard.ray import Watchdog

    class PauseOnce(FIFOScheduler):
        def on_trial_result(self, tune_controller: Any, trial: Any, result: Any) -> str:
            """Pause at iteration 2, while it is the first process."""
            first = result["iterations_since_restore"] == result["training_iteration"]
            at = result["training_iteration"] == 2
            return TrialScheduler.PAUSE if first and at else TrialScheduler.CONTINUE

    count = sweep(
        folder,
        {"nan_saved": NAN, "saved": None},
        tune_config={"scheduler": Watchdog(POLICY, PauseOnce())},
    )
    if min(_starts(folder, fate) for fate in ("nan_saved", "saved")) < 2:
        count.remarks.append("a trial was not paused")
        count.lost += 1
    return count


def clocks_jump(folder: Path) -> Count:
    """The wall clock jumps by hours at every look, in the driver and in a worker."""
    real, looks = time.time, itertools.count()
    time.time = lambda: real() + (7200.0 if next(looks) % 2 else -7200.0)
    try:
        return sweep(folder, {"nan_clocks_jump": NAN, "healthy": None})
    finally:
        time.time = real


def nvml_errs(folder: Path) -> Count:
    """The GPU's library refuses most calls; a NaN comes between two reports."""
    marks = folder / "marks"
    marks.mkdir()
    recording = (STUB.parent / "recordings" / "partial.txt").read_text()
    (marks / "recording.txt").write_text(recording)
    library = marks / "libnvidia-ml.so.1"
    compiler = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run([*compiler, "-o", str(library), str(STUB)], check=True)
    fate = "worker_nan_nvml_errs"
    return sweep(folder, {fate: ("non_finite", 2), "healthy": None})


def _starts(folder: Path, fate: str) -> int:
    """Return how often a trial was started, by its rows."""
    (path,) = (folder / "sweep").glob(f"*fate={fate}_*/result.json")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return sum(row["iterations_since_restore"] == 1 for row in rows)


def exploited(folder: Path) -> Count:
    """Under PBT a trial takes over another's weights, and is judged anew from there."""
    scheduler = takes_over_at_4()
    run(
        folder,
        ["a", "bbbbbb"],
        policy=COUNTING,
        trainable=_population,
        space={"lr": 0.4},
        tune_config={"scheduler": scheduler, "metric": "loss", "mode": "min"},
    )
    # It counted 1 to 4, took over at 4, fate and all, and counted 5 to 11 as 1 to 7.
    expected: dict[str, Verdict | None] = {"00000": ("count_to", 7)}
    trials = load_sweep(str(folder / "sweep")).trials
    found = [(t.id.rpartition("_")[2], (t.reason, t.step)) for t in trials]
    return compare({**expected, "00001": ("count_to", 11)}, found)


def _population(config: dict[str, Any]) -> None:
    from ray import tune

    from tests.faults.trials import first_step, report

    for step in range(first_step(), 13):
        report(tune, {"loss": len(config["fate"]) + 1 / step}, save_as=step)


def out_of_time(folder: Path) -> Count:
    """The sweep's time is up while a trial runs: Ray names no trial then."""
    expected: dict[str, Verdict | None] = {"hangs": ("experiment_stop:time_budget", 2)}
    tune_config = {"scheduler": None, "time_budget_s": 4}
    return sweep(folder, expected, tune_config=tune_config)


def fail_fast(folder: Path) -> Count:
    """One trial fails and ends the experiment with it."""
    from ray import tune

    from tune_guard.ray import GuardCallback, GuardStopper

    (folder / "marks").mkdir()
    space = {
        "fate": tune.grid_search(["raises", "hangs"]),
        "marks": str(folder / "marks"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tune.Tuner(
            train,
            param_space=space,
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=str(folder),
                verbose=0,
                stop=GuardStopper(POLICY),
                callbacks=[GuardCallback(POLICY)],
                failure_config=tune.FailureConfig(fail_fast=True),
            ),
        ).fit()
    found = recorded(str(folder / "sweep"))
    # How far the other one has come by then is not known.
    stopped = ("experiment_stop:fail_fast", None)
    found = [(fate, (v[0], None) if fate == "hangs" else v) for fate, v in found]
    return compare({"raises": ("error:ValueError", 2), "hangs": stopped}, found)
