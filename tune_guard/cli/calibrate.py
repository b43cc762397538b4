"""``tune-guard calibrate``: a policy with a promise, from one's own past sweeps."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from tune_guard.sweeps.calibrate import Calibration
    from tune_guard.sweeps.promise import Goal


def calibrate(
    *sources: str,
    false_kill: float = 0.01,
    confidence: float = 0.9,
    output: pathlib.Path | None = None,
    metric: str | None = None,
    mode: Literal["min", "max"] | None = None,
    top: float = 0.1,
    jobs: int = 1,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Choose how boldly to cut, so that few of future sweeps' best trials are killed.

    Each level from lenient to bold is replayed over the past sweeps. The policy
    written is the boldest one whose false-kill rate on future sweeps like these is
    at most the given one, with the given confidence. Where the past sweeps are too
    few for that, nothing is written, and the message says how many it takes.

    Args:
        sources: Past sweeps whose trials ran to their end: Ray experiment
            directories, Optuna storages, tables of curves. Trials that something
            had cut are left out.

        false_kill: Largest share of a sweep's best trials that may be cut before
            their own best, as the mean over future sweeps.

        confidence: How sure that is to be.

        output: File to write the policy to; standard output when left out.

        metric: The objective. Needed where it is not recorded.

        mode: Whether the objective is to be minimized or maximized. Needed where
            it is not recorded.

        top: Share of a sweep that counts as its best.

        jobs: Processes to use.

        json: Print the figures of every level as JSON, beside the file.
    """
    from tune_guard.cli import CLEAN, UNUSABLE
    from tune_guard.cli.console import print_json, talk
    from tune_guard.cli.output_file import check_place, write_whole
    from tune_guard.sweeps.promise import Goal
    from tune_guard.sweeps.report.calibrated import as_json, as_yaml, show

    if not sources:
        talk("Name past sweeps: directories, files or storage URLs.")
        return UNUSABLE
    if output:
        check_place(output)
    goal = Goal(false_kill=false_kill, confidence=confidence, top=top)
    found = _with_progress(sources, goal, (metric or "", mode or ""), jobs)
    for problem in found.problems:
        talk(problem)
    show(found)
    text = as_yaml(found, sources)
    if output:
        write_whole(output, text)
    if json:
        print_json(as_json(found))
    elif not output:
        print(text, end="")  # noqa: T201 - the result of the command
    return CLEAN


def _with_progress(
    sources: tuple[str, ...], goal: Goal, objective: tuple[str, str], jobs: int
) -> Calibration:
    from tune_guard.cli.console import loading
    from tune_guard.sweeps.calibrate import calibrate

    metric, mode = objective
    with loading("calibrate") as progress:
        return calibrate(
            sources, goal, metric=metric, mode=mode, jobs=jobs, progress=progress
        )
