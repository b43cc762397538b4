"""What the tests of messages share: a robot server, settings, an outbox folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.notify.clock import VirtualClock
from tests.integration.notify.robots import Robots
from tune_guard.notify.alerts import Alerts
from tune_guard.notify.config import Settings, read_settings


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's own proxies out of it."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def robots() -> Iterator[Robots]:
    """Both services on loopback, on the machine's clock."""
    with Robots() as server:
        yield server


@pytest.fixture
def clock() -> VirtualClock:
    """A clock that only the test moves."""
    return VirtualClock()


@pytest.fixture
def timed_robots(clock: VirtualClock) -> Iterator[Robots]:
    """Both services on loopback, on the virtual clock."""
    with Robots(clock=clock.time) as server:
        yield server


SettingsOf = Callable[..., Settings]


@pytest.fixture
def settings_of(tmp_path: Path) -> SettingsOf:
    """Make settings as the environment would, with a state folder of the test's."""

    def make(urls: str, **more: str) -> Settings:
        variables = {"TUNE_GUARD_ALERTS": urls, "TUNE_GUARD_STATE": str(tmp_path)}
        variables |= {f"TUNE_GUARD_ALERTS_{k.upper()}": v for k, v in more.items()}
        return read_settings(variables)

    return make


@pytest.fixture
def start(
    settings_of: SettingsOf, clock: VirtualClock
) -> Iterator[Callable[..., Alerts]]:
    """Start alerts on the virtual clock, and end them with the test."""
    started: list[Alerts] = []

    def make(urls: str, **more: str) -> Alerts:
        settings = settings_of(urls, **more)
        for service in settings.services:
            service._clock = clock.time  # type: ignore[attr-defined]
        alerts = Alerts(settings, clock.as_clock())
        started.append(alerts)
        return alerts

    yield make
    for alerts in started:
        alerts.close(0.0)
