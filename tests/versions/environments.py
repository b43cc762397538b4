"""Make one environment per row, and run the row's tests in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.versions.rows import Row

ROOT = Path(__file__).resolve().parents[2]
_INSTALL = ("-m", "pip", "install", "-q", "--no-cache-dir")
_SHOWN = ("ray", "optuna", "torch", "lightning", "transformers")
_VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
_INSTALLED = (
    "import importlib.metadata as m, sys\n"
    "have = {d.name.lower(): d.version for d in m.distributions()}\n"
    "print(*(f'{n} {have[n]}' for n in sys.argv[1:] if n in have), sep=', ')"
)


class NotRunError(Exception):
    """A row that could not be run, and why."""


@dataclass
class Counts:
    """How the tests of a row ended."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, report: Path) -> None:
        """Add what a JUnit report says.

        Raises:
            NotRunError: If the tests ended before they could write it.
        """
        if not report.exists():
            msg = f"no report of the tests: see the log beside {report}"
            raise NotRunError(msg)
        for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314 - ours
            number = {k: int(suite.get(k, 0)) for k in ("tests", "skipped")}
            failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            self.failed += failed
            self.skipped += number["skipped"]
            self.passed += number["tests"] - number["skipped"] - failed


def find_python(version: str, given: Iterable[str]) -> str:
    """Return an interpreter of this version, of those given or on the PATH.

    Raises:
        NotRunError: If there is none.
    """
    for path in (*given, shutil.which(f"python{version}")):
        if path and _output(path, "-c", _VERSION).startswith(f"{version}."):
            return path
    msg = f"no Python {version}: name one with --python PATH"
    raise NotRunError(msg)


def make(row: Row, python: str, folder: Path, *, reuse: bool) -> Path:
    """Make the row's environment in an empty folder; return its interpreter.

    Args:
        row: What is installed.

        python: The interpreter that it is made of.

        folder: Where it is made.

        reuse: Take the one that is there.

    Raises:
        NotRunError: If it cannot be installed.
    """
    inside = folder / "venv" / "bin" / "python"
    if reuse and inside.exists():
        return inside
    shutil.rmtree(folder, ignore_errors=True)
    package = f"{ROOT}[{','.join((*row.extras, 'dev'))}]"
    pins = [f"{name}=={version}" for name, version in row.pins.items()]
    for command in (
        [python, "-m", "venv", str(folder / "venv")],
        [str(inside), *_INSTALL, "-e", package, *pins],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [x for x in done.stderr.splitlines() if x.startswith("ERROR")]
            raise NotRunError(" ".join(errors) or done.stderr[-500:])
    return inside


def versions(python: Path) -> str:
    """Return what the row is known by: Python and what counts for it."""
    return f"python {_output(str(python), '-c', _VERSION)}, " + _output(
        str(python), "-c", _INSTALLED, *_SHOWN
    )


def run(row: Row, python: Path, folder: Path) -> Counts:
    """Run the row's tests; logs and reports lie in its folder."""
    counts = Counts()
    for name, options in (
        ("parallel", ["-n", "2", *row.parallel]),
        ("alone", list(row.alone)),
    ):
        folder.joinpath(f"{name}.xml").unlink(missing_ok=True)
        if options:
            counts.add(_pytest(row, python, folder / name, options))
    return counts


def _pytest(row: Row, python: Path, base: Path, options: Sequence[str]) -> Path:
    report = base.with_suffix(".xml")
    ours = ["-p", "tests.versions.absent", "--hypothesis-seed=0"]
    path = os.pathsep.join((str(python.parent), os.environ.get("PATH", "")))
    absent = ",".join(row.absent)
    with base.with_suffix(".log").open("w") as log:
        subprocess.run(
            [python, "-m", "pytest", "-q", *ours, f"--junitxml={report}", *options],
            cwd=ROOT,
            env={**os.environ, "PATH": path, "TUNE_GUARD_ABSENT": absent},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return report


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        print(f"{command[0]}: {error}", file=sys.stderr)
        return ""
    return done.stdout.strip()
