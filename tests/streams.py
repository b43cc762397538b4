"""Streams of reports with everything in them that any rule looks for."""

from __future__ import annotations

import random
from typing import Any

NAN, INF = float("nan"), float("inf")


def eventful(seed: int, length: int = 400) -> list[dict[str, Any]]:
    """Return the reports of a training in which a lot goes wrong.

    It learns, stands still, spikes, runs away, recovers, relapses, overflows,
    throttles, loses values and has values of odd kinds, in stretches of random
    length. An odd seed stands still for long
    before that. The same seed gives the same stream.
    """
    rng = random.Random(seed)
    reports: list[dict[str, Any]] = []
    level = 2.0
    if seed % 2:
        reports = [_report(rng, level, {"noise": 0.0}, i / length) for i in range(90)]
    while len(reports) < length:
        mood = rng.choice(_MOODS)
        for _ in range(rng.randint(3, 40)):
            level = max(0.01, level * mood.get("drift", 1.0))
            reports.append(_report(rng, level, mood, len(reports) / length))
    return reports[:length]


_MOODS: list[dict[str, Any]] = [
    {"drift": 0.97},
    {"drift": 0.9, "noise": 0.1},
    {"drift": 1.0},
    {"drift": 1.3},
    {"drift": 1.0, "noise": 0.5},
    {"loss": NAN},
    {"loss": INF, "norm": NAN},
    {"norm": INF, "skipped": True},
    {"norm_factor": 100.0, "drift": 1.1},
    {"time_factor": 4.0, "reasons": 0x20, "clock": 900.0},
    {"reasons": 0x44, "clock": 1000.0},
    {"xid": 79},
    {"gap": 0.7},
    {"odd": True},
]


def _report(
    rng: random.Random, level: float, mood: dict[str, Any], done: float
) -> dict[str, Any]:
    noise = 1.0 + mood.get("noise", 0.01) * rng.gauss(0.0, 1.0)
    report: dict[str, Any] = {
        "loss": mood.get("loss", level * abs(noise)),
        "score": mood.get("loss", level * abs(noise)),
        "grad_norm": mood.get("norm", mood.get("norm_factor", 1.0) * abs(noise)),
        "lr": 0.1 * max(0.0, 1.0 - 1.5 * done),
        "step_skipped": mood.get("skipped", False),
        "amp_scale": 2.0 ** rng.randint(-1, 16),
        "step_time_s": 0.1 * mood.get("time_factor", 1.0) * abs(noise),
        "data_time_s": 0.01,
        "time_s": 1000.0 * done,
        "gpu_reasons": mood.get("reasons", 0x4),
        "gpu_clock_mhz": mood.get("clock", 1700.0),
        "gpu_utilization_ratio": 0.98,
        "gpu_xid": mood.get("xid"),
        "gpu_ecc_uncorrected": int(10 * done) // 4,
    }
    if rng.random() < mood.get("gap", 0.02):
        for key in rng.sample(sorted(report), rng.randint(1, len(report))):
            del report[key]
    if mood.get("odd"):
        for key in list(report):
            report[key] = rng.choice(
                [None, "x", [1.0, 2.0], str(report[key]), [report[key]], NAN, {}]
            )
    return report
