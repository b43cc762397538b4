"""The figure of the sweep in time: who ran when and where, and the GPUs' heat."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tune_guard.observation import Keys
from tune_guard.sweeps.compare import label
from tune_guard.sweeps.faults import host_of
from tune_guard.sweeps.report.html_clock import Clock
from tune_guard.sweeps.report.html_curves import describe
from tune_guard.sweeps.report.html_scale import SIZE, Scale, Tick, line, thinned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.curves import Curve
    from tune_guard.sweeps.sweep import Sweep, Trial

_UNITS = ((86400 * 2, 86400, "days"), (7200, 3600, "h"), (120, 60, "min"), (0, 1, "s"))
_THROTTLED_RATIO = 0.5
_CELSIUS = (30.0, 100.0)
_MOST_HOSTS = 16

_Timed = tuple["Trial", float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The run of one trial, in thousandths of the figure."""

    reason: str
    x: int
    y: float
    width: int
    height: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Temperature of the GPU of one trial, and where it throttled."""

    path: str
    text: str
    throttled: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Everything that the figure of the sweep in time shows."""

    bars: tuple[Bar, ...]
    hosts: tuple[Tick, ...]
    lanes: int
    ticks: tuple[Tick, ...]
    unit: str
    pauses: tuple[int, ...]
    paused_s: float
    without_time: int
    heats: tuple[Heat, ...]
    heat_ticks: tuple[Tick, ...]


def timeline(sweep: Sweep) -> Timeline | None:
    """Lay the trials out in time; None when it is not known of any."""
    timed = [
        (trial, began, _ended(trial, began))
        for trial in sweep.trials
        if (began := _began(trial)) is not None
    ]
    if not timed:
        return None
    timed.sort(key=lambda item: item[1])
    clock = Clock.of((began, ended) for _, began, ended in timed)
    length = max(clock.length, 1.0)
    _, seconds, unit = next(u for u in _UNITS if length >= u[0])
    scale = Scale(low=0.0, high=length / seconds)
    heats = [
        heat
        for trial, began, _ in timed
        if (heat := _heat(sweep, trial, clock.at(began) / seconds, seconds, scale))
    ]
    celsius = Scale(low=_CELSIUS[0], high=_CELSIUS[1])
    lanes, hosts = _lanes(sweep, timed)
    count = max(lanes) + 1
    return Timeline(
        bars=tuple(_bars(timed, lanes, clock, seconds, scale)),
        hosts=hosts,
        lanes=count,
        ticks=tuple(scale.ticks()),
        unit=unit,
        pauses=tuple(scale.at(clock.at(p) / seconds) for p, _ in clock.pauses),
        paused_s=clock.paused_s,
        without_time=len(sweep.trials) - len(timed),
        heats=tuple(heats),
        heat_ticks=tuple(celsius.ticks(4)) if heats else (),
    )


def _began(trial: Trial) -> float | None:
    if trial.began_at is not None and math.isfinite(trial.began_at):
        return trial.began_at
    return None


def _ended(trial: Trial, began: float) -> float:
    ended = trial.ended_at if trial.ended_at is not None else began
    return max(ended, began + (trial.time_s or 0.0))


def _lanes(sweep: Sweep, timed: Sequence[_Timed]) -> tuple[list[int], tuple[Tick, ...]]:
    """Give each trial a free lane of its host, so that a lane is like a worker.

    Returns:
        The lane of each trial from the top, and where each host's lanes are.
    """
    free: defaultdict[str, list[float]] = defaultdict(list)
    inside: list[tuple[str, int]] = []
    for trial, began, ended in timed:
        ends = free[host_of(trial, sweep.records)]
        lane = next((i for i, end in enumerate(ends) if end <= began), len(ends))
        ends[lane : lane + 1] = [ended]
        inside.append((host_of(trial, sweep.records), lane))
    first, total = {}, 0
    for host in sorted(free):
        first[host] = total
        total += len(free[host])
    middles = {host: first[host] + len(free[host]) / 2 for host in first if host}
    hosts = [Tick(100 - 100 * at / total, host) for host, at in middles.items()]
    named = tuple(hosts) if len(hosts) <= _MOST_HOSTS else ()
    return [first[host] + lane for host, lane in inside], named


def _bars(
    timed: Sequence[_Timed],
    lanes: Sequence[int],
    clock: Clock,
    seconds: int,
    scale: Scale,
) -> list[Bar]:
    height = SIZE / (max(lanes) + 1)
    bars = []
    for (trial, began, ended), lane in zip(timed, lanes, strict=True):
        left = scale.at(clock.at(began) / seconds)
        right = scale.at(clock.at(ended) / seconds)
        bars.append(
            Bar(
                reason=label(trial),
                x=min(left, SIZE - 2),
                y=round(lane * height, 2),
                width=max(right - left, 2),
                height=round(height * 0.86, 2),
                text=describe(trial),
            )
        )
    return bars


def _first(sweep: Sweep, trial: Trial, signal: str) -> Curve | None:
    curves = sweep.curves.of(trial.id)
    names = Keys().aliases(signal)
    return next((curves[name] for name in names if name in curves), None)


def _heat(
    sweep: Sweep, trial: Trial, began: float, seconds: int, scale: Scale
) -> Heat | None:
    """Draw the temperature of the GPU that ran a trial, if it was reported."""
    curve = _first(sweep, trial, "gpu_temperature_celsius")
    if curve is None or curve.times_s is None:
        return None
    celsius = Scale(low=_CELSIUS[0], high=_CELSIUS[1])
    times = [began + time / seconds for time in curve.times_s]
    points = [p for p in thinned(times, curve.values) if math.isfinite(p[0])]
    ratio = _first(sweep, trial, "gpu_thermal_ratio")
    hot: defaultdict[int, float] = defaultdict(float)
    if ratio is not None:
        hot.update(zip(ratio.steps, ratio.values, strict=True))
    throttled = "".join(
        line([(scale.at(time), celsius.at(value))])
        for step, time, value in zip(curve.steps, times, curve.values, strict=True)
        if hot[step] >= _THROTTLED_RATIO and math.isfinite(time)
    )
    record = sweep.records.get(trial.id)
    gpu = f", GPU {record.gpu_uuid}" if record and record.gpu_uuid else ""
    host = host_of(trial, sweep.records)
    return Heat(
        path=line([(scale.at(x), celsius.at(y)) for x, y in points]),
        text=f"{trial.id}{f' on {host}' if host else ''}{gpu}",
        throttled=throttled,
    )
