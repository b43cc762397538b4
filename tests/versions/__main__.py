"""Run the oldest and the newest of what is supported: ``python -m tests.versions``.

One environment per row, made in a temporary folder and removed afterwards; one line
per row on the output. It ends with 1 if a test failed or a row could not be run.
The index that pip asks is set by pip's own variables: with one of CPU builds of torch
in ``PIP_EXTRA_INDEX_URL``, the row of the oldest torch takes 2 GB and not 8.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.versions import environments
from tests.versions.environments import NotRunError
from tests.versions.rows import ROWS


def _line(
    name: str, pythons: list[str], folder: Path, *, keep: bool, reuse: bool
) -> bool:
    """Run one row and print its line; return whether all is well."""
    row = ROWS[name]
    try:
        found = environments.find_python(row.python, pythons)
        python = environments.make(row, found, folder, reuse=reuse)
        versions = environments.versions(python)
        counts = environments.run(row, python, folder)
    except NotRunError as error:
        print(f"| {name} | not run: {error} |", flush=True)
        return False
    finally:
        if not keep:
            shutil.rmtree(folder / "venv", ignore_errors=True)
    numbers = f"{counts.passed} | {counts.failed} | {counts.skipped}"
    print(f"| {name} | {versions} | {numbers} |", flush=True)
    return counts.failed == 0


def main() -> int:
    """Run the rows that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions")
    parser.add_argument("rows", nargs="*", help=f"some of {', '.join(ROWS)}")
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    parser.add_argument("--folder", type=Path, help="for environments, logs, reports")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    parser.add_argument(
        "--reuse", action="store_true", help="take those that are there"
    )
    options = parser.parse_args()
    unknown = sorted(set(options.rows) - set(ROWS))
    if unknown:
        parser.error(f"no rows {unknown}: there are {', '.join(ROWS)}")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="tune_guard_versions_"))
    print("| row | versions | passed | failed | skipped |\n|---|---|---:|---:|---:|")
    well = [
        _line(
            name,
            options.python,
            folder / name,
            keep=options.keep,
            reuse=options.reuse,
        )
        for name in options.rows or ROWS
    ]
    print(f"logs and reports: {folder}", file=sys.stderr)
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
