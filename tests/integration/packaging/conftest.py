"""Wheel and sdist as they would be published, and empty environments for them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_CONSTRAINTS = ROOT / "constraints.txt"


def run(*command: object, folder: Path | None = None, status: int = 0) -> str:
    """Run a command outside of the checkout; return what it prints.

    Args:
        command: The program and its arguments.

        folder: Where it runs.

        status: What it exits with if all is well.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, f"{done.stdout}\n{done.stderr}"[-3000:]
    return done.stdout


def build(source: Path, folder: Path, *kinds: str) -> None:
    """Build with the backend that is installed here: it is pinned."""
    run(sys.executable, "-m", "build", "-n", *kinds, "--outdir", folder, source)


class Environment:
    """One without anything in it at first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "venv", with_pip=False)
        self._programs = folder / "venv" / "bin"

    def install(self, *requirements: object) -> None:
        """Install from the package index, with the pinned versions."""
        pip = (sys.executable, "-m", "pip", "--python", self._programs / "python")
        options = ("-q", "--no-compile", "-c", _CONSTRAINTS)
        run(*pip, "install", *options, *requirements)

    def run(self, program: str, *words: object, status: int = 0) -> str:
        """Run one of its programs in its own folder."""
        command = (self._programs / program, *words)
        return run(*command, folder=self.folder, status=status)


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    """Return the wheel."""
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    """Return the sdist."""
    (found,) = dist.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """The wheel with what it cannot do without."""
    made = Environment(tmp_path_factory.mktemp("bare"))
    made.install(wheel)
    return made


@pytest.fixture(scope="session")
def with_optuna(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """The wheel with Optuna."""
    made = Environment(tmp_path_factory.mktemp("optuna"))
    made.install(f"{wheel}[optuna]")
    return made
