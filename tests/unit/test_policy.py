from __future__ import annotations

import copy
import math
import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from tune_guard import ConfigError, Keys, Monitor, Policy
from tune_guard.policy import DEFAULT
from tune_guard.rules import NonFinite, Plateau
from tune_guard.rules.base import Rule
from tune_guard.verdict import Blame, Tier


def policy(**fields: Any) -> Policy:
    """Return a policy of a loss that is minimised."""
    return Policy(**{"metric": "loss", "mode": "min", **fields})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("metric", ""),
        ("metric", "  "),
        ("metric", None),
        ("metric", 5),
        ("metric", ["loss"]),
        ("mode", "minimum"),
        ("mode", "MIN"),
        ("mode", 1),
        ("mode", ["min"]),
        ("rules", None),
        ("rules", 5),
        ("rules", "plateau"),
        ("rules", NonFinite),
        ("rules", [NonFinite]),
        ("rules", ["plateau"]),
        ("rules", NonFinite()),
        ("warmup_steps", -1),
        ("warmup_steps", 1.5),
        ("warmup_steps", True),
        ("warmup_steps", "5"),
        ("warmup_steps", None),
        ("warmup_steps", math.nan),
        ("budget_steps", 0),
        ("budget_steps", -5),
        ("budget_steps", 10.5),
        ("budget_steps", True),
        ("budget_steps", math.inf),
        ("keys", None),
        ("keys", {"loss": "nll"}),
        ("actions", None),
        ("actions", "warn"),
        ("actions", ["plateau"]),
        ("actions", {"plateau": "kill"}),
        ("actions", {"plateau": None}),
        ("actions", {"plateau": ["warn"]}),
        ("actions", {5: "warn"}),
        ("fresh_key", ""),
        ("fresh_key", 5),
        ("fresh_key", ["epoch"]),
        ("ignore_where", None),
        ("ignore_where", "sanity"),
        ("ignore_where", ["sanity"]),
        ("ignore_where", {5: True}),
        ("holdout", -0.1),
        ("holdout", 1),
        ("holdout", math.nan),
        ("holdout", True),
        ("holdout", "0.1"),
        ("holdout", None),
    ],
    ids=str,
)
def test_a_value_that_cannot_be_meant_is_refused_by_name(
    field: str, value: Any
) -> None:
    """At construction, naming the field."""
    with pytest.raises(ConfigError, match=f"`{field}"):
        policy(**{field: value})


def test_an_error_says_what_was_asked_and_what_came() -> None:
    """One sentence, and what to do next."""
    with pytest.raises(
        ConfigError, match=r"`warmup_steps` must be .* >= 0, but got -1\. "
    ):
        policy(warmup_steps=-1)


def test_a_config_error_is_a_value_error() -> None:
    """Callers need not import our class to catch it."""
    with pytest.raises(ValueError, match="mode"):
        policy(mode="up")


def test_negative_patience_is_refused() -> None:
    """In the words that the rule has for it."""
    with pytest.raises(ConfigError, match=r"`patience` must be >= 1, but got -3"):
        Policy.default("loss", "min", patience=-3)


def test_the_same_rule_twice_is_refused() -> None:
    """A reason must say which one fired."""
    with pytest.raises(ConfigError, match="plateau"):
        policy(rules=[Plateau(patience=3), Plateau(patience=30)])


def test_an_action_for_an_unknown_rule_names_the_nearest() -> None:
    """A typo would silently leave the rule cutting."""
    with pytest.raises(ConfigError, match="Did you mean `plateau`"):
        policy(actions={"plateu": "warn"})


@pytest.mark.parametrize("action", ["warn", "stop"])
def test_an_action_for_a_rule_that_the_policy_lacks_is_refused(action: Any) -> None:
    """Else it would be taken for armed."""
    with pytest.raises(ConfigError, match=r"'plateau'.*does not have.*`patience=`"):
        policy(actions={"plateau": action})


def test_a_rule_that_the_policy_lacks_may_be_off() -> None:
    """That is true of it."""
    assert policy(rules=[NonFinite()], actions={"plateau": "off"}).actions


@dataclass(frozen=True, slots=True, kw_only=True)
class NoName(Rule):
    """A third-party rule that forgot its id."""

    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTier(Rule):
    """A third-party rule whose tier is a text."""

    id: ClassVar[str] = "no_tier"
    tier: ClassVar[Tier] = "fatal"  # type: ignore[assignment]
    blame: ClassVar[Blame] = Blame.CONFIG


@pytest.mark.parametrize("kind", [NoName, NoTier, Rule])
def test_a_rule_without_id_tier_or_blame_is_refused(kind: type[Rule]) -> None:
    """At construction, and not at the first report of a sweep."""
    with pytest.raises(ConfigError, match=rf"`rules`.*{kind.__name__}"):
        policy(rules=[kind()])


def test_a_policy_is_frozen_and_takes_only_metric_and_mode_by_position() -> None:
    """It is shared by all trials; a long row of positions could not be read."""
    assert Policy("loss", "min").mode == "min"
    with pytest.raises(FrozenInstanceError):
        policy().metric = "acc"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Policy("loss", "min", ())  # type: ignore[misc]


def test_a_policy_does_not_follow_the_callers_dictionaries() -> None:
    """What was checked stays what is used."""
    actions: Any = {"relapse": "warn"}
    ignore = {"phase": "sanity"}
    made = policy(actions=actions, ignore_where=ignore)
    actions["relapse"] = "kill"
    ignore.clear()
    assert made.actions == {"relapse": "warn"}
    assert made.ignore_where == {"phase": "sanity"}


def test_blanks_around_names_do_not_matter() -> None:
    """Nor in the metric, nor in the marker."""
    made = policy(metric=" loss ", fresh_key="epoch ")
    assert (made.metric, made.fresh_key) == ("loss", "epoch")


def test_rules_may_come_from_any_iterable() -> None:
    """They are kept as a tuple."""
    assert policy(rules=iter([NonFinite()])).rules == (NonFinite(),)


def test_a_policy_can_be_pickled_and_copied() -> None:
    """It travels to workers."""
    made = Policy.default("loss", "min", patience=5, actions={"*": "warn"})
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own
    assert copy.deepcopy(made) == made


# -------------------------------------------------------------------- the default


def test_the_default_policy_needs_a_metric_and_a_mode_only() -> None:
    """And holds the rules that are safe unasked."""
    assert Policy.default("loss", "min").rules == DEFAULT


def test_the_default_policy_arms_neither_plateau_nor_floor() -> None:
    """They cut good trials too, and must be asked for."""
    ids = {rule.id for rule in Policy.default("loss", "min").rules}
    assert ids.isdisjoint({"plateau", "lr_floor"})


def test_patience_and_target_arm_one_rule_each() -> None:
    """One word each."""
    made = Policy.default("loss", "min", patience=7, target=0.1, warmup_steps=3)
    assert made.rule("plateau").patience == 7
    assert made.rule("lr_floor").target == 0.1
    assert made.warmup_steps == 3


def test_more_fields_go_through_the_default() -> None:
    """Keys and actions, say."""
    made = Policy.default("loss", "min", keys=Keys(loss="nll"), fresh_key="epoch")
    assert (made.keys.loss, made.fresh_key) == ("nll", "epoch")


def test_an_unknown_field_of_the_default_is_refused() -> None:
    """As any unknown argument is, and the nearest is named."""
    with pytest.raises(TypeError, match=r"patiense.*Did you mean `patience`"):
        Policy.default("loss", "min", patiense=3)
    with pytest.raises(TypeError, match=r"warmup.*Did you mean `warmup_steps`"):
        Policy.default("loss", "min", warmup=3)


# ----------------------------------------------------------------------- the mode


def test_without_a_mode_a_host_may_give_it() -> None:
    """An Optuna study knows its direction."""
    made = Policy.default("val_recall", patience=2)
    assert made.with_mode("max").checked().mode == "max"


@pytest.mark.parametrize(
    ("mode", "meant"), [("maximize", "max"), ("Minimise", "min"), (" max", "max")]
)
def test_a_mode_by_another_name_is_refused_with_its_own(mode: Any, meant: str) -> None:
    """Optuna's words for it are not Ray's."""
    with pytest.raises(ConfigError, match=f"Did you mean '{meant}'"):
        Policy.default("acc", mode)


def test_the_policys_own_mode_wins() -> None:
    """The host's direction may be that of another objective."""
    assert policy(mode="min").with_mode("max").mode == "min"


def test_a_mode_is_never_guessed_from_the_name() -> None:
    """The message names the metric and asks for min or max."""
    with pytest.raises(ConfigError, match=r"'min' or 'max'.*val_recall") as caught:
        Policy.default("val_recall", patience=2).checked()
    assert 'Policy.default("val_recall", "max")' in str(caught.value)


# ------------------------------------------------------------- rules and actions


def test_a_rule_is_found_by_its_id() -> None:
    """And an unknown id names the nearest."""
    made = policy(rules=[Plateau(patience=3)])
    assert made.rule("plateau").patience == 3
    with pytest.raises(ConfigError, match="Did you mean `plateau`"):
        made.rule("plateu")


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        ({}, "stop"),
        ({"plateau": "warn"}, "warn"),
        ({"*": "warn"}, "warn"),
        ({"*": "off", "plateau": "stop"}, "stop"),
        ({"divergence": "off"}, "stop"),
    ],
)
def test_the_nearest_action_counts(actions: Any, action: str) -> None:
    """A rule's own action, else the one for all, else to stop."""
    made = Policy.default("loss", "min", patience=5, actions=actions)
    assert made.action("plateau") == action


def test_rules_that_are_off_are_not_armed() -> None:
    """Nothing of them runs."""
    made = policy(rules=[NonFinite(), Plateau()], actions={"plateau": "off"})
    assert made.armed_rules() == [NonFinite()]


def test_numpy_numbers_in_reports_and_policies_do_not_mix() -> None:
    """A numpy step count is refused with its name rather than half understood."""
    with pytest.raises(ConfigError, match="`warmup_steps`"):
        policy(warmup_steps=np.float64(3))
    assert Monitor(policy(warmup_steps=3)).policy.warmup_steps == 3


# ------------------------------------------------- policies that compare trials


def test_thrifty_is_the_default_and_the_rule_that_compares() -> None:
    """In that order, with what the default takes."""
    policy = Policy.thrifty("loss", "min", warmup_steps=3, patience=20)
    ids = [rule.id for rule in policy.rules]
    assert ids == [*(rule.id for rule in DEFAULT), "behind", "plateau"]
    assert policy.warmup_steps == 3


def test_thrifty_survives_a_policy_file() -> None:
    """Budget, its key and the rule are read back."""
    policy = Policy.thrifty("loss", "min", budget_steps=9, budget_key="epochs")
    assert Policy.from_yaml(policy.to_yaml()) == policy


@pytest.mark.parametrize(
    ("params", "steps"),
    [
        ({"epochs": 30}, 30),
        ({"train": {"epochs": 30}}, 9),
        ({"epochs": "30"}, 30),
        ({"epochs": 0}, 9),
        ({"epochs": float("nan")}, 9),
        ({}, 9),
        (None, 9),
    ],
)
def test_a_trial_may_have_a_budget_of_its_own(params: Any, steps: int) -> None:
    """Where its hyperparameters name a number; else the policy's counts."""
    policy = Policy.default("loss", "min", budget_steps=9, budget_key="epochs")
    assert policy.for_trial(params).budget_steps == steps


@pytest.mark.parametrize("key", ["", " ", 5, ["epochs"]])
def test_a_budget_key_that_is_none_is_refused(key: Any) -> None:
    """By name."""
    with pytest.raises(ConfigError, match="`budget_key` must be a key"):
        Policy.default("loss", "min", budget_key=key)


def test_a_watching_rule_may_only_warn_unless_the_policy_has_it() -> None:
    """The policy's own rule keeps its parameters and what it may do."""
    watching = Policy.default("loss", "min").watching("behind")
    assert watching.action("behind") == "warn"
    thrifty = Policy.thrifty("loss", "min")
    assert thrifty.watching("behind") is thrifty
    off = Policy.thrifty("loss", "min", actions={"behind": "off"}).watching("behind")
    assert off.action("behind") == "warn"
    assert off.rules == thrifty.rules
