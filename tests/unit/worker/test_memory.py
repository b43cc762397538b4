from __future__ import annotations

import dataclasses

import optuna
import pytest
import torch

from tests.unit.worker.support import guarded, policy
from tune_guard import TrialGuard
from tune_guard.verdict import Blame
from tune_guard.worker import memory
from tune_guard.worker.faults import HardwareFault
from tune_guard.worker.memory import GpuMemory, is_out_of_memory, verdict_of

GIB = 2**30
OURS = GpuMemory(
    allocated_bytes=70 * GIB,
    reserved_bytes=75 * GIB,
    free_bytes=3 * GIB,
    total_bytes=80 * GIB,
    retries=4,
)
THEIRS = dataclasses.replace(OURS, reserved_bytes=20 * GIB, allocated_bytes=15 * GIB)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDNN_STATUS_ALLOC_FAILED"), False),
        (MemoryError("out of memory"), False),
        (ValueError("CUDA out of memory"), False),
        (None, False),
    ],
)
def test_an_error_is_recognised(error: BaseException | None, *, expected: bool) -> None:
    """Torch's own kind, and older ones by their text; the host's memory is not it."""
    assert is_out_of_memory(error) is expected


def test_the_bytes_are_told() -> None:
    """Allocated and reserved, and how often the allocator retried."""
    verdict = verdict_of(7, OURS)
    assert (verdict.reason, verdict.step, verdict.blame) == ("cuda_oom", 7, "config")
    assert f"{70 * GIB} bytes" in verdict.message
    assert f"{75 * GIB} bytes" in verdict.message
    assert "after 4 retries" in verdict.message


def test_others_that_hold_the_memory_are_to_blame() -> None:
    """The same configuration may fit on another GPU."""
    verdict = verdict_of(7, THEIRS)
    assert verdict.blame is Blame.INFRASTRUCTURE
    assert "Other processes hold 57.00 GiB" in verdict.message


def test_without_a_gpu_to_ask_the_reason_stands() -> None:
    """A device that failed answers nothing."""
    assert memory.gpu_memory() is None
    assert verdict_of(0, None).reason == "cuda_oom"


class FakeCuda:
    """What torch says of a GPU."""

    is_initialized = staticmethod(lambda: True)
    max_memory_allocated = staticmethod(lambda: 70 * GIB)
    max_memory_reserved = staticmethod(lambda: 75 * GIB)
    memory_allocated = max_memory_allocated
    memory_reserved = max_memory_reserved
    mem_get_info = staticmethod(lambda: (3 * GIB, 80 * GIB))
    memory_stats = staticmethod(lambda: {"num_alloc_retries": 4})


def test_a_gpu_is_asked_for_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it ran out, and for each report."""
    monkeypatch.setattr(torch, "cuda", FakeCuda)
    assert memory.gpu_memory() == OURS
    assert memory.in_report() == {
        "gpu_memory_allocated_bytes": 70 * GIB,
        "gpu_memory_reserved_bytes": 75 * GIB,
        "gpu_memory_retries": 4,
    }


def test_the_context_manager_gives_the_reason() -> None:
    """And passes the error on: there is no engine to end the trial."""
    guard = guarded()
    guard.check_step(1.0)
    with pytest.raises(torch.OutOfMemoryError), guard:
        raise torch.OutOfMemoryError
    record = guard.record()
    assert (record.reason, record.step, record.outcome) == ("cuda_oom", 0, "guard")


def optuna_trial() -> optuna.Trial:
    """Return a trial beside a pruner that is not ours."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(pruner=optuna.pruners.NopPruner()).ask()


def test_a_configuration_that_does_not_fit_is_pruned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search learns from it."""
    monkeypatch.setattr(memory, "gpu_memory", lambda: OURS)
    trial = optuna_trial()
    with pytest.raises(optuna.TrialPruned), TrialGuard(policy(), trial=trial):
        raise torch.OutOfMemoryError
    assert trial.user_attrs["tune_guard/reason"] == "cuda_oom"


def test_a_crowded_gpu_is_a_fault_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search learns nothing from it."""
    monkeypatch.setattr(memory, "gpu_memory", lambda: THEIRS)
    trial = optuna_trial()
    with pytest.raises(HardwareFault), TrialGuard(policy(), trial=trial):
        raise torch.OutOfMemoryError
