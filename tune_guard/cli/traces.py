"""What rules counted, as tables in the terminal and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rich.markup import escape
from rich.table import Table

from tune_guard.evidence.trace import Fired, Point, RuleTrace, Trace, stretches
from tune_guard.strict_json import plain
from tune_guard.verdict import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

_BARS = " ▁▂▃▄▅▆▇█"
_BINS = 16
_MOST_ROWS = 40
_MOST_STRETCHES = 4


def show_rules(trace: Trace, console: Console) -> None:
    """Print for each rule how far its numbers came, over time and at most."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("Rule", "Number", "Over time", "Closest", "Fires at", "Step"):
        right = heading in ("Closest", "Fires at", "Step")
        justify: Literal["left", "right"] = "right" if right else "left"
        table.add_column(heading, justify=justify, no_wrap=heading == "Over time")
    for rule in trace.rules.values():
        for name, point in rule.closest().items():
            over_time = sparkline(rule.gauges[name])
            numbers = (f"{point.value:.5g}", f"{point.limit:.5g}", str(point.step))
            table.add_row(rule.rule, escape(name), over_time, *numbers)
    console.print(table)
    silent = [rule.rule for rule in trace.rules.values() if not rule.gauges]
    if silent:
        console.print(f"Nothing to count for: {', '.join(silent)}.")
    for rule in trace.rules.values():
        for line in _when_fired(rule):
            console.print(escape(line))


def show_points(rule: RuleTrace, console: Console) -> None:
    """Print one rule's numbers step by step; of many steps, evenly chosen ones."""
    for name, points in rule.gauges.items():
        table = Table(title=f"{rule.rule}: {escape(name)}", box=None, pad_edge=False)
        for heading in ("Step", "Value", "Fires at", "Share"):
            table.add_column(heading, justify="right")
        for point in chosen(points):
            values = f"{point.value:.6g}", f"{point.limit:.6g}", f"{point.share:.0%}"
            table.add_row(str(point.step), *values)
        console.print(table)


def chosen(points: Sequence[Point]) -> list[Point]:
    """Return at most forty points: evenly spread, with the first, last and closest."""
    if len(points) <= _MOST_ROWS:
        return list(points)
    places = {round(i * (len(points) - 1) / (_MOST_ROWS - 2)) for i in range(39)}
    places.add(max(range(len(points)), key=lambda i: points[i].share))
    return [points[i] for i in sorted(places)]


def sparkline(points: Sequence[Point]) -> str:
    """Draw shares over time; a full bar is where the rule fires.

    Example:
        >>> sparkline([Point(i, i, 4, i / 4) for i in range(5)])
        ' ▂▄▆█'
    """
    bins = min(_BINS, len(points))
    shares = [
        max(
            p.share
            for p in points[len(points) * i // bins : len(points) * (i + 1) // bins]
        )
        for i in range(bins)
    ]
    top = len(_BARS) - 1
    return "".join(_BARS[int(min(1.0, share) * top)] for share in shares)


def _when_fired(rule: RuleTrace) -> list[str]:
    """Say when a rule's trigger was met, and what stood against a cut."""
    found = stretches(rule.fired)
    lines = [f"{rule.rule} {_sentence(one)}." for one in found[-_MOST_STRETCHES:]]
    more = len(found) - len(lines)
    return (
        [f"{rule.rule} met its trigger {more} times before.", *lines] if more else lines
    )


def _sentence(one: Fired) -> str:
    if one.level is Level.STOP:
        return f"stopped the trial at step {one.last}"
    steps = f"step {one.first}"
    if one.times > 1:
        steps = f"{one.times} of the steps {one.first} to {one.last}"
    return f"met its trigger at {steps}, held by {', '.join(one.holds) or 'nothing'}"


def as_json(trace: Trace) -> dict[str, Any]:
    """Return a trace as plain values, with every point."""
    return {
        "observations": trace.count,
        "verdict": {
            "reason": trace.verdict.reason if trace.verdict.stop else "",
            "step": trace.verdict.step if trace.verdict.stop else -1,
            "message": trace.verdict.message if trace.verdict.stop else "",
        },
        "rules": {
            rule.rule: {
                "numbers": {
                    name: {
                        "closest": plain(point._asdict()),
                        "points": [plain(list(p)) for p in rule.gauges[name]],
                    }
                    for name, point in rule.closest().items()
                },
                "triggered": [
                    {
                        "first_step": one.first,
                        "last_step": one.last,
                        "stopped": one.level is Level.STOP,
                        "holds": list(one.holds),
                        "times": one.times,
                    }
                    for one in stretches(rule.fired)
                ],
            }
            for rule in trace.rules.values()
        },
    }
