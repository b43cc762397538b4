"""Policies as YAML: read with every mistake named, written so that it reads back."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tune_guard.coercion import to_number
from tune_guard.exceptions import ConfigError, brief, did_you_mean
from tune_guard.observation import Keys, check_keys
from tune_guard.policy import DEFAULT, Policy
from tune_guard.policy_lines import line_of
from tune_guard.rules.base import Rule
from tune_guard.rules.holds import Hold
from tune_guard.rules.registry import builtin_holds, find_hold, find_rule
from tune_guard.yaml_limits import LimitError, check_nodes, check_text

VERSION = 1
_Part = TypeVar("_Part", Rule, Hold)
_CONVENIENCES = ("patience", "target")
_FIELDS = tuple(f.name for f in dataclasses.fields(Policy))


def read_policy(source: str | Path) -> Policy:
    """Read a policy from a file, or from text that holds a line break."""
    text, name = _text_of(source)
    root = None
    try:
        check_text(text)
        root = yaml.compose(text, _StrictLoader)
        check_nodes(root)
        return _policy_of(_constructed(root))
    except (_TwiceError, LimitError) as error:
        msg = f"{name}:{error.line}: {error}"
        raise ConfigError(msg) from error
    except ConfigError as error:
        msg = f"{name}:{line_of(root, str(error))}: {error}"
        raise ConfigError(msg) from error
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or error
        msg = f"{name}:{line}: it is no YAML: {problem}."
        raise ConfigError(msg) from error


def _constructed(root: yaml.Node | None) -> Any:
    """Return the plain values of a document.

    Raises:
        YAMLError: If a value is not what its tag says. PyYAML's constructors raise
            anything then: for ``!!int ''`` an IndexError.
    """
    try:
        loader = _StrictLoader("")
        return None if root is None else loader.construct_document(root)
    except (ConfigError, yaml.YAMLError):
        raise
    except Exception as error:
        msg = f"a value does not fit its tag ({brief(error)})"
        raise yaml.YAMLError(msg) from error


class _TwiceError(ConfigError):
    """A key stands twice in one mapping, for the second time on a line."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(f"`{key}` stands there twice. Keep one.")
        self.line = line


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that comes twice, and takes ``1e-3`` for a number.

    YAML would silently keep the last key, and YAML 1.1 takes 1e-3 for text.
    """

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[Any, Any]:
        """Build a mapping, once its keys are known to be different."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise _TwiceError(key.value, key.start_mark.line + 1)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


class _StrictDumper(yaml.SafeDumper):
    """Quotes the texts that the loader would take for numbers."""


for _kind in (_StrictLoader, _StrictDumper):
    _kind.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
        list("-+0123456789"),
    )


def _text_of(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and "\n" in source:
        return source, "The policy text"
    try:
        return Path(source).read_text(encoding="utf-8"), str(source)
    except UnicodeDecodeError as error:
        msg = f"The policy file {str(source)!r} is no UTF-8 text: {error.reason}."
        raise ConfigError(msg) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        msg = f"The policy file {str(source)!r} cannot be read: {why}."
        raise ConfigError(msg) from error


def _policy_of(data: Any) -> Policy:
    if not isinstance(data, Mapping):
        msg = "a policy must be a mapping with at least `metric` and `mode`."
        raise ConfigError(msg)
    data = dict(data)
    _check_fields(data)
    data.pop("version", None)
    fields = {k: _number(v, k) if k in _NUMBERS else v for k, v in data.items()}
    if "keys" in fields:
        fields["keys"] = check_keys({} if fields["keys"] is None else fields["keys"])
    if "rules" in fields:
        fields["rules"] = tuple(_rules_of(fields["rules"]))
    for name in ("actions", "ignore_where"):
        if fields.get(name) is None:
            fields.pop(name, None)
    if isinstance(fields.get("actions"), Mapping):
        fields["actions"] = _with_words(fields["actions"])
    return Policy.default(**fields)


def _check_fields(data: Mapping[Any, Any]) -> None:
    version = data.get("version", VERSION)
    if version != VERSION:
        msg = f"`version` must be {VERSION}, but got {version!r}. Update tune-guard."
        raise ConfigError(msg)
    known = (*_FIELDS, *_CONVENIENCES, "version")
    for key in data:
        if key not in known:
            msg = f"`{key}` is no field of a policy. {did_you_mean(key, known)}"
            raise ConfigError(msg)
    if "metric" not in data:
        msg = "`metric` is missing. Name the key of the objective."
        raise ConfigError(msg)


def _with_words(actions: Mapping[Any, Any]) -> dict[Any, Any]:
    """YAML 1.1 reads a bare ``off`` as False: give the word back."""
    return {k: "off" if v is False else v for k, v in actions.items()}


_NUMBERS = {"warmup_steps": int, "budget_steps": int, "patience": int} | {
    "holdout": float,
    "target": float,
}


def _number(value: Any, name: str) -> Any:
    """Read a number, also one in quotes, as the kind that is asked for."""
    wanted = _NUMBERS[name]
    return _converted(value, wanted)


def _converted(value: Any, wanted: Any) -> Any:
    kinds = set(typing.get_args(wanted)) or {wanted}
    if isinstance(value, str) and kinds & {int, float} and str not in kinds:
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, float) and int in kinds and float not in kinds:
        return int(value) if value.is_integer() else value
    if isinstance(value, int) and not isinstance(value, bool) and float in kinds:
        return to_number(value) if int not in kinds else value
    return tuple(value) if isinstance(value, list) else value


def _rules_of(data: Any) -> list[Rule]:
    """Read rules: a list of ids or ``id: parameters``, or one mapping of them."""
    if isinstance(data, Mapping):
        data = [{name: params} for name, params in data.items()]
    return [_part_of(find_rule, *entry) for entry in _entries("rules", data)]


def _holds_of(data: Any) -> tuple[Hold, ...]:
    return tuple(_part_of(find_hold, *entry) for entry in _entries("holds", data))


def _entries(name: str, data: Any) -> list[tuple[str, Any]]:
    """Return the ids and parameters of a list of parts."""
    if not isinstance(data, list):
        msg = f"`{name}` must be a list of {name}, but got {data!r}."
        raise ConfigError(msg)
    entries = []
    for entry in data:
        pairs = {entry: None} if isinstance(entry, str) else entry
        if not isinstance(pairs, Mapping) or len(pairs) != 1:
            what = name.removesuffix("s")
            msg = f"A {what} must be an id or `id: parameters`, but got {entry!r}."
            raise ConfigError(msg)
        ((part_id, params),) = pairs.items()
        entries.append((str(part_id), {} if params is None else params))
    return entries


def _part_of(
    find: Callable[[str], Callable[..., _Part]], part_id: str, params: Any
) -> _Part:
    """Make a rule or a hold of its parameters."""
    kind: Any = find(part_id)
    names = [f.name for f in dataclasses.fields(kind)]
    if not isinstance(params, Mapping):
        msg = f"{part_id}: parameters must be a mapping, but got {params!r}."
        raise ConfigError(msg)
    for name in params:
        if name not in names:
            hint = did_you_mean(name, names)
            msg = f"{part_id}: `{name}` is no parameter. {hint}"
            raise ConfigError(msg)
    hints = _hints(kind)
    values = {name: _converted(v, hints.get(name)) for name, v in params.items()}
    if "holds" in values:
        values["holds"] = _holds_of(params["holds"])
    try:
        part: _Part = kind(**values)
    except (TypeError, AttributeError) as error:
        msg = f"{part_id}: {error}"
        raise ConfigError(msg) from error
    return part


def _hints(kind: type) -> dict[str, Any]:
    """Return the types of a part's fields, as far as they can be known.

    A part of another package may import its types for type checkers only.
    """
    try:
        return typing.get_type_hints(kind)
    except NameError:
        return {}


def write_policy(policy: Policy) -> str:
    """Write only what differs from the defaults, so that defaults may improve."""
    data: dict[str, Any] = {"version": VERSION, "metric": policy.metric}
    for f in dataclasses.fields(policy):
        value, fresh = getattr(policy, f.name), _default_of(f)
        if f.name in ("metric", "rules") or value == fresh:
            continue
        data[f.name] = _changed(value) if isinstance(value, Keys) else _listed(value)
    if policy.rules != DEFAULT:
        data["rules"] = [_written(rule) for rule in policy.rules]
    try:
        return yaml.dump(
            data, Dumper=_StrictDumper, sort_keys=False, allow_unicode=True
        )
    except yaml.YAMLError as error:
        msg = f"This policy cannot be written as YAML: {error}"
        raise ConfigError(msg) from error


def _written(part: Rule | Hold) -> str | dict[str, Any]:
    if isinstance(part, Hold) and part.id not in builtin_holds():
        msg = f"The hold {part!r} cannot be written: no file can name it."
        raise ConfigError(msg)
    params = _changed(part)
    return {part.id: params} if params else part.id


def _changed(value: Any) -> dict[str, Any]:
    return {
        f.name: _listed(getattr(value, f.name))
        for f in dataclasses.fields(value)
        if getattr(value, f.name) != _default_of(f)
    }


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_written(v) if isinstance(v, Hold) else v for v in value]
    return value


def _default_of(f: dataclasses.Field[Any]) -> Any:
    if f.default_factory is not dataclasses.MISSING:
        return f.default_factory()
    return f.default
