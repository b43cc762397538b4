"""What is counted."""

from __future__ import annotations

import math
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tune_guard.events import (
    Event,
    GuardError,
    HealthSample,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialStarted,
)
from tune_guard.exceptions import ConfigError
from tune_guard.export.metrics import registry_of
from tune_guard.export.prometheus import Prometheus
from tune_guard.export.tally import FORGET_GPU_S, MOST_GPUS, MOST_REASONS, Tally
from tune_guard.record import Outcome, StopRecord
from tune_guard.verdict import Blame

Key = tuple[str, tuple[tuple[str, str], ...]]


def end(reason: str = "", **more: Any) -> TrialEnded:
    """Return the end of a trial."""
    outcome = Outcome.GUARD if reason else Outcome.COMPLETED
    blame = more.pop("blame", Blame.CONFIG if reason else None)
    record = StopRecord(reason=reason, outcome=outcome, blame=blame)
    return TrialEnded(sweep="s", trial=more.pop("trial", "t"), record=record, **more)


def exported(*events: Event, tally: Tally | None = None) -> dict[Key, float]:
    """Return what a scrape shows after events, parsed as a server does."""
    tally = tally or Tally()
    for event in events:
        tally.handle(event)
    text = generate_latest(registry_of(tally)).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def ended(outcome: str, reason: str, blame: str) -> Key:
    """Return the key of a count of ends."""
    labels = {"outcome": outcome, "reason": reason, "blame": blame}
    return "tuneguard_trials_ended_total", tuple(sorted(labels.items()))


def test_ends_are_counted_by_outcome_reason_and_blame() -> None:
    """A trial that is tried again has not ended."""
    found = exported(
        end(), end("plateau"), end("plateau"), end("gpu_fault", final=False)
    )
    assert found[ended("completed", "", "")] == 1
    assert found[ended("guard", "plateau", "config")] == 2
    assert found["tuneguard_attempts_lost_total", (("reason", "gpu_fault"),)] == 1


def test_machine_faults_are_counted_from_zero() -> None:
    """The first one is an increase that a server sees."""
    assert exported()[ended("guard", "gpu_fault", "infrastructure")] == 0


def test_compute_is_summed_up_and_odd_amounts_are_not() -> None:
    """NaN, infinite, negative and missing ones."""
    odd = [math.nan, math.inf, -1.0, None]
    found = exported(
        end("plateau", time_s=3.0, saved_s=5.0),
        end("plateau", time_s=4.0, saved_s=6.0),
        *(end("plateau", time_s=amount, saved_s=amount) for amount in odd),
    )
    spent = "tuneguard_compute_spent_seconds_total"
    assert [v for (name, _), v in found.items() if name == spent] == [7.0]
    saved = "tuneguard_compute_saved_seconds_total", (("reason", "plateau"),)
    assert found[saved] == 11.0


def test_sweeps_that_run_are_counted() -> None:
    """Up and down."""
    found = exported(
        SweepStarted(sweep="a"), SweepStarted(sweep="b"), SweepEnded(sweep="a")
    )
    assert found["tuneguard_sweeps_started_total", ()] == 2
    assert found["tuneguard_sweeps_running", ()] == 1
    assert (
        exported(TrialStarted(sweep="a", trial="x"))[
            "tuneguard_trials_started_total", ()
        ]
        == 1
    )


def test_the_guards_state_is_one_or_zero() -> None:
    """Advice to the user is no trouble; a rule that failed is."""
    healthy = "tuneguard_guard_healthy", ()
    assert exported()[healthy] == 1
    assert exported(GuardError(topic="missing:loss"))[healthy] == 1
    found = exported(GuardError(topic="rule:mine"), GuardError(topic="rule:x"))
    assert found[healthy] == 0
    assert found["tuneguard_guard_errors_total", (("kind", "rule"),)] == 2


def sample(uuid: str, **gpu: float) -> HealthSample:
    """Return telemetry of a GPU."""
    return HealthSample(
        sweep="s", trial="t", step=1, host="node7", gpu_uuid=uuid, gpu=gpu
    )


def test_a_gpu_is_exported_in_base_units_by_its_uuid() -> None:
    """The newest sample counts; what is not finite is left out."""
    found = exported(
        sample("GPU-1", gpu_temperature_celsius=70.0, gpu_clock_mhz=1000.0),
        sample(
            "GPU-1",
            gpu_temperature_celsius=71.0,
            gpu_clock_mhz=1980.0,
            gpu_utilization_ratio=math.nan,
        ),
    )
    labels = (("host", "node7"), ("uuid", "GPU-1"))
    assert found["tuneguard_gpu_temperature_celsius", labels] == 71.0
    assert found["tuneguard_gpu_clock_hertz", labels] == 1.98e9
    assert ("tuneguard_gpu_utilization_ratio", labels) not in found
    assert all(math.isfinite(value) for value in found.values())


def test_a_gpu_that_was_not_heard_of_is_no_more() -> None:
    """Its last temperature is not its present one."""
    now = [1000.0]
    tally = Tally(clock=lambda: now[0])
    tally.handle(sample("GPU-1", gpu_temperature_celsius=70.0))
    now[0] += FORGET_GPU_S
    assert not any("gpu" in name for name, _ in exported(tally=tally))


def test_the_number_of_series_is_bounded() -> None:
    """Whatever foreign rules and machines call themselves."""
    found = exported(
        *(end(f"reason-{number}") for number in range(10 * MOST_REASONS)),
        *(sample(f"GPU-{number}", gpu_lost=0.0) for number in range(2 * MOST_GPUS)),
        sample("", gpu_lost=0.0),
    )
    names = [name for name, _ in found]
    assert names.count("tuneguard_trials_ended_total") <= MOST_REASONS + 5
    assert found[ended("guard", "other", "config")] == 9 * MOST_REASONS
    assert names.count("tuneguard_gpu_lost") == MOST_GPUS


def test_no_label_holds_a_trial() -> None:
    """Nor what a trial is called."""
    found = exported(
        end("plateau", trial="train_1"), TrialStarted(sweep="s", trial="t")
    )
    assert "train_1" not in str(list(found))


@pytest.mark.parametrize(
    "bad", ['a"b', "a\nb", "a\\b", 'x"} 1\nevil_metric{a="', "\x00", "y" * 500]
)
def test_markup_in_a_label_is_only_text(bad: str) -> None:
    """A server reads one series with the very name."""
    found = exported(end(bad), sample(bad, gpu_lost=1.0))
    assert found[ended("guard", bad[:120], "config")] == 1
    assert not any(name.startswith("evil") for name, _ in found)


@pytest.mark.parametrize(
    "setting",
    ["x", "host:port", "127.0.0.1:99999", "push+ftp://x", "push+http://", "-1"],
)
def test_a_setting_without_meaning_is_refused(setting: str) -> None:
    """With the forms that have one."""
    with pytest.raises(ConfigError, match="Write a port"):
        Prometheus(setting)


def test_a_password_in_a_setting_is_not_shown() -> None:
    """It stands in a gateway's URL."""
    with pytest.raises(ConfigError) as caught:
        Prometheus("9464 push+ftp://user:hunter2@gateway")
    assert "hunter2" not in str(caught.value)
    assert "entry 2" in str(caught.value)
