"""Results a second of a real Ray sweep, with the guard and without, in turns.

The sweeps live at the same time, each on its own cluster, and take turns of half a
second: one runs while the others are frozen. From one second to the next a shared
machine's pace changes by more than the guard costs, so that sweeps that run one after
the other show the machine.
"""

from __future__ import annotations

import mmap
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import psutil
import ray
from ray import tune

from examples import digits
from tests.benchmarks.scale.limits import Limits
from tune_guard import Policy
from tune_guard.ray import GuardCallback, GuardStopper
from tune_guard.row_stamp import RUNNING

ROUNDS, TURNS = 4, 25
"""New clusters in each round: some are slower than others by 1%, often the one that was
begun first."""
TURN_S = 0.5
AT_ONCE = 2
WARM = 100
"""Results before the first turn."""
PATIENCE_S = 120.0

_SEEN = struct.Struct("qd")
_CODE = f"import sys; from {__name__} import run; run(*sys.argv[1:])"


# ------------------------------------------------------------------- a sweep


def trains(config: dict[str, Any]) -> None:
    """Train on handwritten digits and report once an epoch, as the examples do."""
    for report in digits.train(config, epochs=300):
        tune.report(report)


def reports_only(config: dict[str, Any]) -> None:
    """Report as fast as Ray takes it: its driver alone decides the pace."""
    for step in range(config["results"]):
        tune.report({"val_loss": 2.0 / (step + 1), "grad_norm": 1.0, "lr": 1e-3})


# Trials enough for all turns, and few enough to end if nobody ends them.
LOADS: dict[str, tuple[Callable[[dict[str, Any]], None], int, dict[str, Any]]] = {
    "trains": (
        trains,
        50,
        {
            "lr": 0.01,
            "optimizer": "sgd",
            "momentum": 0.5,
            "weight_decay": 1e-4,
            "batch_size": 64,
            "hidden": 32,
            "warmup_epochs": 0,
            "schedule": "constant",
        },
    ),
    "reports only": (reports_only, AT_ONCE, {"results": 50_000}),
}


class FiveKeys(tune.Stopper):
    """Write the guard's five keys into every row, and judge nothing."""

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Write them."""
        result.update(RUNNING)
        return False

    def stop_all(self) -> bool:
        """Return False."""
        return False


class Counter(tune.Callback):
    """Write into a file how many results came, and the driver's CPU seconds."""

    def __init__(self, file: str) -> None:
        self._map = _map(file)
        self._count = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return nothing: Ray stores callbacks with the experiment."""
        return {}

    def on_trial_result(self, *args: Any, **info: Any) -> None:
        """Count one more."""
        self._count += 1
        _SEEN.pack_into(self._map, 0, self._count, time.process_time())


def _map(file: str) -> mmap.mmap:
    with Path(file).open("r+b") as opened:
        return mmap.mmap(opened.fileno(), _SEEN.size)


def run(folder: str, load: str, kind: str) -> None:
    """Run a sweep until somebody ends it: plain, guarded, or with five keys more."""
    policy = Policy.default("val_loss", "min")
    callbacks: list[tune.Callback] = [Counter(f"{folder}/seen")]
    stop: tune.Stopper | None = None
    if kind == "guarded":
        callbacks.insert(0, GuardCallback(policy))
        stop = GuardStopper(policy)
    elif kind == "five keys":
        stop = FiveKeys()
    train, trials, config = LOADS[load]
    ray.init("local", num_cpus=AT_ONCE, include_dashboard=False, log_to_driver=False)
    tune.Tuner(
        train,
        param_space=config,
        tune_config=tune.TuneConfig(num_samples=trials, reuse_actors=True),
        run_config=tune.RunConfig(
            storage_path=folder, verbose=0, stop=stop, callbacks=callbacks
        ),
    ).fit()


# ---------------------------------------------------------------- taking turns


class Frozen:
    """A sweep in processes of its own, which runs in its turns only."""

    def __init__(self, folder: Path, load: str, kind: str) -> None:
        folder.mkdir()
        (folder / "seen").write_bytes(bytes(_SEEN.size))
        self._map = _map(str(folder / "seen"))
        self._log = folder / "log"
        with self._log.open("wb") as log:
            driver = subprocess.Popen(
                [sys.executable, "-c", _CODE, str(folder), load, kind],
                stdout=log,
                stderr=log,
            )
        self._driver = psutil.Process(driver.pid)
        self.rates: list[float] = []
        self.cpu_s: list[float] = []

    def __enter__(self) -> Self:
        deadline_s = time.monotonic() + PATIENCE_S
        while self.seen()[0] < WARM:
            if not self._driver.is_running() or time.monotonic() > deadline_s:
                self._tell(signal.SIGKILL)
                msg = f"The sweep did not begin: {self._log.read_text()[-2000:]}"
                raise RuntimeError(msg)
            time.sleep(0.1)
        self._tell(signal.SIGSTOP)
        return self

    def __exit__(self, *args: object) -> None:
        self._tell(signal.SIGKILL)

    def seen(self) -> tuple[int, float]:
        """Return how many results came, and the driver's CPU seconds by the last."""
        count, cpu_s = _SEEN.unpack_from(self._map, 0)
        return count, cpu_s

    def turn(self) -> None:
        """Run for one turn, and note the pace."""
        (before, cpu_s), began_s = self.seen(), time.monotonic()
        self._tell(signal.SIGCONT)
        time.sleep(TURN_S)
        self._tell(signal.SIGSTOP)
        took_s, (after, cpu_now_s) = time.monotonic() - began_s, self.seen()
        self.rates.append((after - before) / took_s)
        self.cpu_s.append((cpu_now_s - cpu_s) / max(after - before, 1))

    def _tell(self, signal_number: int) -> None:
        """Signal the driver and all that it started; it was started here itself."""
        for process in (self._driver, *self._driver.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # the others must hear it all the same
                process.send_signal(signal_number)


def measure(limits: Limits) -> None:
    """Note the pace of trials that train, and of such as do nothing but report."""
    (guarded,) = _paces("trains", ("plain", "guarded"), limits)
    limits.at_least("trials that train, with / without", guarded, 0.97)
    kinds = ("plain", "guarded", "five keys")
    guarded, keys = _paces("reports only", kinds, limits)
    limits.say(f"trials that do nothing but report, with / without: {guarded:.3g}")
    limits.say(f"the five keys alone, in every row of these: {keys:.3g}")


def _paces(load: str, kinds: Sequence[str], limits: Limits) -> list[float]:
    """Return the paces beside that of the first kind; print how sure they are."""
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    cpu_s: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(ROUNDS):
        first = number % len(kinds)
        for kind, sweep in _take_turns(load, [*kinds[first:], *kinds[:first]]).items():
            rates[kind] += sweep.rates
            cpu_s[kind] += sweep.cpu_s
    plain = rates[kinds[0]]
    base = statistics.mean(plain)
    ratios = []
    for kind in kinds:
        pace, used_s = statistics.mean(rates[kind]), statistics.median(cpu_s[kind])
        gaps = [a - b for a, b in zip(rates[kind], plain, strict=True)]
        error = statistics.stdev(gaps) / base / len(gaps) ** 0.5
        limits.say(
            f"{load}, {kind}: {pace:.0f}/s, {pace / base:.3f} +- {error:.3f},"
            f" driver's CPU {used_s * 1e3:.2f} ms a result"
        )
        ratios.append(pace / base)
    return ratios[1:]


def _take_turns(load: str, order: Sequence[str]) -> dict[str, Frozen]:
    """Begin a sweep of each kind, let each run in its turns, and end them."""
    with tempfile.TemporaryDirectory() as home, ExitStack() as begun:
        sweeps = {
            kind: begun.enter_context(Frozen(Path(home, kind), load, kind))
            for kind in order
        }
        for turn in range(TURNS):
            for kind in order if turn % 2 else reversed(order):
                sweeps[kind].turn()
    return sweeps
