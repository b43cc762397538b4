"""``tune-guard validate``: are these policies and search spaces written rightly?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from tune_guard.policy import Policy
    from tune_guard.space import Space

_Kind = Literal["policy", "space"]


def validate(
    *files: Path,
    kind: _Kind | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Check YAML files of policies and search spaces, and say what they mean.

    Exits 1 when one is wrong: file, line, and what was probably meant.

    Args:
        files: The files.

        kind: What the files are; told by their content when left out.

        json: Print plain values as JSON.
    """
    from tune_guard.cli import CLEAN, FINDINGS, UNUSABLE
    from tune_guard.cli.console import print_json, talk

    if not files:
        talk("Name a file: a policy or a search space in YAML.")
        return UNUSABLE
    unreadable = [path for path in files if not path.is_file()]
    for path in unreadable:
        talk(f"{path} is no file.")
    found = [_checked(path, kind) for path in files if path.is_file()]
    if json:
        print_json({"files": found})
    else:
        for facts in found:
            print(facts["error"] or f"{facts['file']}: {facts['means']}")  # noqa: T201 - it is the result
    if unreadable:
        return UNUSABLE
    return FINDINGS if any(facts["error"] for facts in found) else CLEAN


def _checked(path: Path, kind: _Kind | None) -> dict[str, Any]:
    """Return what a file is and means, or what is wrong with it."""
    from tune_guard.exceptions import TuneGuardError
    from tune_guard.policy import Policy
    from tune_guard.space import Space

    kind = kind or _kind_of(path)
    facts: dict[str, Any] = {"file": str(path), "kind": kind, "means": "", "error": ""}
    try:
        if kind == "space":
            facts["means"] = _of_space(Space.from_yaml(path))
        else:
            facts["means"] = _of_policy(Policy.from_yaml(path))
    except TuneGuardError as error:
        facts["error"] = str(error)
    return facts


def _kind_of(path: Path) -> _Kind:
    """Tell a space, whose names stand for mappings with a type, from a policy."""
    import yaml

    try:
        root = yaml.compose(path.read_text(encoding="utf-8-sig"), yaml.SafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return "policy"
    entries = root.value if isinstance(root, yaml.MappingNode) else []
    if any(key.value == "metric" for key, _ in entries):
        return "policy"
    parts = [value for _, value in entries if isinstance(value, yaml.MappingNode)]
    typed = any(key.value == "type" for part in parts for key, _ in part.value)
    return "space" if typed else "policy"


def _of_policy(policy: Policy) -> str:
    """Say what a policy does, which is not all written in its file."""
    cuts = [r.id for r in policy.armed_rules() if policy.action(r.id) == "stop"]
    warns = [r.id for r in policy.armed_rules() if policy.action(r.id) == "warn"]
    mode = f", {policy.mode}" if policy.mode else ", in the study's direction"
    said = [f"a policy on {policy.metric}{mode}; cuts: {', '.join(cuts) or 'nothing'}"]
    if warns:
        said.append(f"warns: {', '.join(warns)}")
    left_out = [rule_id for rule_id in _default_ids() if not _has(policy, rule_id)]
    if left_out:
        said.append(f"without these of the default policy: {', '.join(left_out)}")
    return "; ".join(said) + "."


def _default_ids() -> list[str]:
    from tune_guard.policy import DEFAULT

    return [rule.id for rule in DEFAULT]


def _has(policy: Policy, rule_id: str) -> bool:
    return any(rule.id == rule_id for rule in policy.rules)


def _of_space(space: Space) -> str:
    return f"a space of {len(space.parameters)}: {', '.join(space.parameters)}."
