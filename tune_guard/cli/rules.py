"""``tune-guard rules``: every rule, what it asks for and what arms it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from tune_guard.rules.base import Rule


def rules(
    *ids: str,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """List the rules: trigger, parameters with their defaults, blame, what arms them.

    Those that other packages bring are among them.

    Args:
        ids: Rules to show; all of them when left out.

        json: Print plain values as JSON.
    """
    from tune_guard.cli import CLEAN
    from tune_guard.cli.console import print_json
    from tune_guard.rules.registry import builtin_rules, find_rule, known_rules

    others = sorted(known_rules() - builtin_rules().keys())
    names = ids or (*builtin_rules(), *others)
    found = [_facts(find_rule(name)) for name in names]
    if json:
        print_json({"rules": found})
    else:
        from rich.console import Console

        console = Console(highlight=False)
        for facts in found:
            _show(facts, console)
    return CLEAN


def _facts(kind: type[Rule]) -> dict[str, Any]:
    """Return what can be said about a rule, as plain values."""
    import dataclasses

    from tune_guard.policy import DEFAULT
    from tune_guard.policy_checks import ARMED_BY
    from tune_guard.strict_json import plain

    default = any(type(rule) is kind for rule in DEFAULT)
    by_hand = ARMED_BY.get(kind.id, "its name in `rules`")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    held: Any = fields.pop("holds", None)
    return {
        "id": kind.id,
        "trigger": _first_sentence(kind.__doc__ or ""),
        "tier": kind.tier.name.lower(),
        "blame": str(kind.blame),
        "default": default,
        "armed_by": "the default policy" if default else by_hand,
        "needs": list(kind.needs),
        "parameters": {
            name: plain(field.default)
            for name, field in fields.items()
            if field.default is not dataclasses.MISSING
        },
        "required": [
            name for name, f in fields.items() if f.default is dataclasses.MISSING
        ],
        "holds": [hold.id for hold in held.default] if held else [],
    }


def _first_sentence(docstring: str) -> str:
    """Return what a docstring begins with, in plain text."""
    return docstring.strip().partition("\n")[0].replace("``", "`")


def _show(facts: dict[str, Any], console: Console) -> None:
    from rich.markup import escape
    from rich.padding import Padding

    head = f"[bold]{escape(facts['id'])}[/bold]  {facts['tier']}, blame"
    armed = "armed by" if facts["default"] else "off until"
    console.print(f"{head} {facts['blame']}, {armed} {escape(facts['armed_by'])}")
    parameters = [f"{name} (required)" for name in facts["required"]]
    parameters += [f"{name}={value}" for name, value in facts["parameters"].items()]
    lines = {
        "": facts["trigger"],
        "parameters: ": ", ".join(parameters),
        "holds: ": ", ".join(facts["holds"]),
        "needs one of: ": ", ".join(facts["needs"]),
    }
    for label, text in lines.items():
        if text:
            console.print(Padding(escape(label + text), (0, 0, 0, 2)))
