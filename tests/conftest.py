"""What every test shares: quiet engines, no network, real services by their URL."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

import pytest
from hypothesis import settings

# Before any engine is imported: Ray reads these once.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")

IS_CI = os.environ.get("CI") == "true"

# No deadline: no test may fail because the machine is busy.
settings.register_profile("tests", deadline=None, derandomize=IS_CI)
settings.load_profile("tests")


def pytest_report_header() -> str:
    """Name the versions that results depend on."""
    engines = ("ray", "optuna", "torch", "pandas", "numpy")
    return ", ".join(f"{name} {_version(name)}" for name in engines)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _service(variable: str) -> str:
    """Return the URL of a service; without one, skip by hand and fail in CI."""
    url = os.environ.get(variable, "")
    if not url and IS_CI:
        pytest.fail(f"{variable} must be set in CI")
    if not url:
        pytest.skip(f"set {variable} to run this, or use .ci/run")
    return url


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """URL of a PostgreSQL database that tests may write to."""
    return _service("TUNE_GUARD_TEST_POSTGRES")


@pytest.fixture(scope="session")
def mysql_url() -> str:
    """URL of a MySQL or MariaDB database that tests may write to."""
    return _service("TUNE_GUARD_TEST_MYSQL")


@pytest.fixture(scope="session")
def redis_url() -> str:
    """URL of a Redis server that tests may write to."""
    return _service("TUNE_GUARD_TEST_REDIS")
