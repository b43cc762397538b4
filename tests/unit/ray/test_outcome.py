"""Errors by their kind: the configuration's or the machine's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayTaskError

from tests.unit.ray.fake_trials import FakeTrial
from tune_guard import Blame
from tune_guard.ray._engine import error_of
from tune_guard.ray.outcome import error_fields


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
