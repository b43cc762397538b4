"""Where the commands speak: results on standard output, talk on standard error."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tune_guard.sweeps.readers import Progress


_CONTROL = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(32), *range(127, 160))
    if chr(code) not in "\n\t"
}


def without_control(text: str) -> str:
    r"""Return a text that cannot steer a terminal: no escape sequence is left.

    Example:
        >>> without_control("a\x1b[2Jb")
        'a�[2Jb'
    """
    return text.translate(_CONTROL)


def talk(message: str) -> None:
    """Print a message for a person to standard error."""
    sys.stderr.write(f"tune-guard: {without_control(message)}\n")


def print_json(value: Any) -> None:
    """Print one strict JSON value to standard output."""
    json.dump(value, sys.stdout, allow_nan=False, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


@contextlib.contextmanager
def loading(what: str) -> Iterator[Progress]:
    """Show how far a load is, on standard error, when that is a terminal.

    Args:
        what: Name of what is loaded.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total, _unit: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def update(done: int, total: int, unit: str) -> None:
            description = f"{what}: {unit}"
            bar.update(
                task, completed=done, total=total or None, description=description
            )

        yield update
