"""Ray Train inside a Tune trial: what the worst of all ranks reports reaches Tune."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ray.tune.integration.ray_train import TuneReportCallback

from tune_guard.coercion import to_bits, to_flag, to_number
from tune_guard.nested_keys import lookup
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.ray.rows import DONE, checked_policy, record_in
from tune_guard.record import KEYS

if TYPE_CHECKING:
    from ray.train import Checkpoint

_HIGHEST = (
    "grad_norm",
    "step_time_s",
    "data_time_s",
    "gpu_thermal_ratio",
    "gpu_temperature_celsius",
    "gpu_ecc_uncorrected",
)
_LOWEST = ("amp_scale", "gpu_clock_mhz", "gpu_utilization_ratio")

RANK = "worst_rank"
"""Key of the rank that a row's worst value comes from; absent where it is rank 0."""


class GuardReportCallback(TuneReportCallback):
    """Report the worst of all ranks to Tune, not only what rank 0 says.

    Ray's own callback forwards rank 0's metrics; a NaN on rank 1 is invisible to
    Tune. This one forwards rank 0's metrics too, but with the worst of each
    health signal: a loss or metric that is not finite on any rank, the highest
    gradient norm, step time, temperature, the lowest clock, every GPU's reason
    bits. A stop that a TrialGuard decided on the workers ends the trial. Make it
    inside the Tune function, where the trainer is made.

    Args:
        policy: The policy of the sweep: it names the metric and the keys.

    Raises:
        ConfigError: If the policy's mode is missing.
        RuntimeError: If it is not made in a Tune function.

    Example:
        >>> from ray.train import RunConfig
        >>> from tune_guard import Policy
        >>> policy = Policy.default("val_loss", "min")
        >>> def trial(config):
        ...     callbacks = [GuardReportCallback(policy)]
        ...     return RunConfig(callbacks=callbacks)
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = checked_policy(policy, "GuardReportCallback")
        self._notices = Notices()
        super().__init__()  # type: ignore[no-untyped-call]

    def after_report(
        self,
        run_context: Any,
        metrics: list[dict[str, Any]],
        checkpoint: Checkpoint | None,
    ) -> None:
        """Reduce what the ranks reported and pass it on. Ray calls it."""
        try:
            worst = worst_of(metrics, self._policy)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a training
            self._notices.once(
                "reduce",
                f"The ranks' reports could not be compared ({error!r}): rank 0's is"
                " passed on.",
            )
            worst = metrics[0]
        super().after_report(run_context, [worst], checkpoint)


def worst_of(reports: Sequence[Mapping[str, Any]], policy: Policy) -> dict[str, Any]:
    """Return rank 0's report with the worst of each health signal of all ranks.

    Example:
        >>> policy = Policy.default("val_loss", "min")
        >>> reports = [{"val_loss": 0.5}, {"val_loss": float("nan")}]
        >>> worst_of(reports, policy)
        {'val_loss': nan, 'worst_rank': 1}
    """
    row = dict(reports[0])
    for rank, report in enumerate(reports):
        record = record_in(report)
        if record is not None and record.reason:
            stamp = {key: report.get(key) for key in KEYS}
            return {**row, **stamp, RANK: rank, DONE: True}
    _take_non_finite(row, reports, policy)
    for signal, worst in _reductions():
        for key in policy.keys.aliases(signal):
            _reduce(row, reports, key, worst)
    gpu_uuid = reports[row.get(RANK, 0)].get("gpu_uuid")
    return {**row, "gpu_uuid": gpu_uuid} if gpu_uuid else row


def _take_non_finite(
    row: dict[str, Any], reports: Sequence[Mapping[str, Any]], policy: Policy
) -> None:
    """Take over a loss or metric that is not finite on any rank."""
    for key in (policy.metric, *policy.keys.aliases("loss")):
        for rank, report in enumerate(reports):
            number = to_number(lookup(report, key))
            if number is not None and not math.isfinite(number):
                row[key] = number
                row[RANK] = rank
                break


def _reductions() -> list[tuple[str, Callable[[list[Any]], tuple[int, Any]]]]:
    """Return for each health signal how the worst of several is chosen."""
    return [
        *((signal, _highest) for signal in _HIGHEST),
        *((signal, _lowest) for signal in _LOWEST),
        ("gpu_lost", _any_of),
        ("step_skipped", _all_of),
        ("gpu_reasons", _all_bits),
        ("gpu_xid", _highest),
    ]


def _reduce(
    row: dict[str, Any],
    reports: Sequence[Mapping[str, Any]],
    key: str,
    worst: Callable[[list[Any]], tuple[int, Any]],
) -> None:
    values = [lookup(report, key) for report in reports]
    if all(value is None for value in values):
        return
    rank, value = worst(values)
    if rank > 0 and value != values[0]:
        row[RANK] = row.get(RANK, rank)
    if value is not None:
        row[key] = value


def _highest(values: list[Any]) -> tuple[int, Any]:
    return _pick(values, max)


def _lowest(values: list[Any]) -> tuple[int, Any]:
    return _pick(values, min)


def _pick(values: list[Any], best: Callable[..., int]) -> tuple[int, Any]:
    """Return place and value of the worst; one that is not finite is the worst."""
    numbers = {i: n for i, v in enumerate(values) if (n := to_number(v)) is not None}
    bad = [place for place, n in numbers.items() if not math.isfinite(n)]
    if not numbers:
        return 0, None
    place = bad[0] if bad else best(numbers, key=numbers.__getitem__)
    return place, numbers[place]


def _any_of(values: list[Any]) -> tuple[int, Any]:
    places = [place for place, value in enumerate(values) if to_flag(value)]
    return (places[0], True) if places else (0, to_flag(values[0]))


def _all_of(values: list[Any]) -> tuple[int, Any]:
    """Return whether all say yes: an overflow of one rank excuses no other."""
    flags = [flag for flag in map(to_flag, values) if flag is not None]
    return 0, all(flags) if flags else None


def _all_bits(values: list[Any]) -> tuple[int, Any]:
    bits = 0
    for value in values:
        bits |= int(to_bits(value) or 0)
    return 0, bits
