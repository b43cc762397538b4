"""Everything that needs a GPU, in one run: ``python -m tests.gpu.check [FILE.json]``.

Under four minutes on one GPU. It prints which calls of NVML answer, whether CUDA's
GPU and NVML's are the same, what the guard adds to a step of a GPT of 124 million
parameters in bf16, which synchronisations the profiler counts with and without it,
how late a verdict is, that skipped steps are no fault, and what an end by lack of
memory is called. Without a GPU it says so and checks nothing. It exits with 1 where
the guard takes 1% of a step, adds a synchronisation, or a verdict is wrong.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tune_guard import Policy, TrialGuard
from tune_guard.notices import Notices
from tune_guard.worker.gpu.sampler import GpuSampler

POLICY = Policy.default("val_loss", "min")
DEVICE = "cuda"
BLOCKS, BLOCK = 7, 15
BATCH, CONTEXT, WORDS = 8, 1024, 50304
MOST_OF_A_STEP = 0.01
SYNCS = (
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "aten::_local_scalar_dense",
    "aten::item",
)

Check = Callable[[torch.Tensor, torch.Tensor], object]


# ------------------------------------------------------------------- the model


class Block(nn.Module):
    """One layer of a GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend, then transform."""
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        hidden: torch.Tensor = x + self.down(functional.gelu(self.up(self.after(x))))
        return hidden


class Gpt(nn.Module):
    """A GPT of 12 layers and width 768: 124 million parameters."""

    def __init__(self, width: int = 768, layers: int = 12, heads: int = 12) -> None:
        super().__init__()
        self.words, self.places = (
            nn.Embedding(WORDS, width),
            nn.Embedding(CONTEXT, width),
        )
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the loss of predicting each next word."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.words.weight)
        return functional.cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten()
        )


class Loop:
    """A training loop in bf16 with clipping and fused AdamW, without any wait."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = Gpt().to(DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4, fused=True)
        self.tokens = torch.randint(0, WORDS, (BATCH, CONTEXT), device=DEVICE)

    def step(self, check: Check | None, factor: torch.Tensor | None = None) -> None:
        """Train for one step, with the check before the optimizer."""
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = self.model(self.tokens)
        loss = loss if factor is None else loss * factor
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if check is not None:
            check(loss, norm)
        self.optimizer.step()


def ways(loop: Loop) -> dict[str, Check | None]:
    """Return the loops that are compared."""
    given, own = TrialGuard(POLICY), TrialGuard(POLICY)
    return {
        "no guard": None,
        "norm given": lambda loss, norm: given.step(
            loss, loop.model, grad_norm=norm, optimizer=loop.optimizer
        ),
        "own norm": lambda loss, _: own.step(
            loss, loop.model, optimizer=loop.optimizer
        ),
    }


# ------------------------------------------------------------------ the checks


def nvml() -> dict[str, Any]:
    """Say which calls of NVML answer on this GPU, and whether it is the right one."""
    notices = Notices()
    uuid = str(torch.cuda.get_device_properties(0).uuid)
    sampler = GpuSampler(0, uuid=f"GPU-{uuid}", notices=notices)
    if not sampler.open():
        return {"unavailable": list(notices.messages.values())}
    by_rules = GpuSampler(0, notices=Notices())
    by_rules.open()
    sampler.look()
    time.sleep(1.0)
    sampler.look()
    found = sampler.since_report()
    began = time.thread_time()
    for _ in range(200):
        sampler.look()
    return {
        "values": found,
        "not supported": [t for t in notices.messages if t.startswith("nvml:")],
        "same GPU": {"cuda": f"GPU-{uuid}", "nvml": sampler.uuid},
        "without CUDA's word": by_rules.uuid or list(by_rules._notices.messages),
        "thermal counters": thermal_counters(sampler),
        "share of a core at 1 Hz": (time.thread_time() - began) / 200,
    }


def thermal_counters(sampler: GpuSampler) -> dict[str, Any]:
    """Read the time throttled by heat in every way there is, to compare the units."""
    import pynvml

    handle, found = sampler._handle, {}
    for field in (75, 251, 252, 253, 269, 270, 271):
        (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [field])
        found[str(field)] = [value.nvmlReturn, value.valueType, value.value.ullVal]
    try:
        status = pynvml.nvmlDeviceGetViolationStatus(handle, 1)
        found["violation"] = [status.referenceTime, status.violationTime]
    except pynvml.NVMLError as error:
        found["violation"] = [repr(error)]
    return found


def overhead(loop: Loop) -> dict[str, Any]:
    """Measure blocks of steps that take turns; return seconds a step and shares."""
    compared = ways(loop)
    times: dict[str, list[float]] = {name: [] for name in compared}
    for block in range(BLOCKS + 1):
        for name, check in compared.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(BLOCK):
                loop.step(check)
            torch.cuda.synchronize()
            if block:
                times[name].append((time.perf_counter() - began) / BLOCK)
    medians = {name: statistics.median(found) for name, found in times.items()}
    plain = medians["no guard"]
    shares = {name: took / plain - 1.0 for name, took in medians.items()}
    return {"s a step": medians, "added": shares, "spread": spread(times["no guard"])}


def spread(times: list[float]) -> float:
    """Return how far blocks without a guard lie apart, as a share of their median."""
    return (max(times) - min(times)) / statistics.median(times)


def synchronisations(loop: Loop) -> dict[str, Any]:
    """Count by the profiler what waits for the device in ten steps of each loop."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    counts: dict[str, dict[str, int]] = {}
    for name, check in ways(loop).items():
        for _ in range(3):
            loop.step(check)
        torch.cuda.synchronize()
        with profile(activities=activities) as profiled:
            for _ in range(10):
                loop.step(check)
        seen = {event.key: event.count for event in profiled.key_averages()}
        counts[name] = {sync: seen.get(sync, 0) for sync in SYNCS}
    return counts


def forbidden(loop: Loop) -> str:
    """Train with torch set to raise at every synchronising call."""
    check = ways(loop)["own norm"]
    for _ in range(3):
        loop.step(check)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(10):
            loop.step(check)
    except RuntimeError as error:
        return repr(error)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return "none"


def lateness() -> dict[str, Any]:
    """Spoil the loss of step 20 on the device; say when and how it is told."""
    return {
        "sync" if sync else "in passing": told_late(TrialGuard(POLICY, sync=sync))
        for sync in (False, True)
    }


def told_late(guard: TrialGuard) -> dict[str, Any]:
    """Train until the guard stops; return the step, how late, and what it says."""
    loop = Loop()
    good, bad = torch.tensor([1.0, float("nan")], device=DEVICE)
    stopped: list[int] = []

    def check(loss: torch.Tensor, _: torch.Tensor) -> None:
        if guard.step(loss, loop.model).stop:
            stopped.append(step)

    for step in range(30):
        loop.step(check, bad if step == 20 else good)
        if stopped:
            break
    verdict = guard.verdict
    late = stopped[0] - verdict.step if stopped else -1
    return {"step": verdict.step, "late": late, "message": verdict.message}


def half_precision() -> dict[str, Any]:
    """Train in fp16 with a scale that must overflow; no skipped step is a fault."""
    model = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 1)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**24)
    guard, inputs = TrialGuard(POLICY), torch.randn(64, 256, device=DEVICE)
    for _ in range(60):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.float16):
            loss = model(inputs).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        guard.step(loss, model, grad_norm=norm, scaler=scaler)
        scaler.step(optimizer)
        scaler.update()
    row = guard.row({"val_loss": 1.0})
    names = ("grad_norm", "amp_scale", "step_skipped", "step_time_s")
    return {"stop": guard.verdict.stop, **{name: row.get(name) for name in names}}


def out_of_memory() -> dict[str, Any]:
    """Ask for more memory than there is, under the guard."""
    guard = TrialGuard(POLICY)
    try:
        with guard:
            torch.empty(2**45, dtype=torch.uint8, device=DEVICE)
    except torch.OutOfMemoryError:
        pass
    record = guard.record()
    return {"reason": record.reason, "blame": record.blame, "message": record.message}


# ------------------------------------------------------------------- the whole


def checked() -> dict[str, Any]:
    """Run every check and return its figures."""
    loop = Loop()
    parameters = sum(p.numel() for p in loop.model.parameters())
    figures: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "parameters": parameters,
    }
    checks: dict[str, Callable[[], Any]] = {
        "nvml": nvml,
        "overhead": lambda: overhead(loop),
        "synchronisations": lambda: synchronisations(loop),
        "forbidden synchronisations": lambda: forbidden(loop),
        "lateness": lateness,
        "half precision": half_precision,
        "out of memory": out_of_memory,
    }
    for name, check in checks.items():
        began = time.perf_counter()
        try:
            figures[name] = check()
        except Exception as error:  # noqa: BLE001 - the other checks are still to run
            figures[name] = {"failed": repr(error)}
        print(f"== {name} ({time.perf_counter() - began:.1f} s)")
        print(json.dumps(figures[name], indent=1, default=str))
    return figures


def broken(figures: dict[str, Any]) -> list[str]:
    """Return the promises that the figures break."""
    failed = [n for n, found in figures.items() if "failed" in str(found)[:10]]
    if failed:
        return [f"{name} failed" for name in failed]
    counts = figures["synchronisations"]
    added = [
        sync
        for sync in SYNCS
        for name in ("norm given", "own norm")
        if counts[name][sync] > counts["no guard"][sync]
    ]
    late = figures["lateness"]["in passing"]
    tests = {
        "the guard takes 1% of a step": (
            figures["overhead"]["added"]["norm given"] >= MOST_OF_A_STEP
        ),
        f"synchronisations are added: {added}": bool(added),
        "a verdict is late or wrong": late["step"] != 20 or late["late"] > 2,
        "a skipped step was taken for a fault": figures["half precision"]["stop"],
        "an end by lack of memory has no reason": (
            figures["out of memory"]["reason"] != "cuda_oom"
        ),
    }
    return [promise for promise, is_broken in tests.items() if is_broken]


def main() -> None:
    """Print the figures, keep them if asked to, and exit by them."""
    if not torch.cuda.is_available():
        print("No GPU here: nothing was checked.")
        return
    figures = checked()
    if len(sys.argv) > 1:
        text = json.dumps(figures, indent=1, default=str)
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    found = broken(figures)
    print("All promises hold." if not found else "Broken: " + "; ".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
