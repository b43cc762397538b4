"""Read everything under a directory and say what came of it, one line each.

Run as ``python -m tests.readers DIRECTORY``. Every directory gets a line, and
every file that is not part of a Ray trial or experiment. Exits 1 when a reader
crashed; a source that is refused with a reason is no crash.
"""

from __future__ import annotations

import pathlib
import re
import sys
import traceback
from typing import TYPE_CHECKING

from tune_guard import SourceError
from tune_guard.sweeps import load_sweeps
from tune_guard.sweeps.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tune_guard.sweeps import Sweep

_PART_OF_RAY = re.compile(
    r"result\.json|progress\.csv|params\.(json|pkl)|error\.(txt|pkl)|tune_guard\.json"
    r"|experiment_state-.*\.json|basic-variant-state-.*\.json|tuner\.pkl"
    r"|events\.out\.tfevents.*|\.validate_storage_marker"
)


def sources(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield every directory, and every file that no directory's line covers."""
    yield root
    for path in sorted(root.rglob("*")):
        if path.is_dir() or not _PART_OF_RAY.fullmatch(path.name):
            yield path


def line_of(sweeps: Sequence[Sweep]) -> str:
    """Say what was read."""
    trials = [trial for sweep in sweeps for trial in sweep.trials]
    curves = sum(len(c) for sweep in sweeps for c in sweep.curves.by_trial.values())
    readings = sum(len(sweep.curves) for sweep in sweeps)
    problems = [problem for sweep in sweeps for problem in sweep.problems]
    repaired = sum(p.lines for p in problems if p.repaired)
    gaps = [p for p in problems if not p.repaired]
    text = (
        f"read: {counted(len(sweeps), 'sweep')}, {counted(len(trials))},"
        f" {counted(curves, 'curve')}, {counted(readings, 'reading')},"
        f" {repaired} repaired, {counted(len(gaps), 'gap')}"
    )
    kinds = dict.fromkeys(problem.what for problem in gaps)
    return text + (f" ({'; '.join(list(kinds)[:3])})" if kinds else "")


def main(directory: str) -> int:
    """Print one line a source and return how many readers crashed."""
    root = pathlib.Path(directory)
    crashes = 0
    for path in sources(root):
        shown = path.relative_to(root) if path != root else path
        try:
            said = line_of(load_sweeps(path))
        except SourceError as error:
            said = f"not read: {error}"
        except Exception:  # noqa: BLE001 - a crash is what this looks for
            crashes += 1
            said = f"CRASH: {traceback.format_exc(limit=-2)}"
        print(f"{shown}{'/' if path.is_dir() else ''}  {said}")
    print(f"{crashes} crashes")
    return crashes


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
