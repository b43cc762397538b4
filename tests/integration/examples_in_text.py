"""The examples of a Markdown page, run as a reader would run them."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block: ``python``, or ``console`` with commands and their output."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [Block(language, text) for language, text in found]


def run_python(code: str, folder: Path) -> str:
    """Run code in a process of its own in ``folder``; return what it prints."""
    done = _run([sys.executable, "-c", code], folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run_console(text: str, folder: Path) -> None:
    """Run each command after a ``$``; ``...`` in its output stands for anything."""
    commands = _COMMAND.findall(text)
    assert commands, text
    for command, expected in commands:
        done = _run(["bash", "-c", command], folder)
        printed = done.stdout + done.stderr
        assert _alike(expected, printed), f"{command}\n{printed}"


def _alike(expected: str, printed: str) -> bool:
    """Compare as doctest does, with rows of blanks as one."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, printed, flags)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/bin", "/bin"))
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
