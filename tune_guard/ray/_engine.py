"""The only module that touches private attributes of Ray Tune and its searchers.

Each is named with what it is for and has a fallback, so that a new release of
Ray can be checked against one page and costs a name, never a sweep.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import (
    OutOfMemoryError,
    RayActorError,
    RayTaskError,
    WorkerCrashedError,
)
from ray.tune.execution.placement_groups import PlacementGroupFactory
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.result import TRIAL_ID
from ray.tune.schedulers import FIFOScheduler
from ray.tune.stopper import CombinedStopper, NoopStopper, Stopper, TimeoutStopper

from tune_guard.record import StopRecord

_DEEPEST = 16
_KIND = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Exit|Interrupt|Died))\b[:(]?")


def controller() -> TuneController | None:
    """Return the controller that is calling this callback, or None.

    Ray hands callbacks neither the scheduler nor the stopper, so a callback
    that is to say who cut a trial looks up its own call stack. Only done when a
    trial ends.
    """
    for frame in _callers():
        owner = frame.f_locals.get("self")
        if isinstance(owner, TuneController):
            return owner
    return None


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to them
    for _ in range(_DEEPEST):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def modes_of(owner: TuneController | None, metric: str) -> set[str]:
    """Return the modes that Ray has for a metric: one, or none that is known.

    Two where searcher and scheduler were given different ones. TuneConfig's own
    mode goes to those that need it; where none does, only ``tune.run`` knows it.
    """
    searcher, scheduler = searchers_of(owner)[-1], scheduler_of(owner)
    known = [
        *_given_to_run(),
        (getattr(searcher, "metric", None), getattr(searcher, "mode", None)),
        (getattr(scheduler, "metric", None), getattr(scheduler, "_mode", None)),
    ]
    return {mode for names, modes in known for mode in _modes(names, modes, metric)}


def _given_to_run() -> Iterator[tuple[Any, Any]]:
    """Yield metric and mode as TuneConfig has them, from the call of ``tune.run``."""
    for frame in _callers():
        is_run = frame.f_code.co_name == "run"
        if is_run and frame.f_globals.get("__name__") == "ray.tune.tune":
            yield frame.f_locals.get("metric"), frame.f_locals.get("mode")


def _modes(names: Any, modes: Any, metric: str) -> list[str]:
    """Return the mode of a metric among one or several."""
    if isinstance(names, str):
        names, modes = [names], [modes]
    if not isinstance(names, (list, tuple)) or not isinstance(modes, (list, tuple)):
        return []
    pairs = zip(names, modes, strict=False)
    return [mode for name, mode in pairs if name == metric and mode in ("min", "max")]


def searchers_of(owner: TuneController | None) -> list[Any]:
    """Return the search algorithm and what it wraps, the innermost last."""
    found: list[Any] = [getattr(owner, "search_alg", None)]
    while hasattr(found[-1], "searcher"):
        found.append(found[-1].searcher)
    return found


def scheduler_of(owner: TuneController | None) -> Any:
    """Return the scheduler, or None when there is none that could cut."""
    scheduler: Any = getattr(owner, "_scheduler_alg", None)
    while hasattr(scheduler, "wrapped_scheduler"):
        scheduler = scheduler.wrapped_scheduler
    return None if type(scheduler) is FIFOScheduler else scheduler


def reached_budget(scheduler: Any, result: dict[str, Any]) -> bool:
    """Whether the scheduler stops this trial for having run to the end.

    ASHA and HyperBand stop a trial that reached ``max_t``: nobody cut it.
    """
    budget = getattr(scheduler, "_max_t", None) or getattr(
        scheduler, "_max_t_attr", None
    )
    reached = result.get(getattr(scheduler, "_time_attr", None) or "")
    if not isinstance(budget, (int, float)) or not isinstance(reached, (int, float)):
        return False
    return reached >= budget


def foreign_stoppers(owner: TuneController | None, ours: tuple[type, ...]) -> list[str]:
    """Return the classes of the stoppers that can cut a trial and say nothing."""
    quiet = (*ours, NoopStopper, TimeoutStopper)
    return [type(s).__name__ for s in stoppers_of(owner) if not isinstance(s, quiet)]


def stoppers_of(owner: TuneController | None) -> list[Stopper]:
    """Return the experiment's stoppers, those of Ray's own combination apart."""
    waiting: list[Any] = [getattr(owner, "_stopper", None)]
    found = []
    while waiting:
        stopper = waiting.pop(0)
        if isinstance(stopper, CombinedStopper):
            waiting += getattr(stopper, "_stoppers", ())
        elif isinstance(stopper, Stopper):
            found.append(stopper)
    return found


def failed_fast(owner: TuneController | None) -> bool:
    """Whether the experiment was stopped because one of its trials failed."""
    return bool(
        getattr(owner, "_fail_fast", False) and getattr(owner, "_has_errored", False)
    )


def newest_row(trial: Trial) -> dict[str, Any]:
    """Return a trial's newest row, which Ray and the stopper know by identity.

    ``Trial.last_result`` of a trial that never reported waits for its actor to
    answer, and an actor that hangs never does.
    """
    row: dict[str, Any] = trial.run_metadata.last_result
    if any(key != TRIAL_ID for key in row):
        return row
    answered = getattr(trial, "_default_result_or_future", None)
    return answered if isinstance(answered, dict) else row


def keep(trial: Trial, row: dict[str, Any], owner: TuneController | None) -> None:
    """See to it that a changed newest row is in the next snapshot."""
    metadata: Any = trial.run_metadata
    metadata.last_result = row
    metadata.invalidate_cache()
    mark = getattr(owner, "_mark_trial_to_checkpoint", None)
    if mark is not None:
        mark(trial)


def error_of(trial: Trial) -> tuple[str, str, bool]:
    """Return kind and text of the error, and whether the machine is to blame.

    Read from the files that this very process wrote a moment ago, in its own
    directory; files that came from elsewhere are never unpickled.
    """
    kind, text, machine = _pickled_error(trial.pickled_error_file)
    return (kind, text, machine) if kind else (*_written_error(trial), False)


def fault_of(trial: Trial) -> StopRecord | None:
    """Return the record that a HardwareFault of the worker carries, if it was one."""
    cause = getattr(_load_error(trial.pickled_error_file), "cause", None)
    record = getattr(cause, "record", None)
    return record if isinstance(record, StopRecord) else None


def _load_error(path: str | None) -> Any:
    try:
        return cloudpickle.loads(Path(path or "").read_bytes())
    except Exception:  # noqa: BLE001 - whatever a user's exception does when loaded
        return None


def _pickled_error(path: str | None) -> tuple[str, str, bool]:
    error = _load_error(path)
    if error is None:
        return "", "", False
    machine = isinstance(error, (RayActorError, WorkerCrashedError))
    if isinstance(error, RayTaskError) and error.cause is not None:
        error = error.cause
    kind = type(error).__name__
    kind = re.sub(r"^RayTaskError\((.*)\)$", r"\1", kind)
    return kind, str(error), machine


def _written_error(trial: Trial) -> tuple[str, str]:
    try:
        text = Path(trial.error_file or "").read_text(encoding="utf-8")
    except OSError:
        return "Exception", ""
    for line in reversed(text.splitlines()):
        found = _KIND.match(line.strip())
        if found:
            return found[1], line.strip()
    return "Exception", text.strip()


def process_of(trial: Trial) -> Any:
    """Return what tells the process that runs a trial from others; None for none."""
    return getattr(trial.temporary_state.ray_actor, "_actor_id", None)


def end_process(trial: Trial) -> None:
    """End the process that runs a trial, at once and wherever it is.

    Stopping the trial alone would leave a process that hangs with its resources
    for ``TUNE_FORCE_TRIAL_CLEANUP_S``, 10 minutes, and might hand it on to the
    next trial.
    """
    actor = trial.temporary_state.ray_actor
    if actor is not None:
        ray.kill(actor, no_restart=True)


def label_selectors(request: PlacementGroupFactory) -> list[dict[str, str]]:
    """Return which nodes a trial's bundles may run on, by label; empty for any."""
    kwargs: dict[str, Any] = getattr(request, "_kwargs", {})
    return kwargs.get("bundle_label_selector") or []


def with_label_selectors(
    request: PlacementGroupFactory, selectors: list[dict[str, str]]
) -> PlacementGroupFactory:
    """Return the same resources on nodes that the labels select."""
    kwargs = {**getattr(request, "_kwargs", {}), "bundle_label_selector": selectors}
    bundles = request.bundles
    if request.head_bundle_is_empty:
        bundles = [{}, *bundles]
    args = getattr(request, "_args", ())
    return PlacementGroupFactory(bundles, request.strategy, *args, **kwargs)


def survive_memory_kills(owner: TuneController | None) -> None:
    """Let a trial that Ray's memory monitor kills fail, and not the experiment.

    Ray 2.60 reports such a kill as an OutOfMemoryError, which is neither an
    actor's nor a task's error, and its actor manager takes anything else for a
    bug: ``Tuner.fit`` raises "Caught unexpected exception". Told as the death of
    the actor, which it is, the trial fails and ``max_failures`` counts.
    """
    manager: Any = getattr(owner, "_actor_manager", None)
    handle = getattr(manager, "_actor_task_failed", None)
    if handle is None:
        return

    def told_as_death(tracked_actor_task: Any, exception: Exception) -> None:
        if isinstance(exception, OutOfMemoryError):
            exception = RayActorError(error_msg=str(exception))
        handle(tracked_actor_task=tracked_actor_task, exception=exception)

    manager._actor_task_failed = told_as_death  # noqa: SLF001 - of this sweep only


def trial_of(owner: TuneController | None, trial_id: str) -> Trial | None:
    """Return the trial of this id, or None."""
    get = getattr(owner, "get_trial", None)
    return get(trial_id) if callable(get) else None


def is_finished(trial: Trial) -> bool:
    """Whether a trial has ended, well or not."""
    return trial.status in (Trial.TERMINATED, Trial.ERROR)


def optuna_trial(searcher: Any, trial_id: str) -> Any:
    """Return the Optuna trial behind a Ray trial, or None."""
    trials = getattr(searcher, "_ot_trials", None)
    return trials.get(trial_id) if isinstance(trials, dict) else None
