"""Sweeps made by hand, in which it is known what kills."""

from __future__ import annotations

import math
import random
from array import array
from typing import Any

from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import Curve, Curves, Problem, Sweep, Trial
from tune_guard.verdict import Blame

STARTED = 1_796_016_529.0


def trial_of(number: int, lr: float, reason: str = "", **fields: Any) -> Trial:
    """Return a trial of ten steps, or of three where it has a reason."""
    cut = {"outcome": Outcome.GUARD, "blame": Blame.CONFIG, "step": 3, "steps_run": 3}
    done = {"outcome": Outcome.COMPLETED, "steps_run": 10}
    params = {"lr": lr, "width": 32 * (1 + number % 4), **fields.pop("params", {})}
    more = {**(cut if reason else done), **fields}
    return Trial(id=f"t{number}", params=params, reason=reason, **more)


def deadly(count: int, *, seed: int = 1, name: str = "before") -> Sweep:
    """Return a sweep in which lr > 0.03 with a short warm-up ends in NaN.

    Every seventh trial ran on a node whose GPU is too hot.
    """
    rng = random.Random(seed)
    trials, records, curves = [], {}, {}
    for number in range(count):
        lr, warmup = 10 ** rng.uniform(-4, 0), rng.randint(0, 4)
        reason = "non_finite" if lr > 0.03 and warmup < 2 else ""
        hot = not reason and number % 7 == 0
        reason = "thermal_throttle" if hot else reason
        began = STARTED + 40 * number
        steps = 3 if reason else 10
        trial = trial_of(
            number,
            lr,
            reason,
            params={"warmup": warmup, "dropout": rng.random()},
            **({"blame": Blame.INFRASTRUCTURE} if hot else {}),
            time_s=steps * 10.0,
            began_at=began,
            ended_at=began + steps * 10,
            host="node3" if hot else f"node{number % 2}",
            source=f"/runs/{name}/t{number}",
        )
        trials.append(trial)
        curves[trial.id] = _curves(lr, steps, reason)
        records[trial.id] = _record(trial, hot=hot)
    return Sweep(
        source=f"/runs/{name}",
        engine="ray",
        name=name,
        trials=tuple(trials),
        records=records,
        curves=Curves(curves),
        problems=(
            Problem(file=f"/runs/{name}/t1/result.json", line=7, what="torn line"),
        ),
    ).with_objective("val_loss", "min")


def _curves(lr: float, steps: int, reason: str) -> dict[str, Curve]:
    best = 0.1 + abs(math.log10(lr) + 2)
    values = [best + math.exp(-step) for step in range(steps)]
    values[-1] = math.nan if reason == "non_finite" else values[-1]
    at = array("q", range(1, steps + 1))
    times = array("d", [10.0 * step for step in at])
    hot = float(reason == "thermal_throttle")
    return {
        "val_loss": Curve(at, array("d", values), times),
        "gpu_temperature_celsius": Curve(
            at, array("d", [70 + 20 * hot] * steps), times
        ),
        "gpu_thermal_ratio": Curve(at, array("d", [hot] * steps), times),
    }


def _record(trial: Trial, *, hot: bool) -> StopRecord:
    return StopRecord(
        reason=trial.reason,
        outcome=trial.outcome or Outcome.COMPLETED,
        step=trial.step or -1,
        blame=trial.blame,
        message=f"{trial.reason} at step 3. Do something." if trial.reason else "",
        host=trial.host,
        gpu_uuid="GPU-7f3a" if hot else "",
        warnings=() if trial.reason else ("plateau@5",),
    )
