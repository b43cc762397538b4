"""How far each rule has come: the numbers that it counts, against where it fires."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector
from tune_guard.rules.thermal_throttle import _HALF, _REPORTS
from tune_guard.rules.windows import buckets, stretch


class Gauge(NamedTuple):
    """One number of a rule at one step.

    Args:
        name: What is counted or measured.

        value: The number.

        limit: Where the rule fires.

        share: How much of the way has been gone: 1 is there, or beyond.
    """

    name: str
    value: float
    limit: float
    share: float


def gauges_of(detector: Detector, observation: Observation) -> list[Gauge]:
    """Return how far a rule has come at an observation that it has just seen.

    Rules of other packages are asked for ``gauges(observation)``, if their
    detector has it. A rule that fires at a single sign, such as that of a lost
    GPU, has none. Never raises.
    """
    own = getattr(detector, "gauges", None)
    ours = _RULES.get(detector.rule.id)
    try:
        if own is not None:
            return list(own(observation))
        return list(ours(detector, observation)) if ours is not None else []
    except Exception:  # noqa: BLE001 - an explanation must not fail for one number
        return []


def _counted(name: str, value: float, limit: float) -> Gauge:
    return Gauge(name, float(value), float(limit), _ratio(value, limit))


def _ratio(value: float, limit: float) -> float:
    """Return value over limit; 0 where that is no share of a way."""
    if not (math.isfinite(value) and math.isfinite(limit)) or limit <= 0.0:
        return 0.0
    return max(0.0, value / limit)


def _non_finite(detector: Any, _: Observation) -> Iterator[Gauge]:
    in_row = max(detector.bad_in_row.values(), default=0)
    yield _counted("non-finite in a row", in_row, detector.rule.consecutive)


def _amp_scale_collapse(detector: Any, observation: Observation) -> Iterator[Gauge]:
    rule = detector.rule
    yield _counted("skipped in a row", detector.skipped_in_row, rule.consecutive)
    scale = observation.amp_scale
    if scale is not None:
        yield Gauge("loss scale", scale, rule.min_scale, _ratio(rule.min_scale, scale))


def _gradient_explosion(detector: Any, observation: Observation) -> Iterator[Gauge]:
    rule, norm = detector.rule, observation.grad_norm
    yield _counted(f"high norms of {rule.n}", detector.spikes.bit_count(), rule.k)
    if norm is not None and math.isfinite(detector.limit):
        yield _counted("norm", norm, detector.limit)


def _divergence(detector: Any, observation: Observation) -> Iterator[Gauge]:
    rule, usual = detector.rule, detector.usual
    yield _counted("high values in a row", len(detector.high), rule.consecutive)
    loss = observation.loss if detector.on_loss else observation.metric
    if rule.metric is not None:
        loss = observation.get(rule.metric)
    if loss is not None and len(usual) >= rule.min_history:
        level = usual.median
        yield _counted("loss", loss, level + (rule.factor - 1.0) * abs(level))
    curve, context = detector.context.curve, detector.context
    if curve.start is not None and rule.start_ratio:
        window = buckets(context, rule.start_ratio * stretch(context))
        yield from _fallen("best of a window", context, window, curve.start, 0.0)


def _fallen(
    name: str, context: Context, window: int, level: float, margin: float
) -> Iterator[Gauge]:
    """Yield how far the best of a window has fallen from the best to a level."""
    curve = context.curve
    if not window or curve.best is None:
        return
    top = curve.top(window)
    recent = top + margin * max(0.0, top - curve.middle(window))
    way = curve.best - level
    share = (curve.best - recent) / way if way > 0.0 else float(recent < level)
    sign = context.sign
    yield Gauge(name, sign * recent, sign * level, max(0.0, share))


def _plateau(detector: Any, _: Observation) -> Iterator[Gauge]:
    yield _counted("without a gain", detector.bad, detector.rule.patience)


def _no_progress(detector: Any, _: Observation) -> Iterator[Gauge]:
    curve, rule = detector.context.curve, detector.rule
    if curve.best is None or curve.last is None:
        return
    first = curve.early[0]
    still = rule.tolerance * max(abs(first), abs(curve.last))
    window = buckets(detector.context, rule.window_ratio)
    spread = curve.top(window) - curve.low(window) if window else math.inf
    for name, moved in (
        ("gain", curve.best - first),
        ("spread", spread),
    ):
        if math.isfinite(moved):
            yield Gauge(name, moved, still, min(1.0, still / moved) if moved else 1.0)


def _relapse(detector: Any, _: Observation) -> Iterator[Gauge]:
    context, rule = detector.context, detector.rule
    held = context.curve.held
    if held is not None:
        window = buckets(context, rule.window_ratio * stretch(context))
        yield from _fallen("recent best", context, window, held, rule.margin)


def _lr_floor(detector: Any, _: Observation) -> Iterator[Gauge]:
    yield _counted("at the floor", detector.at_floor, detector.rule.consecutive)


def _thermal_throttle(detector: Any, _: Observation) -> Iterator[Gauge]:
    if detector.last_time_s is None or detector.rule.consecutive is not None:
        least = detector.rule.consecutive or _REPORTS
        yield _counted("hot in a row", detector.hot_in_row, least)
    else:
        yield _counted("hot share", detector.share, _HALF)


def _slow_step(detector: Any, observation: Observation) -> Iterator[Gauge]:
    rule, times = detector.rule, detector.step_times
    yield _counted("slow in a row", detector.slow_in_row, rule.consecutive)
    took = observation.step_time_s
    if took is not None and len(times) >= rule.min_history:
        yield _counted("step time, s", took, rule.factor * times.median)


_RULES: dict[str, Callable[[Any, Observation], Iterator[Gauge]]] = {
    "non_finite": _non_finite,
    "amp_scale_collapse": _amp_scale_collapse,
    "gradient_explosion": _gradient_explosion,
    "divergence": _divergence,
    "plateau": _plateau,
    "no_progress": _no_progress,
    "relapse": _relapse,
    "lr_floor": _lr_floor,
    "thermal_throttle": _thermal_throttle,
    "slow_step": _slow_step,
}

SIGNS = ("gpu_fault", "stalled", "behind")
"""Built-in rules without a gauge: one sign, silence, or other trials decide."""
