"""``tune-guard replay``: what a policy would have cut in recorded sweeps."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from tune_guard.sweeps.replayed import Replayed, Request


def replay(
    *sources: str,
    policy: str | None = None,
    metric: str | None = None,
    mode: Literal["min", "max"] | None = None,
    budget_steps: int | None = None,
    top: float = 0.1,
    jobs: int = 1,
    html: pathlib.Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run a policy over recorded sweeps: saved compute against false kills.

    The monitor is the one that cuts in production. The recorded trials should
    have run to their end: one that something cut counts as if it ended there.

    Args:
        sources: Ray experiment directories, Optuna storages, tables of curves.

        policy: YAML file of the policy; the default policy when left out.

        metric: The objective. Needed where it is not recorded.

        mode: Whether the objective is to be minimized or maximized. Needed where
            it is not recorded.

        budget_steps: Steps that a full trial runs; when left out, the policy's,
            else those of the sweep's longest trial.

        top: Share of a sweep whose cuts are false kills.

        jobs: Processes to use; each holds a sweep or two at a time.

        html: File to write the figures to, and the curves with the cuts.

        json: Print the figures as JSON.
    """
    from tune_guard.cli import CLEAN, UNUSABLE
    from tune_guard.cli.console import print_json, talk
    from tune_guard.cli.output_file import check_place, write_whole
    from tune_guard.cli.safe_console import SafeConsole
    from tune_guard.policy import Policy
    from tune_guard.sweeps.replayed import Request
    from tune_guard.sweeps.report.replayed import as_json, show

    if not sources:
        talk("Name a source: a directory, a file or a storage URL.")
        return UNUSABLE
    _check(top, jobs, budget_steps)
    if html is not None:
        check_place(html)
    request = Request(
        policy=Policy.from_yaml(policy) if policy else None,
        metric=metric or "",
        mode=mode or "",
        budget_steps=budget_steps,
    )
    found = _with_progress(sources, request, jobs, top if html else None)
    for message in (*found.notices.values(), *found.problems):
        talk(message)
    if html and found.sweeps:
        from tune_guard.sweeps.report.html_replay import page

        write_whole(html, page(found, top, title=", ".join(sources)))
    if json:
        print_json(as_json(found, top))
    elif found.sweeps:
        show(found, top, SafeConsole())
    return CLEAN if found.sweeps and not found.problems else UNUSABLE


def _check(top: float, jobs: int, budget_steps: int | None) -> None:
    from tune_guard.exceptions import ConfigError

    if not 0 < top <= 1:
        msg = f"`top` must be a share above 0 and up to 1, but got {top!r}."
        raise ConfigError(msg + " 0.1 is the best tenth.")
    if jobs < 1:
        msg = f"`jobs` must be >= 1, but got {jobs}. 1 uses this process alone."
        raise ConfigError(msg)
    if budget_steps is not None and budget_steps < 1:
        msg = f"`budget_steps` must be >= 1, but got {budget_steps}."
        raise ConfigError(msg + " Leave it out for those of the longest trial.")


def _with_progress(
    sources: tuple[str, ...], request: Request, jobs: int, drawn_top: float | None
) -> Replayed:
    import functools

    from tune_guard.cli.console import loading
    from tune_guard.sweeps.replayed import replay_sources

    draws = None
    if drawn_top is not None:
        from tune_guard.sweeps.report.html_replay import draw

        draws = functools.partial(draw, top=drawn_top)
    with loading("replay") as progress:
        return replay_sources(
            sources, request, jobs=jobs, draw=draws, progress=progress
        )
