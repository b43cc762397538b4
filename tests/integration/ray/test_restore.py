"""A sweep that is interrupted, killed, and brought to its end all the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ray.sweep_process import END

pytestmark = pytest.mark.slow

RUNNING = ("saves", "starts_over")
MODULE = "tests.integration.ray.sweep_process"
_PATIENCE_S = 120.0


class Driver:
    """The driver process of the sweep."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(folder), address],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Wait until something has happened, as long as the driver lives."""
        until = time.monotonic() + _PATIENCE_S
        while not happened():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                pytest.fail(f"it did not happen:\n{self.process.communicate()[0]}")
            time.sleep(0.05)

    def end(self, number: int) -> None:
        """Send a signal and wait until the process is gone."""
        self.process.send_signal(number)
        self.process.communicate(timeout=_PATIENCE_S)


def file_of(folder: Path, fate: str) -> dict[str, Any] | None:
    """Return the tune_guard.json of a trial, or None."""
    for path in folder.glob(f"results/sweep/*fate={fate}*/tune_guard.json"):
        content: dict[str, Any] = json.loads(path.read_text())
        return content
    return None


def ends_of(folder: Path) -> dict[str, tuple[str, int, bool]]:
    """Return reason, step and finality of every trial that has a record."""
    fates = ("saves", "starts_over", "nan", "returns")
    files = {fate: file_of(folder, fate) for fate in fates}
    return {
        fate: (file["tune_guard/reason"], file["tune_guard/step"], file["final"])
        for fate, file in files.items()
        if file is not None
    }


def in_state(folder: Path, fate: str, step: int) -> bool:
    """Whether the newest snapshot has that step of that trial."""
    for path in sorted(folder.glob("results/sweep/experiment_state-*.json"))[-1:]:
        try:
            snapshot = json.loads(path.read_text())
        except json.JSONDecodeError:  # half of it is written
            return False
        for texts in snapshot["trial_data"]:
            trial, newest = map(json.loads, texts)
            row = newest.get("last_result") or {}
            if f"fate={fate}" in str(trial.get("experiment_tag")):
                return bool(row.get("training_iteration", 0) >= step)
    return False


@pytest.fixture(scope="module")
def history(
    cluster: None, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, tuple[str, int, bool]]]:
    """Return the records after Ctrl-C, after kill -9, and after the end."""
    import ray

    folder = tmp_path_factory.mktemp("interrupted")
    address = ray.get_runtime_context().gcs_address
    records = []

    driver = Driver(folder, address)
    driver.wait_for(lambda: all((folder / f"{f}_at_first").exists() for f in RUNNING))
    driver.wait_for(lambda: {"nan", "returns"} <= set(ends_of(folder)))
    driver.wait_for(lambda: all(in_state(folder, fate, 5) for fate in RUNNING))
    driver.process.send_signal(signal.SIGINT)
    (folder / "first").touch()
    driver.process.communicate(timeout=_PATIENCE_S)
    records.append(ends_of(folder))

    for fate in RUNNING:
        (folder / f"{fate}_at_second").unlink(missing_ok=True)
    driver = Driver(folder, address)
    driver.wait_for(lambda: all((folder / f"{f}_at_second").exists() for f in RUNNING))
    driver.wait_for(lambda: all(in_state(folder, fate, 11) for fate in RUNNING))
    driver.end(signal.SIGKILL)
    records.append(ends_of(folder))

    (folder / "second").touch()
    driver = Driver(folder, address)
    driver.process.communicate(timeout=_PATIENCE_S)
    records.append(ends_of(folder))
    return records


STOPPED = {"nan": ("non_finite", 3, True), "returns": ("", -1, True)}


def test_an_interrupt_is_no_end(history: Any) -> None:
    """After Ctrl-C the open trials say so, in a record that is not final."""
    interrupted = {fate: history[0][fate] for fate in RUNNING}
    assert all(end[::2] == ("interrupted", False) for end in interrupted.values())
    assert {k: v for k, v in history[0].items() if k not in RUNNING} == STOPPED


def test_a_resumed_trial_has_no_record(history: Any) -> None:
    """After kill -9 only trials that had ended have one: the others ran on."""
    assert history[1] == STOPPED


def test_after_all_every_verdict_is_that_of_an_undisturbed_run(history: Any) -> None:
    """The same reasons at the same steps, whether a trial saved or started over."""
    count = ("count_to", END, True)
    assert history[2] == {**STOPPED, "saves": count, "starts_over": count}
