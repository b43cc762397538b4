"""Run a project's own tests without and with the guard, and compare test by test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PLUGINS = Path(__file__).parent / "plugins"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one test.

    Args:
        outcome: ``passed``, ``failed``, ``skipped``, ``error``, or ``not run``.

        why: First line of what failed, if anything did.
    """

    outcome: str
    why: str = ""


NOT_RUN = Outcome("not run")

Outcomes = Mapping[str, Outcome]
"""Outcome of every test by its name, ``tests/test_x.py::test_y[1]``."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcomes without the guard and with it, and where they must differ.

    Args:
        baseline: Without the guard.

        guarded: With it.

        documented: Tests that must pass without the guard and fail with it, each
            with the reason. Those that were not run at all do not count.
    """

    baseline: Outcomes
    guarded: Outcomes
    documented: Mapping[str, str]

    @property
    def differences(self) -> dict[str, tuple[Outcome, Outcome]]:
        """Tests that did not end the same way, with both outcomes."""
        names = [*self.baseline, *(n for n in self.guarded if n not in self.baseline)]
        pairs = {
            name: (
                self.baseline.get(name, NOT_RUN),
                self.guarded.get(name, NOT_RUN),
            )
            for name in names
        }
        return {n: (a, b) for n, (a, b) in pairs.items() if a.outcome != b.outcome}

    @property
    def broken(self) -> list[str]:
        """What is not as it must be, one line each."""
        return [*self._broken()]

    def _broken(self) -> Iterator[str]:
        if not any(o.outcome == "passed" for o in self.baseline.values()):
            yield "no test passed without the guard: there is nothing to compare"
        found = self.differences
        for name, (before, after) in found.items():
            changed = (before.outcome, after.outcome)
            if name not in self.documented or changed != ("passed", "failed"):
                yield f"{name}: {before.outcome} -> {after.outcome} ({after.why})"
        for name in self.documented:
            if name not in found and name in self.baseline:
                yield f"{name}: no difference, but one is documented"

    def row(self) -> dict[str, int]:
        """Return the counts of the table's row."""
        passed = [
            sum(o.outcome == "passed" for o in outcomes.values())
            for outcomes in (self.baseline, self.guarded)
        ]
        return {
            "tests": len(self.baseline),
            "baseline passed": passed[0],
            "guarded passed": passed[1],
            "differences": len(self.differences),
            "documented": sum(n in self.documented for n in self.differences),
        }


def run_tests(
    folder: Path,
    selection: Sequence[str],
    plugins: Sequence[str],
    environment: Mapping[str, str],
) -> Outcomes:
    """Run tests in a process of their own; their output goes to a log beside them.

    Args:
        folder: Where the tests lie.

        selection: Files and folders in it.

        plugins: Modules of ``tests/peers/plugins``.

        environment: Variables for the plugins.

    Returns:
        The outcomes.

    Raises:
        RuntimeError: If pytest did not come to an end.
    """
    written = folder / "outcomes.json"
    written.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", *selection]
    command += ["--continue-on-collection-errors", "-p", "no:cacheprovider"]
    command += ["-m", "not slow", "-p", "outcomes"]
    command += [word for plugin in plugins for word in ("-p", plugin)]
    with (folder / "log.txt").open("w") as log:
        subprocess.run(
            command,
            cwd=folder,
            env={
                **os.environ,
                **environment,
                "PYTHONPATH": str(PLUGINS),
                "PEERS_OUTCOMES": str(written),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if not written.exists():
        msg = f"pytest ended early: {(folder / 'log.txt').read_text()[-2000:]}"
        raise RuntimeError(msg)
    found = json.loads(written.read_text(encoding="utf-8"))
    return {name: Outcome(**fields) for name, fields in found.items()}
