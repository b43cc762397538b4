"""Policies as YAML: read with every mistake named, written so that it reads back."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.observation import Keys, check_keys
from tune_guard.policy import DEFAULT, Policy
from tune_guard.rules.base import Rule
from tune_guard.rules.registry import find_rule

VERSION = 1
_CONVENIENCES = ("patience", "target")
_FIELDS = tuple(f.name for f in dataclasses.fields(Policy))


def read_policy(source: str | Path) -> Policy:
    """Read a policy from a file, or from text that holds a line break."""
    text, name = _text_of(source)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        msg = f"{name} is no YAML: {error}"
        raise ConfigError(msg) from error
    if not isinstance(data, Mapping):
        msg = f"{name} must be a mapping with at least `metric` and `mode`."
        raise ConfigError(msg)
    try:
        return _policy_of(dict(data))
    except ConfigError as error:
        msg = f"{name}: {error}"
        raise ConfigError(msg) from error


def _text_of(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and "\n" in source:
        return source, "The policy text"
    try:
        return Path(source).read_text(encoding="utf-8"), str(source)
    except OSError as error:
        msg = f"The policy file {str(source)!r} cannot be read: {error.strerror}."
        raise ConfigError(msg) from error


def _policy_of(data: dict[str, Any]) -> Policy:
    version = data.pop("version", VERSION)
    if version != VERSION:
        msg = f"`version` must be {VERSION}, but got {version!r}. Update tune-guard."
        raise ConfigError(msg)
    for key in data:
        if key not in (*_FIELDS, *_CONVENIENCES):
            hint = did_you_mean(str(key), (*_FIELDS, *_CONVENIENCES, "version"))
            msg = f"`{key}` is no field of a policy. {hint}"
            raise ConfigError(msg)
    fields = {k: _number(v, k) if k in _NUMBERS else v for k, v in data.items()}
    if "metric" not in fields:
        msg = "`metric` is missing. Name the key of the objective."
        raise ConfigError(msg)
    if "keys" in fields:
        fields["keys"] = check_keys({} if fields["keys"] is None else fields["keys"])
    if "rules" in fields:
        fields["rules"] = tuple(_rules_of(fields["rules"]))
    for name in ("actions", "ignore_where"):
        if not isinstance(fields.get(name) or {}, Mapping):
            msg = f"`{name}` must be a mapping, but got {fields[name]!r}."
            raise ConfigError(msg)
        fields[name] = dict(fields.get(name) or {})
    return Policy.default(**_with_words(fields))


def _with_words(fields: dict[str, Any]) -> dict[str, Any]:
    """YAML 1.1 reads a bare ``off`` as False: give the word back."""
    actions = fields["actions"]
    fields["actions"] = {k: "off" if v is False else v for k, v in actions.items()}
    return fields


_NUMBERS = {"warmup_steps": int, "budget_steps": int, "patience": int} | {
    "holdout": float,
    "target": float,
}


def _number(value: Any, name: str) -> Any:
    """Read ``1e-3``, which YAML 1.1 takes for text, as the number it is."""
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
        return float(value) if int not in kinds else value
    return tuple(value) if isinstance(value, list) else value


def _rules_of(data: Any) -> list[Rule]:
    """Read rules: a list of ids or ``id: parameters``, or one mapping of them."""
    if isinstance(data, Mapping):
        data = [{name: params} for name, params in data.items()]
    if not isinstance(data, list):
        msg = f"`rules` must be a list of rules, but got {data!r}."
        raise ConfigError(msg)
    rules = []
    for entry in data:
        pairs = {entry: None} if isinstance(entry, str) else entry
        if not isinstance(pairs, Mapping) or len(pairs) != 1:
            msg = f"A rule must be an id or `id: parameters`, but got {entry!r}."
            raise ConfigError(msg)
        ((rule_id, params),) = pairs.items()
        rules.append(_rule_of(str(rule_id), params or {}))
    return rules


def _rule_of(rule_id: str, params: Any) -> Rule:
    kind = find_rule(rule_id)
    hints = typing.get_type_hints(kind)
    names = [f.name for f in dataclasses.fields(kind)]
    if not isinstance(params, Mapping):
        msg = f"{rule_id}: parameters must be a mapping, but got {params!r}."
        raise ConfigError(msg)
    for name in params:
        if name not in names:
            hint = did_you_mean(str(name), names)
            msg = f"{rule_id}: `{name}` is no parameter. {hint}"
            raise ConfigError(msg)
    return kind(**{name: _converted(v, hints[name]) for name, v in params.items()})


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
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def _written(rule: Rule) -> str | dict[str, Any]:
    params = _changed(rule)
    return {rule.id: params} if params else rule.id


def _changed(value: Any) -> dict[str, Any]:
    return {
        f.name: _listed(getattr(value, f.name))
        for f in dataclasses.fields(value)
        if getattr(value, f.name) != _default_of(f)
    }


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _default_of(f: dataclasses.Field[Any]) -> Any:
    if f.default_factory is not dataclasses.MISSING:
        return f.default_factory()
    return f.default
