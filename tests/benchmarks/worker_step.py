"""What the guard costs in a training loop: ``python -m tests.benchmarks.worker_step``.

First its share of a step of a transformer of 10 million parameters on the CPU.
Steps with and without it take turns; the share is the processor time inside its
call (the median) over that of the fastest step, the latter divided by the threads,
so that neither other jobs nor idle threads make it look small. Then its gradient norm
beside a loop of ``.norm(2).item()`` on a model of 500 tensors. Last the GPU sampler:
processor time of one look, over a stub of NVML, as a share of one core at one look
a second. It exits with 1 where the guard takes 2% of a step, a given norm is not 10
times cheaper than the loop, or the sampler takes 0.5% of a core.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from tune_guard import Policy, TrialGuard
from tune_guard.notices import Notices
from tune_guard.worker.gpu.sampler import GpuSampler
from tune_guard.worker.gradients import GradientNorm

STEPS = 12
WARMUP = 2
TENSORS = 500
LOOKS = 2_000

MOST_OF_A_STEP = 0.02
LEAST_CHEAPER = 10.0
MOST_OF_A_CORE = 0.005

NVML = Path(__file__).parents[1] / "integration" / "worker" / "nvml"
POLICY = Policy.default("val_loss", "min")


class Transformer(nn.Module):
    """A small language model: 6 layers of width 320, 8,000 words, 10.0 M parameters."""

    def __init__(self) -> None:
        super().__init__()
        width, words = 320, 8000
        layer = nn.TransformerEncoderLayer(
            width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.words = nn.Embedding(words, width)
        self.body = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the loss of predicting each word from those around it."""
        hidden = self.body(self.words(tokens))
        logits = hidden @ self.words.weight.T
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


Check = Callable[[torch.Tensor, torch.Tensor], object]


def one_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, check: Check | None
) -> tuple[float, float]:
    """Train for one step with clipping.

    Returns:
        Processor seconds of the step, by thread, and those in the check.
    """
    tokens = torch.randint(0, 8000, (4, 32))
    began = time.process_time()
    optimizer.zero_grad()
    loss = model(tokens)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    entered = time.process_time()
    if check is not None:
        check(loss, norm)
    left = time.process_time()
    optimizer.step()
    whole = time.process_time() - began
    return whole / torch.get_num_threads(), left - entered


def shares() -> tuple[dict[str, tuple[float, float]], float, int]:
    """Return each way's seconds a step and in the check; plain seconds; parameters.

    Of a step the fastest, of the check the median: both against the guard.
    """
    torch.manual_seed(0)
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    clipped, measured = TrialGuard(POLICY), TrialGuard(POLICY)
    ways: dict[str, Check | None] = {
        "no guard": None,
        "norm of clip_grad_norm_ given": lambda loss, norm: clipped.step(
            loss, model, grad_norm=norm, optimizer=optimizer
        ),
        "norm measured by the guard": lambda loss, _: measured.step(
            loss, model, optimizer=optimizer
        ),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(STEPS + WARMUP):
        for name, check in ways.items():
            took = one_step(model, optimizer, check)
            if turn >= WARMUP:
                times[name].append(took)
    found = {
        name: (min(s for s, _ in taken), statistics.median(i for _, i in taken))
        for name, taken in times.items()
    }
    plain = found.pop("no guard")[0]
    return found, plain, sum(p.numel() for p in model.parameters())


def best(call: Callable[[], object], turns: int = 200) -> float:
    """Return the seconds of the fastest call."""
    fastest = float("inf")
    for _ in range(turns):
        began = time.perf_counter()
        call()
        fastest = min(fastest, time.perf_counter() - began)
    return fastest


def norms() -> dict[str, float]:
    """Return the seconds of each way to learn the norm of 500 gradients."""
    torch.manual_seed(0)
    model = nn.ParameterList(nn.Parameter(torch.randn(16, 16)) for _ in range(TENSORS))
    for parameter in model:
        parameter.grad = torch.randn(16, 16)
    guard, given = TrialGuard(POLICY), torch.tensor(1.0)
    measure = GradientNorm()

    def loop() -> float:
        norms = [p.grad.norm(2).item() for p in model if p.grad is not None]
        return sum(norm * norm for norm in norms) ** 0.5

    return {
        "loop of .norm(2).item()": best(loop),
        "guard.step, norm given": best(lambda: guard.step(1.0, model, grad_norm=given)),
        "guard's own fused pass": best(lambda: measure.measure(model)),
    }


def sampler_share() -> float | None:
    """Return the share of a core that a look a second takes; None without gcc."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "libnvidia-ml.so.1"
        options = ["-shared", "-fPIC", f"-Wl,-soname,{target.name}"]
        source = str(NVML / "stub.c")
        subprocess.run([compiler, *options, "-o", str(target), source], check=True)
        ctypes.CDLL(str(target), mode=ctypes.RTLD_GLOBAL)
    os.environ["NVML_STUB"] = str(NVML / "recordings" / "healthy.txt")
    sampler = GpuSampler(0, notices=Notices())
    assert sampler.open()
    sampler.look()
    began = time.thread_time()
    for _ in range(LOOKS):
        sampler.look()
    return (time.thread_time() - began) / LOOKS


def tables() -> tuple[list[Table], bool]:
    """Measure all, and say whether it is within the limits."""
    steps, plain, parameters = shares()
    first = Table(
        "way",
        "ms a step",
        "us in the guard",
        "share",
        title=f"CPU, {parameters / 1e6:.1f} M parameters, {torch.get_num_threads()}"
        f" threads; no guard: {plain * 1e3:.1f} ms a step (fastest of {STEPS})",
    )
    for name, (step, inside) in steps.items():
        share = inside / plain
        cells = f"{step * 1e3:.1f}", f"{inside * 1e6:.0f}", f"{share:.3%}"
        first.add_row(name, *cells)
    ways = norms()
    loop = next(iter(ways.values()))
    second = Table("norm of 500 gradients", "us", "times cheaper (fastest of 200)")
    for name, seconds in ways.items():
        second.add_row(name, f"{seconds * 1e6:.0f}", f"{loop / seconds:.1f}")
    share = sampler_share()
    third = Table("GPU sampler", "share of a core at 1 Hz")
    third.add_row("stub of NVML", "gcc is missing" if share is None else f"{share:.4%}")
    clipped = steps["norm of clip_grad_norm_ given"][1] / plain
    cheaper = loop / ways["guard.step, norm given"]
    good = clipped < MOST_OF_A_STEP and cheaper >= LEAST_CHEAPER
    return [first, second, third], good and (share or 0.0) < MOST_OF_A_CORE


def main() -> Any:
    """Print the figures; exit with 1 where a limit is broken."""
    found, good = tables()
    console = Console(width=100)
    for table in found:
        console.print(table)
    if not good:
        print("A limit is broken.")
        sys.exit(1)


if __name__ == "__main__":
    main()
