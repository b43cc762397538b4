"""Valid documents of every kind: what a mutation begins with."""

from __future__ import annotations

import functools
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import optuna

from tests.streams import eventful
from tests.unit.evidence.support import only, store, watched
from tests.unit.sweeps.ray_files import stamped
from tune_guard import Monitor, Policy, StopRecord
from tune_guard.evidence.coding import state_as_json
from tune_guard.notices import Notices
from tune_guard.notify.alert import Alert, Kind
from tune_guard.optuna import GuardPruner
from tune_guard.peers import Peers

_SPACES = Path(__file__).parents[2] / "search_spaces"

POLICIES = [
    b"version: 1\nmetric: val/loss\nmode: min\nwarmup_steps: 5\npatience: 20\n",
    b"""metric: &name score
mode: max
budget_steps: 1e3
holdout: 0.05
keys: {loss: [train/loss, loss], lr: []}
fresh_key: *name
ignore_where: {sanity_checking: true}
actions: {plateau: warn, "*": off}
rules:
  - non_finite
  - plateau: {patience: 12, min_delta: 1e-4, holds: [rising_again]}
  - gradient_explosion: {factor: 10, max_norm: 100.0}
""",
]
SPACES = [
    *(path.read_bytes() for path in sorted(_SPACES.glob("*.yaml"))),
    b"""a: {type: float, low: 1e-4, high: 1, log: true}
b: {type: int, low: 1, high: 9, step: 2}
c: {type: categorical, choices: [sgd, 1, null, true]}
d: {type: float, low: 0, high: 1, step: 0.25, when: {b: [1, 3]}}
e: {type: constant, value: 20}
""",
]


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def records() -> list[bytes]:
    """Return stored records: of a cut, of a good end, one with its detail as text."""
    monitor = watched(only("divergence"), eventful(1))
    cut = monitor.record(host="node").metadata()
    text = {**cut, "tune_guard/detail": json.dumps(cut["tune_guard/detail"])}
    return [_bytes(cut), _bytes(StopRecord().metadata()), _bytes(text)]


def left_alerts() -> list[bytes]:
    """Return files in which alerts wait: a fault, a share, the end of a sweep."""
    region = {"killed": [4, 5], "others": [1, 15], "param": "lr"}
    region |= {"relation": "above", "bound": 0.1}
    facts: dict[Kind, dict[str, Any]] = {
        Kind.FAULT: {"host": "n1", "gpu_uuid": "GPU-1", "metric": "a", "value": 1.5},
        Kind.SHARE: {"dead": 5, "trials": 20, "region": region},
        Kind.END: {"trials": 9, "ended": {"guard": {"plateau": 2}}, "time_s": 60.0},
    }
    lines = []
    for number, (kind, known) in enumerate(facts.items(), start=1):
        alert = Alert(
            kind=kind, sweep="s", trials=("1", "2"), reason="plateau", facts=known
        )
        lines.append({"id": number, "for": ["m"], "alert": alert.stored()})
    more = [{"to": "m", "why": "busy"}, {"to": "n", "until": 1}]
    return [b"\n".join(map(_bytes, [*lines, *more]))]


@functools.cache
def states() -> list[bytes]:
    """Return states of monitors, the last one that of a whole stopper."""
    rules = only("divergence")
    found = [state_as_json(watched(rules, eventful(seed)).state()) for seed in (1, 2)]
    kept = watched(rules, eventful(3)[:40])
    kept.keyframe()
    found.append(state_as_json(kept.state()))
    trials = {"t": {"monitor": found[2], "config": "0" * 16}}
    stopper = {
        "version": 1,
        "policy": {"exact": "", "yaml": Policy.default("score", "min").to_yaml()},
        "step_key": "training_iteration",
        "notices": {"a": "b"},
        "awake": trials,
        "asleep": {"s": trials["t"]},
        "attempts": {"u": 2},
        "peers": peers_state(),
    }
    return [_bytes(state) for state in (*found, stopper)]


def peers_state() -> dict[str, Any]:
    """Return what finished trials had reached."""
    peers = Peers()
    policy = Policy.thrifty("score", "min", budget_steps=20)
    for number in range(4):
        monitor = Monitor(policy, trial_id=str(number), notices=Notices(), peers=peers)
        for step in range(20):
            monitor.observe(step, {"score": (number + 1) / (step + 1)})
        monitor.finish()
    state: dict[str, Any] = peers.state()
    return state


@functools.cache
def bundle_files() -> dict[str, bytes]:
    """Return the files of a bundle by name."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [*eventful(1)[:12], {"score": float("nan")}]
        store(watched(only("non_finite"), rows), Path(folder, "b"))
        return {path.name: path.read_bytes() for path in Path(folder, "b").iterdir()}


def ray_experiment() -> dict[str, bytes]:
    """Return the files of a Ray experiment by path."""
    rows = [stamped(step, loss=1 / step, eval={"acc": 0.5}) for step in range(1, 4)]
    rows.append(stamped(4, "non_finite", loss=float("nan")))
    trial = {
        "trial_id": "t0",
        "status": "TERMINATED",
        "relative_logdir": "trial_t0",
        "experiment_tag": "0_lr=0.1",
        "config": {"lr": 0.1, "opt": {"betas": [0.9, 0.99]}},
        "last_result": rows[-1],
        "stopping_criterion": {"training_iteration": 10},
    }
    state = {
        "trial_data": [[json.dumps(trial), json.dumps({"last_result": rows[-1]})]],
        "runner_data": {"_metric": "loss"},
    }
    record = StopRecord(reason="non_finite", step=4).metadata()
    csv = (
        "loss,training_iteration,trial_id,tune_guard/reason,eval/acc,d\n"
        "0.5,1,t1,,0.1,\"{'a': 1}\"\nnan,2,t1,non_finite,0.2,tensor([0.5])\n"
    )
    return {
        "trial_t0/result.json": b"".join(_bytes(row) + b"\n" for row in rows),
        "trial_t0/params.json": _bytes(trial["config"]),
        "trial_t0/tune_guard.json": _bytes(record),
        "trial_t0/error.txt": b"Traceback\nray.RayTaskError(ValueError): x\n",
        "trial_t1/progress.csv": csv.encode(),
        "experiment_state-2026-01-01_00-00-00.json": _bytes(state),
    }


LONG_TABLE = b"""sweep_id,trial_id,step,metric_name,value,mode,wall_time_s
s,a,1,loss,0.5,min,2.0
s,a,2,loss,nan,min,4.0
s,b,1,loss,inf,min,
r,c,1,acc,0.1,max,1.0
"""
LONG_TRIALS = b"""sweep_id,trial_id,config,status,objective,objective_mode
s,a,"{""lr"": 0.1}",completed,loss,min
"""
LIGHTNING = b"epoch,step,train_loss,val_loss\n0,9,0.9,\n0,9,,0.8\n1,19,0.3,\n"
HPARAMS = (
    b"lr: 0.1\nopt: &o {name: adam, betas: [0.9, 0.99]}\nagain: *o\nwhen: 2026-01-01\n"
)


def trainer_state() -> bytes:
    """Return what Hugging Face's Trainer leaves."""
    log = [{"step": step, "loss": 1 / step} for step in range(1, 5)]
    return _bytes(
        {
            "global_step": 4,
            "max_steps": 4,
            "log_history": [*log, {"step": 4, "eval_loss": 0.5}],
            "trial_name": "lr=0.1",
            "trial_params": {"lr": 0.1},
        }
    )


MLFLOW = """
CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time BIGINT,
    end_time BIGINT, lifecycle_stage TEXT, experiment_id INTEGER);
CREATE TABLE metrics (key TEXT, value FLOAT, timestamp BIGINT, run_uuid TEXT,
    step BIGINT, is_nan BOOLEAN);
CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
INSERT INTO experiments VALUES (1, 'e');
INSERT INTO runs VALUES ('r', 'first', 'FINISHED', 1700000000000, 1700000001000,
    'active', 1);
INSERT INTO metrics VALUES ('loss', 0.5, 1700000000500, 'r', 1, 0),
    ('loss', 0.0, 1700000000600, 'r', 2, 1);
INSERT INTO params VALUES ('lr', '0.1', 'r');
INSERT INTO tags VALUES ('mlflow.parentRunId', 'p', 'r');
"""
MLRUNS = {
    "1/meta.yaml": b"experiment_id: '1'\nname: e\n",
    "1/r/meta.yaml": b"run_id: r\nrun_name: first\nstatus: 3\nstart_time: 1700000000\n",
    "1/r/metrics/val/loss": b"1700000000500 0.5 1\n1700000000600 nan 2\n",
    "1/r/params/lr": b"0.1",
    "1/r/tags/mlflow.parentRunId": b"p",
}

EXPORTS = [
    b'name,state,config,summary\na,finished,"{\'lr\': 0.1}","{""loss"": 0.5}"\n',
    b"Name,State,Runtime,lr,loss\nfirst,crashed,12,0.1,0.5\n",
    b'Step,"first - loss","first - loss__MIN"\n0,0.9,0.9\n1,0.5,0.5\n',
    b'{"_step": 0, "_runtime": 1.5, "loss": 0.9}\n{"_step": 1, "loss": "NaN"}\n',
    b"""run_id,status,start_time,end_time,params.lr,metrics.loss
r,FINISHED,2026-01-01 00:00:00+00:00,1767225700000,0.1,0.5
""",
    b"""{"runs": [{"info": {"run_id": "r", "status": "FAILED", "start_time": 1},
"data": {"params": [{"key": "lr", "value": "0.1"}], "metrics": {"loss": 1}}}]}""",
    b'{"metrics": [{"key": "loss", "value": 1.5, "step": 3, "timestamp": 17000000}]}',
]


@functools.cache
def journal() -> bytes:
    """Return an Optuna journal with a cut, a pruned and a running trial."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "journal"))
        _study(JournalStorage(JournalFileBackend(path)))
        return Path(path).read_bytes()


@functools.cache
def database() -> bytes:
    """Return a SQLite file with the same study."""
    from optuna.storages import RDBStorage

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.db")
        storage = RDBStorage(f"sqlite:///{path}")
        _study(storage)
        storage.remove_session()
        storage.engine.dispose()
        with sqlite3.connect(path) as connection:
            connection.execute("VACUUM")
        connection.close()
        return path.read_bytes()


@functools.cache
def mlflow() -> bytes:
    """Return a database as MLflow lays it out, with the columns that are read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mlflow.db")
        connection = sqlite3.connect(path)
        connection.executescript(MLFLOW)
        connection.close()
        return path.read_bytes()


def _study(storage: Any) -> None:
    guard = GuardPruner(policy=Policy.default("value", "min"))
    study = optuna.create_study(storage=storage, pruner=guard, study_name="s")

    def objective(trial: optuna.Trial) -> float:
        lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
        trial.suggest_categorical("opt", ["sgd", "adam"])
        for step in range(4):
            bad = trial.number == 1 and step == 2
            trial.report(float("nan") if bad else lr / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return lr

    study.optimize(objective, n_trials=3)
    study.ask()
