"""Stagings with Ray's stopper, Optuna's storages and a trial's files."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cases.adapter import Plan
from tests.cases.staging import ROOT, Environment, NotStagedError
from tests.cases.stream import Outcome
from tune_guard.nested_keys import flat_keys
from tune_guard.record import DETAIL, FALLBACK_SUFFIX, REASON, STEP

# ---------------------------------------------- several trials, one Ray stopper


def place(environment: Environment, plan: Plan, _: Path) -> dict[str, Outcome]:
    """Let trials of one sweep report in turn to one stopper, as Ray does.

    Telemetry is in the results or nowhere: the stopper reads no card.
    """
    from tune_guard.ray import GuardStopper

    results = {
        key.removeprefix("trial_").removesuffix("_results"): rows
        for key, rows in environment.items()
        if key.endswith("_results")
    }
    for rows in results.values():
        for row in rows:
            plan.read_telemetry_of(flat_keys(row["metrics"]))
    stopper = GuardStopper(plan.policy(), step_key="step")
    outcomes = {name: Outcome() for name in results}
    for turn in range(max(map(len, results.values()))):
        for name, rows in results.items():
            if turn < len(rows) and outcomes[name].verdict == "continue":
                row = {"step": rows[turn]["step"], **rows[turn]["metrics"]}
                if stopper(name, row):
                    outcomes[name] = Outcome(
                        verdict="stop", reason=row[REASON], at_step=row[STEP]
                    )
    for outcome in outcomes.values():
        outcome.notices = dict(stopper._notices.messages)
    return outcomes


# -------------------------------------------------------------- Optuna storages


def optuna_flow(
    environment: Environment, plan: Plan, folder: Path
) -> dict[str, Outcome]:
    """Cut a trial in every storage, and read it back in another process."""
    if "NaN" not in environment["flow"]:
        msg = f"a staging of the flow {environment['flow']!r}"
        raise NotStagedError(msg)
    outcome = Outcome()
    journal = folder / "journal.log"
    for address in ("", f"sqlite:///{folder / 'study.db'}", f"journal:{journal}"):
        trial = _cut_by_nan(address, plan)
        kind = address.partition(":")[0] or "memory"
        if trial["state"] != "PRUNED":
            outcome.broken.append(f"{kind}: the trial is {trial['state']}")
        outcome.broken += [
            f"{kind}: no {key}" for key in (REASON, STEP, DETAIL) if key not in trial
        ]
        outcome.verdict = "stop" if trial["state"] == "PRUNED" else "continue"
        outcome.reason, outcome.at_step = trial.get(REASON), trial.get(STEP)
    return {"": outcome}


def _cut_by_nan(address: str, plan: Plan) -> dict[str, Any]:
    """Run a trial that reports NaN; return it as another process finds it."""
    from tests.cases.reload import open_storage, stored_trial

    study = _study(open_storage(address) if address else None, plan)
    study.optimize(_nan_objective, n_trials=1)
    if not address:
        return stored_trial(study)
    command = [sys.executable, "-m", "tests.cases.reload", address, study.study_name]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _nan_objective(trial: Any) -> float:
    import optuna

    trial.report(math.nan, 0)
    if trial.should_prune():
        raise optuna.TrialPruned
    return 1.0


def _study(storage: Any, plan: Plan) -> Any:
    import optuna

    from tune_guard.optuna import GuardPruner

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = GuardPruner(policy=plan.policy())
    return optuna.create_study(storage=storage, pruner=pruner)


_TIMES = {"once": 1.0, "twice": 2.0, "three times": 3.0, "always": math.inf}


def locked(environment: Environment, plan: Plan, folder: Path) -> dict[str, Outcome]:
    """Let the storage refuse the record so many times, in each case of several."""
    outcome = Outcome(verdict="stop")
    for name, text in sorted(environment.items()):
        times = next((n for word, n in _TIMES.items() if word in text), math.inf)
        file = folder / f"{name}.db"
        trial = _cut_under_refusals(file, times, plan)
        kept = file.with_name(file.name + FALLBACK_SUFFIX)
        if trial["state"] != "PRUNED":
            outcome.verdict = "continue"
            outcome.broken.append(f"{name}: the trial is {trial['state']}")
        if trial.get(REASON):
            outcome.reason, outcome.at_step = trial[REASON], trial[STEP]
        if math.isfinite(times) and not trial.get(REASON):
            outcome.broken.append(f"{name}: the reason was not stored")
        if math.isinf(times) and not kept.exists():
            outcome.broken.append(f"{name}: no local file took the record")
    return {"": outcome}


def _cut_under_refusals(file: Path, times: float, plan: Plan) -> dict[str, Any]:
    import sqlalchemy.exc
    from optuna.storages import RDBStorage

    from tests.cases.reload import stored_trial

    left = [times]

    class Refusing(RDBStorage):
        def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
            if left[0] > 0:
                left[0] -= 1
                said = Exception("database is locked")
                statement = "UPDATE trial_user_attributes"
                raise sqlalchemy.exc.OperationalError(statement, {}, said)
            super().set_trial_user_attr(trial_id, key, value)

    study = _study(Refusing(f"sqlite:///{file}"), plan)
    study.optimize(_nan_objective, n_trials=1)
    return stored_trial(study)


# ------------------------------------------------------- replay of a Ray trial


def replay_files(
    environment: Environment, plan: Plan, folder: Path
) -> dict[str, Outcome]:
    """Replay a trial directory; with the CSV alone the metric is not there."""
    from tune_guard.sweeps import load_sweep
    from tune_guard.sweeps.replay import replay

    rows = environment["result.json"]
    text = str(environment.get("progress.csv", ""))
    columns = [key for key in _keys_of(rows) if key in text] or _keys_of(rows[:1])
    both, headless = folder / "both" / "trial_1", folder / "headless" / "trial_1"
    alone = folder / "csv" / "trial_1"
    _write_json(both, rows)
    _write_csv(both, columns, rows, header=True)
    _write_csv(alone, columns, rows, header=True)
    _write_csv(headless, columns, rows, header=False)

    policy = plan.policy()
    (found,) = replay(load_sweep(both.parent), policy)
    outcome = Outcome(best=found.kept)
    if found.reason:
        outcome.verdict, outcome.reason = "stop", found.reason
        outcome.at_step = found.step
    if policy.metric not in columns:
        only = load_sweep(alone.parent)
        said = " ".join(problem.what for problem in only.problems)
        if replay(only, policy) or "not in this file" not in said:
            outcome.broken.append("the CSV alone is not said to lack the metric")
    bare = load_sweep(headless.parent)
    if len(bare.curves) or "no header" not in str(bare.problems):
        outcome.broken.append("a CSV without a header is not reported")
    return {"": outcome}


def _keys_of(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _write_json(folder: Path, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "result.json").write_text(text)


def _write_csv(
    folder: Path, columns: list[str], rows: list[dict[str, Any]], *, header: bool
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "progress.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        if header:
            writer.writeheader()
        writer.writerows(rows)
