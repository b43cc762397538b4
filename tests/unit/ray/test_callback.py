"""The callback on trials that Ray's controller is not there to move."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs
from ray import cloudpickle
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayTaskError

from tune_guard import Blame, ConfigError, Policy
from tune_guard.ray import GuardCallback, GuardStopper
from tune_guard.ray._engine import error_of
from tune_guard.ray.outcome import error_fields
from tune_guard.ray.rows import record_in, stamp_of

POLICY = Policy.default("loss", "min")


class Metadata:
    """A trial's run metadata."""

    def __init__(self) -> None:
        self.last_result: dict[str, Any] = {}
        self.snapshots_outdated = 0

    def invalidate_cache(self) -> None:
        """Count."""
        self.snapshots_outdated += 1


class FakeTrial(SimpleNamespace):
    """What the callback uses of a trial."""

    @property
    def last_result(self) -> dict[str, Any]:
        """Hang, as Ray does for a trial whose actor never answered."""
        pytest.fail("Trial.last_result may wait for an actor for ever")


@pytest.fixture
def trial(tmp_path: Path) -> FakeTrial:
    """Return a running trial with local storage."""
    (tmp_path / "staging").mkdir()
    storage = SimpleNamespace(
        storage_filesystem=fs.LocalFileSystem(), experiment_dir_name="sweep"
    )
    return FakeTrial(
        trial_id="t",
        status="RUNNING",
        storage=storage,
        path=str(tmp_path / "t"),
        local_path=str(tmp_path / "staging"),
        run_metadata=Metadata(),
        stopping_criterion={},
        evaluated_params={"lr": 0.1},
        error_file=str(tmp_path / "error.txt"),
        pickled_error_file=str(tmp_path / "error.pkl"),
    )


def file_of(trial: FakeTrial) -> Path:
    """Return the path of a trial's record."""
    return Path(trial.path) / "tune_guard.json"


def hooks(trials: list[Any], trial: Any = None) -> dict[str, Any]:
    """Return the arguments that Ray passes to a hook."""
    more = {"trial": trial} if trial is not None else {}
    return {"iteration": 1, "trials": trials, **more}


def test_a_missing_mode_is_an_error_at_construction() -> None:
    """As for the stopper."""
    with pytest.raises(ConfigError, match="`mode` must be"):
        GuardCallback(Policy.default("loss"))
    with pytest.raises(ConfigError, match=r"GuardCallback\(Policy"):
        GuardCallback(None)  # type: ignore[arg-type]


def test_no_hook_raises_into_the_sweep(caplog: Any) -> None:
    """Whatever a trial turns out to be."""
    callback = GuardCallback(POLICY)
    broken = SimpleNamespace(trial_id="t")
    callback.setup(time_budget_s=object())
    for name in ("start", "complete", "error"):
        getattr(callback, f"on_trial_{name}")(**hooks([broken], broken))
    row = {"done": True, "tune_guard": {}}
    callback.on_trial_result(**hooks([broken], broken), result=row)
    callback.on_experiment_end(trials=[broken])
    assert caplog.messages
    assert all("the sweep goes on" in message for message in caplog.messages)


def test_a_trial_is_recorded_once(trial: FakeTrial) -> None:
    """A later hook does not replace what the first has said."""
    callback = GuardCallback(POLICY)
    callback.on_trial_start(**hooks([trial], trial))
    trial.run_metadata.last_result = {"loss": 0.5, "training_iteration": 1}
    trial.run_metadata.last_result["done"] = True
    callback.on_trial_complete(**hooks([trial], trial))
    text = file_of(trial).read_text()
    trial.status = "TERMINATED"
    trial.run_metadata.last_result = {"loss": 0.5, "training_iteration": 2}
    callback.on_trial_complete(**hooks([trial], trial))
    callback.on_step_end(**hooks([trial]))
    callback.on_experiment_end(trials=[trial])
    assert file_of(trial).read_text() == text
    assert '"outcome": "completed"' in text


def test_the_record_of_a_trial_that_none_judged_names_the_objective(
    trial: FakeTrial,
) -> None:
    """Else a report of a sweep without a stopper would have to be told."""
    callback = GuardCallback(POLICY)
    trial.run_metadata.last_result = {"loss": 0.5, "done": True}
    callback.on_trial_complete(**hooks([trial], trial))
    record = record_in(trial.run_metadata.last_result)
    assert record is not None
    assert (record.objective, record.mode) == ("loss", "min")


def test_the_record_is_in_the_next_snapshot(trial: FakeTrial) -> None:
    """Ray caches a trial's state until it is told that it changed."""
    callback = GuardCallback(POLICY)
    trial.run_metadata.last_result = {"loss": 0.5, "done": True}
    callback.on_trial_complete(**hooks([trial], trial))
    assert trial.run_metadata.snapshots_outdated == 1
    record = record_in(trial.run_metadata.last_result)
    assert record is not None
    assert trial.evaluated_params == {"lr": 0.1, "tune_guard/reason": "completed"}


def test_the_monitor_is_let_go_with_the_trial(trial: FakeTrial) -> None:
    """Ray keeps the last row of every trial to the end of the sweep."""
    stopper, callback = GuardStopper(POLICY), GuardCallback(POLICY)
    row: dict[str, Any] = {"loss": 0.5, "training_iteration": 1}
    stopper("t", row)
    trial.run_metadata.last_result = row
    Path(trial.error_file).write_text("Failure # 1\nKeyError: 'a'\n")
    callback.on_trial_error(**hooks([trial], trial))
    stamp = stamp_of(row)
    assert stamp is not None
    assert (stamp.monitor, stamp.ended) == (None, True)
    assert stamp["reason"] == "error:KeyError"


class OnlyItsEnds(list[Any]):
    """A list that may be looked at from its ends, but not walked through."""

    def __iter__(self) -> Iterator[Any]:
        """Fail: ten thousand trials at every step are too many."""
        pytest.fail("all trials were looked at")


def test_a_step_in_which_nothing_ended_looks_at_two_trials(trial: FakeTrial) -> None:
    """Ray calls it after every result."""
    callback = GuardCallback(POLICY)
    callback.on_step_begin(**hooks([]))
    callback.on_trial_start(**hooks([trial], trial))
    trials = OnlyItsEnds([trial] * 10_000)
    for _ in range(3):
        callback.on_step_begin(**hooks(trials))
        callback.on_step_end(**hooks(trials))


def test_trials_that_had_ended_before_a_restore_are_left_alone(
    trial: FakeTrial,
) -> None:
    """Their records are there; this session knows nothing about their ends."""
    callback = GuardCallback(POLICY)
    trial.status = "TERMINATED"
    callback.on_step_begin(**hooks([trial]))
    callback.on_step_end(**hooks([trial]))
    assert not file_of(trial).exists()


def test_it_is_pickled_without_its_trials(trial: FakeTrial) -> None:
    """Ray stores callbacks with the experiment."""
    callback = GuardCallback(POLICY)
    callback.on_trial_start(**hooks([trial], trial))
    again = pickle.loads(pickle.dumps(callback))  # noqa: S301 - our own
    assert again._policy == POLICY
    assert not again._open


# ---------------------------------------------------------------------- errors


def raised(error: Exception) -> RayTaskError:
    """Return an error as it comes from a worker."""
    return RayTaskError("train", "Traceback ...\n", error).as_instanceof_cause()


class OwnError(Exception):
    """A user's own exception, which needs two arguments to be made."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@pytest.mark.parametrize(
    ("error", "kind", "machine"),
    [
        (raised(FloatingPointError("loss is NaN")), "FloatingPointError", False),
        (raised(MemoryError("CUDA out of memory")), "MemoryError", False),
        (ActorDiedError(), "ActorDiedError", True),
        (OutOfMemoryError("killed"), "OutOfMemoryError", False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_has_a_kind(
    trial: FakeTrial, error: Any, kind: str, machine: bool
) -> None:
    """From the file that Ray has written a moment ago."""
    Path(trial.pickled_error_file).write_bytes(cloudpickle.dumps(error))
    found = error_of(trial)  # type: ignore[arg-type]
    assert (found[0], found[2]) == (kind, machine)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Failure # 1\nTraceback ...\n  File x\ntorch.OutOfMemoryError: CUDA\n", None),
        ("Failure # 1\nValueError: a\nFailure # 2\nmy.pkg.OwnError(3)\n", "OwnError"),
        ("Failure # 1\nsomething else\n", "Exception"),
        (None, "Exception"),
    ],
)
def test_an_error_that_cannot_be_loaded_is_read_from_its_text(
    trial: FakeTrial, text: str | None, kind: str | None
) -> None:
    """The last line that names an exception."""
    broken = cloudpickle.dumps(OwnError(3, "x"))
    Path(trial.pickled_error_file).write_bytes(broken)
    if text is not None:
        Path(trial.error_file).write_text(text)
    found = error_of(trial)  # type: ignore[arg-type]
    assert (found[0], found[2]) == (kind or "OutOfMemoryError", False)


class GpuMemoryError(RuntimeError):
    """As torch raises it, by another module's name."""


GpuMemoryError.__name__ = "OutOfMemoryError"

HOST = (
    "Failure # 1 (occurred at 2026-01-01)\n2 worker(s) were killed due to the node"
    " running low on memory. Memory on the node was 4.09GB used / 23.54GB limit\n"
)


@pytest.mark.parametrize(
    ("error", "text", "reason", "blame"),
    [
        (None, HOST, "error:host_oom", Blame.INFRASTRUCTURE),
        (
            raised(RuntimeError("CUDA out of memory.")),
            "",
            "error:cuda_oom",
            Blame.CONFIG,
        ),
        (
            raised(GpuMemoryError("HIP out of memory.")),
            "",
            "error:cuda_oom",
            Blame.CONFIG,
        ),
        (raised(ValueError("x")), "", "error:ValueError", None),
        (ActorDiedError(), "", "error:ActorDiedError", Blame.INFRASTRUCTURE),
    ],
    ids=["host", "cuda", "torch", "exception", "died"],
)
def test_memory_that_ran_out_has_a_name(
    trial: FakeTrial, error: Any, text: str, reason: str, blame: Any
) -> None:
    """Of the GPU and of the machine: two things that are both OutOfMemoryError."""
    if error is not None:
        Path(trial.pickled_error_file).write_bytes(cloudpickle.dumps(error))
    Path(trial.error_file).write_text(text)
    fields = error_fields(trial)  # type: ignore[arg-type]
    assert (fields["reason"], fields["blame"]) == (reason, blame)
