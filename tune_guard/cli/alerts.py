"""``tune-guard alerts``: test the alerts, and show what waits to be delivered."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


def alerts(
    *,
    test: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Show alerts that were not delivered, or test whether they can be.

    Where to is read from TUNE_GUARD_ALERTS. Exits 1 when alerts wait, or when a
    test message did not arrive.

    Args:
        test: Send a test message to each service, and say what it answered.

        json: Print plain values as JSON.
    """
    return _test(as_json=json) if test else _show(as_json=json)


def _test(*, as_json: bool) -> int:
    from tune_guard.cli import CLEAN, FINDINGS, UNUSABLE
    from tune_guard.cli.console import print_json, talk
    from tune_guard.notify.commands import send_test

    tried = send_test()
    if not tried:
        talk("TUNE_GUARD_ALERTS names no service. Set it to the URL of a robot.")
        return UNUSABLE
    if as_json:
        names = ("service", "arrived", "said")
        print_json({"test": [{n: getattr(t, n) for n in names} for t in tried]})
    else:
        for one in tried:
            print(_sentence(one.service, one.said, arrived=one.arrived))  # noqa: T201 - the command's result
    return CLEAN if all(one.arrived for one in tried) else FINDINGS


def _sentence(service: str, said: str, *, arrived: bool) -> str:
    state = "arrived" if arrived else "did not arrive"
    return f"{service}: the test message {state}" + (f": {said}" if said else "")


def _show(*, as_json: bool) -> int:
    from tune_guard.cli import CLEAN, FINDINGS
    from tune_guard.cli.console import print_json
    from tune_guard.notify.commands import as_lines, waiting
    from tune_guard.notify.config import read_settings

    settings = read_settings()
    found = waiting(settings)
    if as_json:
        print_json({"waiting": [item.as_json() for item in found]})
    else:
        lines = as_lines(found, settings) or ["No alert waits to be delivered."]
        print("\n".join(lines))  # noqa: T201 - the command's result
    return FINDINGS if found else CLEAN
