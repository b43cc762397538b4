"""A real headless Chromium, and pages to open in it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import IS_CI
from tests.unit.sweeps.sweeps_made import deadly
from tune_guard.sweeps.report.html import page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Chromium with a profile of its own; skipped by hand, needed in CI."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        (pytest.fail if IS_CI else pytest.skip)(
            "needs Chromium: apt-get install -y chromium chromium-driver"
        )
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of one sweep, as a file."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page([deadly(120)]), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two sweeps side by side, as a file."""
    path = tmp_path_factory.mktemp("two") / "report.html"
    sweeps = [deadly(80), deadly(60, seed=2, name="after")]
    path.write_text(page(sweeps), encoding="utf-8")
    return path
