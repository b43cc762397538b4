"""What the engines hand over to whoever listens: plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tune_guard.coercion import to_bits, to_number
from tune_guard.nested_keys import lookup
from tune_guard.observation import SIGNALS, Keys
from tune_guard.record import StopRecord

GPU_SIGNALS = tuple(signal for signal in SIGNALS if signal.startswith("gpu_"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStarted:
    """A sweep begins, or goes on in this process.

    Args:
        sweep: Name of the experiment or study; the same in all its events.

        metric: Key of the objective.
    """

    sweep: str
    metric: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """A trial begins: what it is compared with when others die.

    Args:
        trial: The engine's own id of the trial.

        params: Its hyperparameters by name, nested ones as ``a/b``.
    """

    sweep: str
    trial: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """A trial's record is final, and stored.

    Args:
        record: Why it ended, whoever ended it.

        params: Its hyperparameters by name, nested ones as ``a/b``.

        time_s: Seconds of compute that it took; None when not known.

        saved_s: Seconds that it would still have taken; None when not known.

        final: False for an attempt that was lost to the machine and is tried
            again with the same hyperparameters.
    """

    sweep: str
    trial: str
    record: StopRecord
    params: Mapping[str, Any] = field(default_factory=dict)
    time_s: float | None = None
    saved_s: float | None = None
    final: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEnded:
    """A sweep is over, as far as this process is concerned.

    Args:
        best_trial: Id of the best trial, or empty when not known.

        best_value: Its value of ``metric``.

        interrupted: Whether it ended before it was through.
    """

    sweep: str
    metric: str = ""
    best_trial: str = ""
    best_value: float | None = None
    interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardError:
    """Something that the guard could not do, and named once.

    Args:
        topic: What it is about, such as ``rule:plateau`` or ``storage``.

        message: One sentence.
    """

    topic: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSample:
    """How a running trial and its GPU are, at one report.

    Args:
        step: Step of the report.

        gpu_uuid: The GPU it runs on, or empty when not known.

        gpu: Telemetry by the name of its signal, such as
            ``gpu_temperature_celsius``.

        margins: How near each rule is to its threshold, by rule id: 0 is far
            away, 1 is where it fires.
    """

    sweep: str
    trial: str
    step: int
    host: str = ""
    gpu_uuid: str = ""
    gpu: Mapping[str, float] = field(default_factory=dict)
    margins: Mapping[str, float] = field(default_factory=dict)


Event: TypeAlias = (
    SweepStarted | TrialStarted | TrialEnded | SweepEnded | GuardError | HealthSample
)


def saved_s(time_s: float | None, steps: int, budget_steps: int | None) -> float | None:
    """Return the compute that a cut saved: its pace, times the steps it spared.

    Args:
        time_s: Seconds that the trial took.

        steps: Steps that it ran.

        budget_steps: Steps that a full trial runs.

    Example:
        >>> saved_s(30.0, 10, 100), saved_s(30.0, 10, None)
        (270.0, None)
    """
    if time_s is None or budget_steps is None or steps <= 0:
        return None
    return max(0.0, time_s / steps * (budget_steps - steps))


def gpu_values(report: Mapping[str, Any], keys: Keys) -> dict[str, float]:
    """Return the GPU telemetry of a report by the name of its signal.

    Example:
        >>> gpu_values({"gpu_temperature_celsius": 71, "loss": 0.5}, Keys())
        {'gpu_temperature_celsius': 71.0}
    """
    values: dict[str, float] = {}
    for signal in GPU_SIGNALS:
        found = [lookup(report, key) for key in keys.aliases(signal)]
        raw = next((value for value in found if value is not None), None)
        read = to_bits if signal == "gpu_reasons" else to_number
        number = float(raw) if isinstance(raw, bool) else read(raw)
        if number is not None:
            values[signal] = number
    return values
