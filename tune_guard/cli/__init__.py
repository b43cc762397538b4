"""The command ``tune-guard``: one small module a command.

Results go to standard output and talk goes to standard error. The exit status is
0 when all is clean, 1 when there are findings, and 2 when the command was used
wrongly or a source cannot be read.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError

from tune_guard.cli.console import talk
from tune_guard.exceptions import TuneGuardError
from tune_guard.record import version

if TYPE_CHECKING:
    from collections.abc import Sequence

CLEAN, FINDINGS, UNUSABLE = 0, 1, 2
BROKEN_PIPE = 141
"""What a shell reports of a program that was ended by SIGPIPE."""

app = App(
    name="tune-guard",
    help="A circuit breaker for hyperparameter sweeps: why did the trials end?",
    version=version,
)
# A text, and no function: a command's module is imported when it is called.
app.command(
    "tune_guard.cli.report:report", help="Compare why the trials of a sweep ended."
)
app.command("tune_guard.cli.replay:replay", help="Tell what a policy would have cut.")
app.command(
    "tune_guard.cli.calibrate:calibrate",
    help="Choose a policy that promises few false kills.",
)
app.command(
    "tune_guard.cli.explain:explain",
    help="Say why a trial was cut, or how near it came.",
)
app.command(
    "tune_guard.cli.evidence:evidence", help="Show and verify what was kept of a trial."
)
app.command("tune_guard.cli.narrow:narrow", help="Leave out of a space what kills.")
app.command(
    "tune_guard.cli.rules:rules", help="List the rules, and what arms each of them."
)
app.command(
    "tune_guard.cli.validate:validate", help="Check policies and search spaces in YAML."
)
app.command("tune_guard.cli.alerts:alerts", help="Test alerts; show what waits.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    Args:
        arguments: Words of the command line; those of the process when None.
    """
    try:
        status = app(
            arguments,
            exit_on_error=False,
            result_action="return_value",
        )
    except CycloptsError:
        return UNUSABLE
    except TuneGuardError as error:
        talk(str(error))
        return UNUSABLE
    except BrokenPipeError:
        # Whoever read along has seen enough: `tune-guard report ... | head`.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        return BROKEN_PIPE
    return status if isinstance(status, int) else CLEAN


__all__ = ["app", "main"]
