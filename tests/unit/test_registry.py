from __future__ import annotations

import importlib
import logging
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tune_guard import ConfigError, Monitor, Policy
from tune_guard.rules.registry import (
    builtin_holds,
    builtin_rules,
    find_hold,
    find_rule,
    known_rules,
)

MODULE = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Tier

if TYPE_CHECKING:
    from decimal import Decimal

    from tune_guard.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class TooHigh(Rule):
    """Stop when the loss is above a level."""

    id: ClassVar[str] = "too_high"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.CONFIG

    level: float = 10.0
    exact: Decimal | None = None

    def start(self, context: Context) -> Detector:
        return _TooHighDetector(self, context)


class _TooHighDetector(Detector):
    __slots__ = ("highest",)

    def __init__(self, rule: Rule, context: Context) -> None:
        super().__init__(rule, context)
        self.highest = 0.0

    def update(self, observation: Observation) -> Finding | None:
        loss = observation.loss
        if loss is None or loss <= self.rule.level:
            return None
        self.highest = max(self.highest, loss)
        return self.finding(
            observation,
            metric=self.context.name_of("loss"),
            value=loss,
            threshold=self.rule.level,
            message="The loss is too high.",
        )


class Renamed(TooHigh):
    id: ClassVar[str] = "another_name"


class NoRule:
    id = "no_rule"


class Nameless(Rule):
    pass


def not_even_a_class() -> None: ...
'''

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that puts a distribution with entry points on the path."""

    def installed(module: str = MODULE, **entry_points: str) -> None:
        (tmp_path / "their_rules.py").write_text(textwrap.dedent(module))
        info = tmp_path / "their_rules-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: their-rules\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        text = "\n".join(["[tune_guard.rules]", *lines, ""])
        (info / "entry_points.txt").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()

    yield installed
    sys.modules.pop("their_rules", None)


def test_another_packages_rule_is_found_by_its_entry_point(install: Install) -> None:
    """The name of the entry point is the rule's id."""
    install(too_high="their_rules:TooHigh")
    assert "too_high" in known_rules()
    assert find_rule("too_high").__name__ == "TooHigh"


def test_another_packages_rule_works_in_a_policy_file(install: Install) -> None:
    """It is read, judged by, written, and may be warned about."""
    install(too_high="their_rules:TooHigh")
    text = (
        "metric: loss\nmode: min\n"
        "rules: [non_finite, {too_high: {level: 5e0}}]\nactions: {too_high: stop}\n"
    )
    policy = Policy.from_yaml(text)
    assert Policy.from_yaml(policy.to_yaml()) == policy
    monitor = Monitor(policy)
    stops = [
        monitor.observe(i, {"loss": x}).stop for i, x in enumerate([1.0, 5.0, 6.0])
    ]
    assert stops == [False, False, True]
    assert (monitor.record().reason, monitor.record().threshold) == ("too_high", 5.0)


def test_known_rules_are_listed_without_loading_their_packages(
    install: Install,
) -> None:
    """Listing rules must not import whatever is installed."""
    install(module="raise SystemExit", too_high="their_rules:TooHigh")
    assert "too_high" in known_rules()
    assert "their_rules" not in sys.modules


def test_a_builtin_rule_cannot_be_taken_over(install: Install) -> None:
    """A package that calls its rule `non_finite` does not replace ours."""
    install(non_finite="their_rules:TooHigh")
    assert find_rule("non_finite").__module__ == "tune_guard.rules.non_finite"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("their_rules:Missing", "cannot be loaded.*Missing"),
        ("no_such_module:TooHigh", "cannot be loaded.*no_such_module"),
        ("their_rules:NoRule", "must be a subclass of Rule"),
        ("their_rules:not_even_a_class", "must be a subclass of Rule"),
        ("their_rules", "must be a subclass of Rule"),
        ("their_rules:Renamed", "must have that id, not 'another_name'"),
        ("their_rules:Nameless", "must have that id, not None"),
    ],
)
def test_an_entry_point_that_is_no_rule_is_named(
    install: Install, target: str, message: str
) -> None:
    """With the entry point, so that one knows which package to mend."""
    install(too_high=target)
    with pytest.raises(ConfigError, match=f"(?s)too_high.*{target}.*{message}"):
        find_rule("too_high")


@pytest.mark.parametrize(
    "line", ["raise ValueError('broken')", "1 +", "import nothing_"]
)
def test_a_package_that_cannot_be_imported_is_named(
    install: Install, line: str
) -> None:
    """Whatever its import raises."""
    install(module=line, too_high="their_rules:TooHigh")
    with pytest.raises(ConfigError, match=r"too_high.*cannot be loaded"):
        find_rule("too_high")


def test_a_wrong_parameter_of_another_packages_rule_is_named(install: Install) -> None:
    """With the nearest name, as for our own."""
    install(too_high="their_rules:TooHigh")
    text = "metric: loss\nmode: min\nrules: [{too_high: {levle: 5}}]\n"
    with pytest.raises(ConfigError, match=r"too_high: `levle`.*`level`"):
        Policy.from_yaml(text)


def test_where_a_rule_comes_from_is_logged(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    """A third party's code is about to judge."""
    install(too_high="their_rules:TooHigh")
    with caplog.at_level(logging.INFO, "tune_guard"):
        find_rule("too_high")
    assert "too_high comes from their_rules:TooHigh" in caplog.text


def test_an_unknown_rule_names_the_nearest() -> None:
    """The error is a ConfigError."""
    with pytest.raises(ConfigError, match="Did you mean `non_finite`"):
        find_rule("nonfinite")


def test_an_unknown_hold_names_the_nearest() -> None:
    """The error is a ConfigError."""
    with pytest.raises(ConfigError, match="Did you mean `not_learned`"):
        find_hold("not_learnt")


def test_every_builtin_is_found_by_its_own_id() -> None:
    """Rules and holds, each under one id."""
    assert all(find_rule(name).id == name for name in builtin_rules())
    assert all(find_hold(name).id == name for name in builtin_holds())
    assert len(builtin_rules()) >= 11
