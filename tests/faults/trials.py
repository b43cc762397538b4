"""What the trials of the injected faults do: one fate a trial."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.ray.support import CountTo
from tune_guard import Policy
from tune_guard.policy import DEFAULT
from tune_guard.rules import Stalled

STEPS = 6
FOREVER_S = 10_000
SILENCE_S = 6.0

POLICY = Policy.default(
    "loss", "min", rules=(*DEFAULT, Stalled(timeout_s=SILENCE_S, first_report_s=25.0))
)
COUNTING = Policy.default("loss", "min", rules=(*DEFAULT, CountTo(n=7)))


def train(config: dict[str, Any]) -> None:
    """Report a falling loss, and meet the fate at its step."""
    from ray import tune

    fate, marks = config["fate"], Path(config["marks"])
    attempt = _attempt(marks / fate)
    guarded = fate.startswith("worker_")
    if guarded:
        _guarded(fate, attempt, marks)
        return
    if fate == "never_reports":
        time.sleep(FOREVER_S)
    for step in range(first_step(), STEPS + 1):
        sick = _sick_step(fate)
        if step == 3:
            _meet(fate, attempt)
        loss = math.nan if step == sick else 1 / step
        report(tune, {"loss": loss}, step if "saved" in fate else None)


def _sick_step(fate: str) -> int | None:
    """Return the step of the NaN: after the retry for those that are lost first."""
    if fate.startswith("nan"):
        return 3
    return 5 if fate.startswith("lost_once") else None


def _attempt(marker: Path) -> int:
    with marker.open("a") as file:
        file.write("x")
    return len(marker.read_text())


def first_step() -> int:
    """Return the step to begin with: after the checkpoint's, if there is one."""
    from ray import tune

    checkpoint = tune.get_checkpoint()
    if checkpoint is None:
        return 1
    with checkpoint.as_directory() as folder:
        return int((Path(folder) / "step").read_text()) + 1


def report(tune: Any, metrics: dict[str, Any], save_as: int | None) -> None:
    """Report a row, with a checkpoint of the step where one is to be saved."""
    if save_as is None:
        tune.report(metrics)
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "step").write_text(str(save_as))
        tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))


def _meet(fate: str, attempt: int) -> None:
    """Do what the fate is named for."""
    if "once" not in fate or attempt == 1:
        _ACTS.get(fate, _nothing)()


def _nothing() -> None:
    pass


def _kill(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def _sleep() -> None:
    time.sleep(FOREVER_S)


def _sleep_with_the_lock() -> None:
    ctypes.PyDLL(None).sleep(FOREVER_S)


def _raise() -> None:
    msg = "the user's own error"
    raise ValueError(msg)


def _jump() -> None:
    """Let this process's clock jump back by two hours, and on at every look."""
    began, looks = time.time(), itertools.count()
    time.time = lambda: began - 7200.0 + 3600.0 * next(looks)


def _run_out_of_gpu_memory() -> None:
    import torch

    msg = "CUDA out of memory. Tried to allocate 20.00 GiB."
    raise torch.OutOfMemoryError(msg)


def _run_out_of_host_memory() -> None:
    held = []
    while True:
        held.append(os.urandom(1) * 2**26)
        time.sleep(0.02)


_ACTS: dict[str, Callable[[], Any]] = {
    "killed": _kill(signal.SIGKILL),
    "lost_once": _kill(signal.SIGKILL),
    "lost_once_saved": _kill(signal.SIGKILL),
    "frozen": _kill(signal.SIGSTOP),
    "crashes": lambda: ctypes.string_at(0),
    "hangs": _sleep,
    "hangs_once": _sleep,
    "holds_the_lock": _sleep_with_the_lock,
    "raises": _raise,
    "gpu_memory": _run_out_of_gpu_memory,
    "no_memory": lambda: bytearray(2**60),
    "nan_clocks_jump": _jump,
    "host_memory": _run_out_of_host_memory,
}


def _load_nvml(folder: Path) -> None:
    """Put a stub under the bindings that refuses or fails most of its calls."""
    os.environ["NVML_STUB"] = str(folder / "recording.txt")
    ctypes.CDLL(str(folder / "libnvidia-ml.so.1"), mode=ctypes.RTLD_GLOBAL)


def _guarded(fate: str, attempt: int, marks: Path) -> None:
    """Train under a TrialGuard, which meets a NaN or loses its GPU."""
    import torch

    from tune_guard import TrialGuard

    nvml_errs = fate == "worker_nan_nvml_errs"
    if nvml_errs:
        _load_nvml(marks)
    model = torch.nn.Linear(2, 1)
    guard = TrialGuard(POLICY, gpu=0 if nvml_errs else "auto")
    for step in range(1, STEPS + 1):
        loss = model(torch.ones(1, 2)).sum()
        if fate.startswith("worker_nan") and step == 3:
            loss = loss * math.nan
        loss.backward()
        guard.step(loss, model, batch=[step])
        lost = fate == "worker_gpu" or (fate == "worker_gpu_once" and attempt == 1)
        xid = 79 if lost and step == 3 else 0
        guard.report({"loss": 1 / step, "gpu_xid": xid})
