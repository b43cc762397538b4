"""``tune-guard report``: compare why the trials of a sweep ended."""

from __future__ import annotations

import dataclasses
import pathlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from tune_guard.sweeps import Sweep
    from tune_guard.sweeps.compare import Comparison
    from tune_guard.sweeps.side_by_side import Change


def report(
    *sources: str,
    metric: str | None = None,
    mode: Literal["min", "max"] | None = None,
    study: str | None = None,
    html: pathlib.Path | None = None,
    policy: str | None = None,
    replay: bool = True,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Compare why the trials of a sweep ended.

    Reads Ray experiment directories, Optuna storages and tables of curves. None
    of them is changed. Exits 1 when trials were cut by the guard or failed.

    Args:
        sources: Directory of a Ray experiment or its URL; URL of an Optuna storage,
            or path of its SQLite or journal file; parquet or CSV table of curves.

        metric: The objective. Needed where it is not recorded.

        mode: Whether the objective is to be minimized or maximized. Needed where
            it is not recorded.

        study: The study to read, where a storage holds several.

        policy: YAML file of the policy that judges a sweep which ran without the
            guard; the default policy when left out.

        replay: Judge such sweeps by their curves, each reason marked as found so.

        html: File to write the report to: one page that needs no connection.

        json: Print the whole comparison as JSON.
    """
    from tune_guard.cli import CLEAN, FINDINGS, UNUSABLE
    from tune_guard.cli.console import talk
    from tune_guard.cli.output_file import check_place, write_whole
    from tune_guard.exceptions import TuneGuardError
    from tune_guard.sweeps.compare import compare

    if not sources:
        talk("Name a source: a directory, a file or a storage URL.")
        return UNUSABLE
    if html is not None:
        check_place(html)
    sweeps: list[Sweep] = []
    failures = 0
    for source in sources:
        try:
            found, refused = _read(source, metric or "", mode or "", study or "")
            sweeps += [_judged(sweep, policy) for sweep in found] if replay else found
            failures += refused
        except TuneGuardError as error:
            failures += 1
            talk(str(error))
    comparisons = [compare(sweep) for sweep in sweeps]
    if html is not None and sweeps:
        # First, so that `... --html report.html | head` leaves a page.
        from tune_guard.sweeps.report.html import page

        write_whole(html, page(sweeps))
    _print(comparisons, as_json=json)
    if failures:
        return UNUSABLE
    return FINDINGS if any(c.findings for c in comparisons) else CLEAN


def _read(source: str, metric: str, mode: str, study: str) -> tuple[list[Sweep], int]:
    """Return the sweeps that can be ranked, and how many cannot.

    Each of these is named among the gaps of the first that can.
    """
    from tune_guard.cli.console import loading, talk
    from tune_guard.exceptions import ConfigError
    from tune_guard.sweeps import Problem, load_sweeps

    with loading(source) as progress:
        sweeps = load_sweeps(source, study_name=study, progress=progress)
    found: list[Sweep] = []
    refused: list[str] = []
    for sweep in sweeps:
        try:
            found.append(_with_objective(sweep, metric, mode))
        except ConfigError as error:
            refused.append(str(error))
            talk(str(error))
    if found and refused:
        gaps = [Problem(file=sweeps[0].source, what=f"left out: {w}") for w in refused]
        problems = (*found[0].problems, *gaps)
        found[0] = dataclasses.replace(found[0], problems=problems)
    return found, len(refused)


def _judged(sweep: Sweep, path: str | None) -> Sweep:
    """Give a sweep that ran without the guard the reasons that it would have given."""
    from tune_guard.cli.console import loading
    from tune_guard.policy import Policy
    from tune_guard.sweeps.foreign import judged

    policy = Policy.from_yaml(path) if path else None
    with loading(sweep.name or sweep.source) as progress:
        return judged(sweep, policy, progress)


def _with_objective(sweep: Sweep, metric: str, mode: str) -> Sweep:
    """Rank a sweep; one in which nothing was ever reported has no objective."""
    from tune_guard.sweeps.objective import resolve

    return resolve(sweep, metric, mode) if sweep.metrics() else sweep


def _print(comparisons: list[Comparison], *, as_json: bool) -> None:
    if as_json:
        from tune_guard.cli.console import print_json
        from tune_guard.sweeps.report import as_json as machine

        changed = [dataclasses.asdict(change) for change in _changes(comparisons)]
        sweeps = [machine.as_json(found) for found in comparisons]
        print_json({"sweeps": sweeps, "changes": changed})
        return
    from tune_guard.cli.safe_console import SafeConsole
    from tune_guard.sweeps.report.terminal import show
    from tune_guard.sweeps.report.terminal_more import show_changes

    console = SafeConsole()
    for found in comparisons:
        show(found, console)
    changes = _changes(comparisons)
    if changes:
        show_changes(comparisons, changes, console)


def _changes(comparisons: list[Comparison]) -> tuple[Change, ...]:
    """Hold the sweeps against the first; nothing for one, or without scipy."""
    from tune_guard.sweeps.side_by_side import changes

    several = len(comparisons) > 1 and find_spec("scipy") is not None
    return changes(comparisons) if several else ()
