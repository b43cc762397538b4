"""``tune-guard narrow``: a search space without what kills."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from tune_guard.space import Space
    from tune_guard.sweeps import Sweep
    from tune_guard.sweeps.narrow import Narrowed


def narrow(
    source: str,
    /,
    *,
    space: pathlib.Path | None = None,
    output: pathlib.Path | None = None,
    check: Annotated[bool, Parameter(negative="")] = False,
    metric: str | None = None,
    mode: Literal["min", "max"] | None = None,
    study: str | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Write a search space that leaves out what kills.

    The region of the best trials is never cut away. A sweep that ran without the
    guard is judged by its curves. Exits 1 when something can be
    left out, 0 when the space is best left as it is.

    Args:
        source: Directory, file or storage URL of the sweep.

        space: YAML file of the space; when left out, the space is read from the
            values that the sweep drew.

        output: File to write; SPACE with `.narrowed` before its ending when left out.

        check: Print only, write nothing.

        metric: The objective. Needed where it is not recorded.

        mode: Whether the objective is to be minimized or maximized. Needed where
            it is not recorded.

        study: The study to read, where a storage holds several.

        json: Print the regions and the figures as JSON.
    """
    from tune_guard.cli import CLEAN, FINDINGS
    from tune_guard.cli.console import loading, print_json
    from tune_guard.cli.output_file import check_place, write_whole
    from tune_guard.sweeps import load_sweep
    from tune_guard.sweeps.foreign import judged
    from tune_guard.sweeps.narrow import narrow as narrowed
    from tune_guard.sweeps.objective import resolve
    from tune_guard.sweeps.report.narrowed import as_json, lines

    place = output or _beside(space)
    if not check:
        check_place(place)
    with loading(source) as progress:
        loaded = load_sweep(source, study_name=study or "", progress=progress)
    sweep = judged(resolve(loaded, metric or "", mode or ""))
    found = narrowed(sweep, _space(space, sweep))
    if json:
        print_json(as_json(found))
    else:
        print("\n".join(lines(found)))  # noqa: T201 - the command's result
    if not found.cuts:
        return CLEAN
    if not check:
        write_whole(place, _text(found, source))
    return FINDINGS


def _space(path: pathlib.Path | None, sweep: Sweep) -> Space:
    from tune_guard.cli.console import talk
    from tune_guard.space import Space
    from tune_guard.sweeps.drawn_space import drawn_space

    if path is not None:
        return Space.from_yaml(path)
    space, left_out = drawn_space(sweep.trials)
    for message in left_out:
        talk(f"Not in the space: {message}.")
    return space


def _beside(space: pathlib.Path | None) -> pathlib.Path:
    if space is None:
        return pathlib.Path("space.narrowed.yaml")
    return space.parent / f"{space.stem}.narrowed{space.suffix}"


def _text(found: Narrowed, source: str) -> str:
    from tune_guard.sweeps.report.narrowed import lines

    head = [f"Narrowed after {source}.", *lines(found)]
    said = "".join(f"# {line}\n" for line in "\n".join(head).splitlines())
    return said + found.space.to_yaml()
