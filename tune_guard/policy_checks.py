"""What a policy's fields must be: every mistake is named at construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.observation import Keys
from tune_guard.rules.base import Rule
from tune_guard.rules.registry import known_rules
from tune_guard.verdict import Blame, Tier

if TYPE_CHECKING:
    from tune_guard.policy import Policy

ACTIONS = ("stop", "warn", "off")
EVERY_RULE = "*"
ARMED_BY = {
    "plateau": "`patience=`",
    "lr_floor": "`target=`",
    "behind": "`Policy.thrifty`",
}
"""What arms a rule that is not in the default policy, beside naming it in `rules`."""


def check_names(policy: Policy) -> None:
    """Check the metric, its direction and the keys of the reports.

    Raises:
        ConfigError: If one cannot be meant.
    """
    if not _is_key(policy.metric):
        refuse("metric", "the key of the objective", policy.metric, "Name one key.")
    if not isinstance(policy.mode, str | None) or policy.mode not in (
        "min",
        "max",
        None,
    ):
        advice = "Say whether a lower or a higher value is better."
        begun = str(policy.mode).strip().lower()[:3]
        if begun in ("min", "max"):
            advice = f"Did you mean {begun!r}?"
        refuse("mode", "'min' or 'max'", policy.mode, advice)
    if not isinstance(policy.keys, Keys):
        advice = "Write Keys(loss='train/nll')."
        refuse("keys", "an instance of Keys", policy.keys, advice)
    if policy.fresh_key is not None and not _is_key(policy.fresh_key):
        advice = "Name the marker that moves with each evaluation, or leave it out."
        refuse("fresh_key", "a key", policy.fresh_key, advice)
    if policy.budget_key is not None and not _is_key(policy.budget_key):
        advice = "Name the hyperparameter that holds the steps of a full trial."
        refuse("budget_key", "a key", policy.budget_key, advice)
    where = policy.ignore_where
    if not isinstance(where, Mapping) or not all(map(_is_key, where)):
        advice = "Write {'sanity_checking': True}."
        refuse("ignore_where", "values by key", where, advice)


def check_numbers(policy: Policy) -> None:
    """Check the counts of steps and the holdout.

    Raises:
        ConfigError: If one cannot be meant.
    """
    warmup, budget, holdout = policy.warmup_steps, policy.budget_steps, policy.holdout
    if not _is_whole(warmup) or warmup < 0:
        refuse("warmup_steps", "a whole number >= 0", warmup, "Use 0 for no warm-up.")
    if budget is not None and (not _is_whole(budget) or budget < 1):
        advice = "Give the steps of a full trial, or None when unknown."
        refuse("budget_steps", "a whole number >= 1", budget, advice)
    is_number = isinstance(holdout, (int, float)) and not isinstance(holdout, bool)
    if not is_number or not 0 <= holdout < 1:
        advice = "0.05 lets 5% of the condemned trials run on."
        refuse("holdout", "a share from 0 to below 1", holdout, advice)


def checked_rules(rules: Any) -> tuple[Rule, ...]:
    """Return the rules as a tuple.

    Raises:
        ConfigError: If they are no rules, one declares itself wrongly, or one
            comes twice.
    """
    advice = "Pass instances, such as [NonFinite(), Plateau(patience=20)]."
    if isinstance(rules, (str, type)) or not isinstance(rules, Iterable):
        refuse("rules", "a list of rules", rules, advice)
    found: tuple[Rule, ...] = tuple(rules)
    for rule in found:
        if not isinstance(rule, Rule):
            refuse("rules", "rules", rule, advice)
        _check_declaration(type(rule))
    ids = [rule.id for rule in found]
    twice = sorted({rule_id for rule_id in ids if ids.count(rule_id) > 1})
    if twice:
        refuse("rules", "different rules", twice, "Keep each rule once.")
    return found


def _check_declaration(kind: type[Rule]) -> None:
    declared = {"id": str, "tier": Tier, "blame": Blame}
    for name, wanted in declared.items():
        value = getattr(kind, name, None)
        if not isinstance(value, wanted):
            msg = (
                f"`rules` hold {kind.__name__}, whose class variable `{name}` must be"
                f" of {wanted.__name__}, but is {value!r}."
            )
            raise ConfigError(msg)


def check_actions(actions: Any, rules: Iterable[Rule]) -> None:
    """Check what the rules may do.

    Raises:
        ConfigError: If a rule or an action is unknown, or the policy does not have
            the rule: only ``off`` is true of it.
    """
    if not isinstance(actions, Mapping):
        advice = "Write {'plateau': 'warn'}."
        refuse("actions", "an action by rule id", actions, advice)
    own = {*(rule.id for rule in rules), EVERY_RULE}
    for rule_id, action in actions.items():
        # Other packages' rules are looked up last: that reads the environment.
        if rule_id not in own and rule_id not in known_rules():
            hint = did_you_mean(rule_id, own | known_rules())
            msg = f"`actions` names no rule: {rule_id!r}. {hint}"
            raise ConfigError(msg)
        if not isinstance(action, str) or action not in ACTIONS:
            name = f"actions[{rule_id!r}]"
            refuse(name, "stop, warn or off", action, "Pick one.")
        if rule_id not in own and action != "off":
            arm = ARMED_BY.get(rule_id, "`rules`")
            msg = (
                f"`actions` names {rule_id!r}, a rule that this policy does not have."
                f" Arm it with {arm}, or leave it out."
            )
            raise ConfigError(msg)


def refuse(name: str, constraint: str, value: object, advice: str) -> NoReturn:
    """Raise a ``ConfigError`` that says what was asked and what came."""
    msg = f"`{name}` must be {constraint}, but got {value!r}. {advice}"
    raise ConfigError(msg)


def _is_key(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
