"""Stagings of a machine: GPUs behind a fake NVML, and several ranks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pynvml

from tests.cases.adapter import Plan
from tests.cases.staging import ROOT, Environment
from tests.cases.stream import Outcome
from tune_guard import Monitor
from tune_guard.notices import Notices
from tune_guard.worker.gpu.identity import VISIBLE
from tune_guard.worker.gpu.sampler import GpuSampler

RANKS_WITHIN_S = 120.0


class FakeNvml(ModuleType):
    """Stands for ``pynvml``: its constants and errors, and GPUs of our own.

    Args:
        uuids: The GPUs in NVML's order.

        slices: Which GPU each MIG slice lies on, by the slice's UUID.
    """

    def __init__(self, uuids: list[str], slices: dict[str, int] | None = None) -> None:
        super().__init__("pynvml")
        self.uuids, self.slices = uuids, slices or {}
        self.failing: str | None = None

    def __getattr__(self, name: str) -> Any:
        """Return a constant or an error of the real module; a call is not supported."""
        real = getattr(pynvml, name)
        if not name.startswith("nvml") or not callable(real):
            return real
        return self._query

    def _query(self, *_: Any) -> Any:
        raise getattr(pynvml, self.failing or "NVMLError_NotSupported")

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name
        """Open."""

    def nvmlShutdown(self) -> None:  # noqa: N802 - NVML's name
        """Close."""

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802 - NVML's name
        """Return how many GPUs there are."""
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        """Return the index as the handle."""
        return index

    def nvmlDeviceGetUUID(self, handle: Any) -> str:  # noqa: N802 - NVML's name
        """Return the UUID of a GPU."""
        return self.uuids[handle]

    def nvmlDeviceGetName(self, handle: Any) -> str:  # noqa: N802
        """Return the model: all are alike."""
        return "NVIDIA H100"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:  # noqa: N802
        """Return a GPU's index, or a slice's own UUID."""
        if uuid in self.slices:
            return uuid
        if uuid not in self.uuids:
            raise pynvml.NVMLError_NotFound
        return self.uuids.index(uuid)

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: Any) -> int:  # noqa: N802
        """Return the GPU that a slice lies on."""
        return self.slices[handle]

    def nvmlDeviceGetTemperatureV(self, *_: Any) -> float:  # noqa: N802
        """Return a cool temperature, or fail as told."""
        if self.failing is not None:
            raise getattr(pynvml, self.failing)
        return 60.0


def _mounted(fake: FakeNvml) -> Any:
    return mock.patch.dict(sys.modules, {"pynvml": fake})


# ------------------------------------------------------- which GPU is watched


def choose_gpu(environment: Environment, _: Plan, __: Path) -> dict[str, Outcome]:
    """Open the sampler under each value of CUDA_VISIBLE_DEVICES."""
    uuids = [_uuid(name) for name in environment["nvml_devices"]]
    outcome = Outcome()
    for name, text in environment["values"].items():
        value = _uuid(text)
        wanted, slices = _meant(value, text, uuids)
        notices = Notices()
        with (
            _mounted(FakeNvml(uuids, slices)),
            mock.patch.dict(os.environ, {VISIBLE: value}),
        ):
            sampler = GpuSampler(0, notices=notices)
            opened = sampler.open()
            found = uuids.index(sampler.uuid) if opened else None
            sampler.close()
        if found != wanted:
            outcome.broken.append(f"{name}: GPU {found} and not {wanted}")
        if not opened and list(notices.messages) != ["gpu"]:
            outcome.broken.append(f"{name}: {len(notices.messages)} notices")
    return {"": outcome}


def _uuid(text: str) -> str:
    """Return a UUID of a text such as ``GPU-bbbb (unique prefix)``."""
    if text.startswith("MIG-<"):
        return "MIG-11111111-aaaa-bbbb-cccc-222222222222"
    return text.partition(" ")[0].partition("(")[0].replace("...", "4444-5555")


def _meant(
    value: str, text: str, uuids: list[str]
) -> tuple[int | None, dict[str, int]]:
    """Return which GPU a value stands for, and the slices that exist."""
    if value.startswith("MIG-"):
        named = re.search(r"device (\d+)", text)
        parent = int(named.group(1)) if named else None
        return parent, {} if parent is None else {value: parent}
    value = value.partition(",")[0]  # the first of several is this process's
    if value.isdigit():
        return int(value) if int(value) < len(uuids) else None, {}
    matching = [i for i, uuid in enumerate(uuids) if uuid.startswith(value)]
    return (matching[0] if len(matching) == 1 else None), {}


# ----------------------------------------------------------- what it reports


def sample_gpu(environment: Environment, plan: Plan, _: Path) -> dict[str, Outcome]:
    """Let the sampler look once a step, and judge what it reports."""
    fake, notices = FakeNvml(["GPU-a"]), Notices()
    monitor, verdict = Monitor(plan.policy(), notices=notices), None
    with _mounted(fake), mock.patch.dict(os.environ):
        os.environ.pop(VISIBLE, None)
        sampler = GpuSampler(0, notices=notices)
        sampler.open()
        for step, sample in enumerate(environment["samples"]):
            word = str(sample).split()[0]
            fake.failing = word if word.startswith("NVMLError") else None
            sampler.look()
            verdict = monitor.observe(step, {"loss": 1.0, **sampler.since_report()})
            if verdict.stop:
                break
        sampler.close()
    if verdict is None or not verdict.stop:
        return {"": Outcome(notices=dict(notices.messages))}
    return {
        "": Outcome(
            verdict="stop",
            reason=verdict.reason,
            at_step=verdict.step,
            message=verdict.message,
            notices=dict(notices.messages),
        )
    }


# ------------------------------------------------------------- several ranks


def agree(environment: Environment, plan: Plan, folder: Path) -> dict[str, Outcome]:
    """Run one process a rank, each with its own values, over gloo."""
    (key,) = (key for key in environment if key.startswith("per_rank_"))
    world = int(environment["ranks"])
    (folder / "policy.yaml").write_text(plan.policy().to_yaml())
    setting = {
        "world": world,
        "deciding": plan.context.get("deciding_rank", 0),
        "steps": environment["steps"],
        "values": environment[key],
    }
    (folder / "setting.json").write_text(json.dumps(setting))
    told = _told_by_ranks(folder, world)
    outcome = Outcome()
    if any(words != told[0] for words in told):
        outcome.broken.append(f"the ranks differ: {told}")
    if told[0]["reason"]:
        outcome.verdict, outcome.reason = "stop", told[0]["reason"]
        outcome.at_step = told[0]["step"]
        if told[0]["began"] != told[0]["step"]:
            outcome.broken.append(f"a rank began step {told[0]['began']}")
    return {"": outcome}


def _told_by_ranks(folder: Path, world: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.cases.rank", str(folder)]
    processes = [
        subprocess.Popen(
            [*command, str(rank)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for rank in range(world)
    ]
    try:
        said = [p.communicate(timeout=RANKS_WITHIN_S)[0] for p in processes]
    finally:
        for process in processes:
            process.kill()
    return [json.loads(text) for text in said]
