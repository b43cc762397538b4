"""Read and write the YAML of a space; every error names its line.

Scalars follow YAML 1.2, in which ``1e-3`` is a number and ``no`` is a text;
PyYAML's own YAML 1.1 has both the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

import yaml

from tune_guard.exceptions import did_you_mean
from tune_guard.space.checks import Scalar, SpaceError
from tune_guard.space.parameters import Categorical, Constant, Float, Int, Parameter
from tune_guard.yaml_limits import LimitError, check_nodes, check_text

KINDS: dict[str, type[Parameter]] = {
    "float": Float,
    "int": Int,
    "categorical": Categorical,
    "constant": Constant,
}

_TAG = "tag:yaml.org,2002:"

# source: YAML 1.2.2, 10.3.2 "Tag Resolution" of the core schema, without octal
# and hexadecimal numbers.
_SCALARS = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+",
    "float": r"""[-+]? (\.[0-9]+ | [0-9]+(\.[0-9]*)?) ([eE][-+]?[0-9]+)?
        | [-+]?\.(inf|Inf|INF) | \.(nan|NaN|NAN)""",
}

_READERS: dict[str, Callable[[str], Scalar]] = {
    "str": str,
    "null": lambda _text: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": lambda text: float(
        text.lower().replace(".inf", "inf").replace(".nan", "nan")
    ),
}


class _Loader(yaml.SafeLoader):
    """Composes nodes whose tags follow YAML 1.2."""


class _Dumper(yaml.SafeDumper):
    """Quotes a text that YAML 1.1 or 1.2 would take for something else."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML leaves a Unicode line break as it is, and reads it back as a space.
    style = '"' if text.splitlines() not in ([text], []) else None
    return dumper.represent_scalar(_TAG + "str", text, style=style)


_Dumper.add_representer(str, _represent_text)
_Loader.yaml_implicit_resolvers = {}
for _name, _pattern in _SCALARS.items():
    _regexp = re.compile(rf"(?:{_pattern})\Z", re.VERBOSE)
    for _class in (_Loader, _Dumper):
        # None: whatever character the scalar begins with.
        _class.add_implicit_resolver(_TAG + _name, _regexp, None)


@dataclass(frozen=True)
class Entry:
    """A parameter and the lines on which it and its keys stand."""

    parameter: Parameter
    lines: Mapping[str, int]

    def line_of(self, key: str) -> int:
        """Return the line of a key, or that of the parameter's name."""
        return self.lines.get(key, self.lines[""])


def located(error: SpaceError, label: str, line: int) -> SpaceError:
    """Return the error with the file and the line in front."""
    return SpaceError(
        f"{label}:{line}: {error}", parameter=error.parameter, key=error.key
    )


def load(source: str | Path) -> tuple[str, str]:
    """Return a label for messages, and the text of a file or the text itself."""
    if isinstance(source, str) and "\n" in source:
        return "<text>", source
    try:
        return str(source), Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{source}:1: not a text file in UTF-8 ({error.reason})."
        raise SpaceError(msg) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        msg = f"The space file {str(source)!r} cannot be read: {why}."
        raise SpaceError(msg) from error


def read(text: str, label: str) -> dict[str, Entry]:
    """Return the parameters of a definition with their lines.

    Raises:
        SpaceError: If the text is no YAML mapping of parameters.
    """
    try:
        check_text(text)
        root = yaml.compose(text, Loader=_Loader)
        check_nodes(root)
        return {} if root is None else _Reader(label).space(root)
    except LimitError as error:
        msg = f"{label}:{error.line}: {error}"
        raise SpaceError(msg) from None
    except RecursionError:
        msg = f"{label}:1: nested too deeply."
        raise SpaceError(msg) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        line = mark.line + 1 if mark else 1
        msg = f"{label}:{line}: not valid YAML: {problem}."
        raise SpaceError(msg) from error


class _Reader:
    """Walks the nodes of one definition."""

    def __init__(self, label: str) -> None:
        self.label = label

    def space(self, root: yaml.Node) -> dict[str, Entry]:
        what = "A space must map names to parameters"
        return {
            name: self.entry(name, key, value)
            for name, (key, value) in self.mapping(root, what).items()
        }

    def entry(self, name: str, key: yaml.Node, node: yaml.Node) -> Entry:
        what = (
            f"`{name}` must be a mapping with a `type`, such as "
            "{type: constant, value: 20}"
        )
        items = self.mapping(node, what)
        lines = {"": _line(key)} | {word: _line(at) for word, (at, _) in items.items()}
        values = {word: self.plain(value) for word, (_, value) in items.items()}
        try:
            return Entry(_parameter(values), lines)
        except SpaceError as error:
            line = lines.get(error.key, lines[""])
            named = SpaceError(f"`{name}`: {error}", parameter=name, key=error.key)
            raise located(named, self.label, line) from None

    def mapping(
        self, node: yaml.Node, what: str
    ) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return the items of a mapping; a key that stands twice is an error."""
        if not isinstance(node, yaml.MappingNode) or node.tag != _TAG + "map":
            self.fail(node, f"{what}.")
        items: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            word = self.plain(key)
            if not isinstance(word, str):
                self.fail(key, f"A key must be a text, but got {word!r}. Quote it.")
            if word in items:
                first = _line(items[word][0])
                self.fail(key, f"`{word}` stands twice, first on line {first}.")
            items[word] = (key, value)
        return items

    def plain(self, node: yaml.Node) -> Any:
        """Return a node as plain Python values."""
        if isinstance(node, yaml.MappingNode):
            items = self.mapping(node, f"the tag {node.tag} is not known")
            return {word: self.plain(value) for word, (_, value) in items.items()}
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.plain(item) for item in node.value]
        reader = _READERS.get(node.tag.removeprefix(_TAG))
        if reader is None or not isinstance(node, yaml.ScalarNode):
            self.fail(node, f"The tag {node.tag} is not known. Write a plain value.")
        try:
            return reader(node.value)
        except ValueError:
            self.fail(node, f"{node.value!r} is no {node.tag.removeprefix(_TAG)}.")

    def fail(self, node: yaml.Node, message: str) -> NoReturn:
        raise located(SpaceError(message), self.label, _line(node))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _parameter(values: dict[str, Any]) -> Parameter:
    """Build a parameter from its keys; an unknown or missing one is an error."""
    kind = values.pop("type", None)
    if kind is None:
        msg = f"`type` is missing. {did_you_mean('', KINDS)}"
        raise SpaceError(msg)
    if not isinstance(kind, str) or kind not in KINDS:
        msg = f"`type` {kind!r} is not known. {did_you_mean(str(kind), KINDS)}"
        raise SpaceError(msg, key="type")
    known = {each.name: each for each in fields(KINDS[kind])}
    for key in [word for word in values if word not in known]:
        msg = f"`{key}` is no key of a {kind}. {did_you_mean(key, [*known, 'type'])}"
        raise SpaceError(msg, key=key)
    for key, each in known.items():
        required = each.default is MISSING and each.default_factory is MISSING
        if required and key not in values:
            msg = f"`{key}` is missing: a {kind} needs it."
            raise SpaceError(msg)
    return KINDS[kind](**values)


def dump(parameters: Mapping[str, Parameter]) -> str:
    """Return the YAML of a space, one parameter a line where it fits."""
    names = {kind: name for name, kind in KINDS.items()}
    spec = {
        name: {"type": names[type(parameter)]} | _changed(parameter)
        for name, parameter in parameters.items()
    }
    text: str = yaml.dump(
        spec,
        Dumper=_Dumper,
        default_flow_style=None,
        sort_keys=False,
        allow_unicode=True,
        width=88,
    )
    return text


def _changed(parameter: Parameter) -> dict[str, Any]:
    """Return the keys that differ from their default, as YAML would hold them."""
    changed: dict[str, Any] = {}
    for each in sorted(fields(parameter), key=lambda each: each.name == "when"):
        value = getattr(parameter, each.name)
        if each.name == "when":
            value = {k: _shortest(wanted) for k, wanted in parameter.conditions.items()}
        if value not in (each.default, {}):
            changed[each.name] = list(value) if isinstance(value, tuple) else value
    return changed


def _shortest(wanted: tuple[Scalar, ...]) -> Any:
    return list(wanted) if len(wanted) > 1 else wanted[0]
