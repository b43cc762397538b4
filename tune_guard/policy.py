"""Which rules watch a trial, on which metric, and what each may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from tune_guard.coercion import to_number
from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.nested_keys import lookup
from tune_guard.observation import Keys
from tune_guard.policy_checks import (
    EVERY_RULE,
    check_actions,
    check_names,
    check_numbers,
    checked_rules,
)
from tune_guard.rules import (
    AmpScaleCollapse,
    Behind,
    Divergence,
    GpuFault,
    GradientExplosion,
    LearningRateFloor,
    NonFinite,
    NoProgress,
    Plateau,
    Relapse,
    SlowStep,
    ThermalThrottle,
)
from tune_guard.rules.base import Mode, Rule
from tune_guard.rules.registry import find_rule

Action = Literal["stop", "warn", "off"]

DEFAULT: tuple[Rule, ...] = (
    NonFinite(),
    AmpScaleCollapse(),
    GradientExplosion(),
    Divergence(),
    NoProgress(),
    Relapse(),
    GpuFault(),
    ThermalThrottle(),
    SlowStep(),
)
"""The rules that are safe without being asked for; see each rule's figures."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a sweep and what they need to know about it.

    Args:
        metric: Key of the objective in the reports; ``a/b`` is found nested.

        mode: ``min`` or ``max``. None only where the host knows the direction
            (an Optuna study): it is never guessed from the metric's name.

        rules: The rules; each id at most once.

        warmup_steps: Steps below this one are warm-up: stability and progress
            rules watch but do not cut. In units of the reported step.

        budget_steps: Steps that a full trial runs, or None when unknown. In
            units of the reported step.

        budget_key: Hyperparameter that holds a trial's own ``budget_steps``, for
            sweeps in which the length of training is searched too.

        keys: Under which keys the other signals are found.

        actions: What each rule may do: ``stop`` (cut), ``warn`` (record only)
            or ``off``, by id of a rule that the policy has; ``*`` stands for all
            others.

        fresh_key: Marker of the evaluation that produced the metric: a value
            counts only when its marker moved. For trainers that repeat the
            last value between evaluations.

        ignore_where: Reports that hold all these values are not judged, such
            as ``{"sanity_checking": True}``.

        holdout: Share of the condemned trials (never by fatal rules) that run
            on, so that the sweep measures its own false kills; 0 to below 1.

    Raises:
        ConfigError: If a value cannot be meant.

    Example:
        >>> policy = Policy.default("val_loss", "min", warmup_steps=5, patience=20)
        >>> policy.rule("plateau").patience
        20
    """

    metric: str
    mode: Mode | None = None
    _: KW_ONLY
    rules: tuple[Rule, ...] = DEFAULT
    warmup_steps: int = 0
    budget_steps: int | None = None
    budget_key: str | None = None
    keys: Keys = field(default_factory=Keys)
    actions: Mapping[str, Action] = field(default_factory=dict)
    fresh_key: str | None = None
    ignore_where: Mapping[str, Any] = field(default_factory=dict)
    holdout: float = 0.0

    def __post_init__(self) -> None:
        check_names(self)
        check_numbers(self)
        set_once = object.__setattr__
        set_once(self, "rules", checked_rules(self.rules))
        check_actions(self.actions, self.rules)
        set_once(self, "metric", self.metric.strip())
        if self.budget_key is not None:
            set_once(self, "budget_key", self.budget_key.strip())
        if self.fresh_key is not None:
            set_once(self, "fresh_key", self.fresh_key.strip())
        for name in ("actions", "ignore_where"):
            set_once(self, name, dict(getattr(self, name)))

    @classmethod
    def default(
        cls,
        metric: str,
        mode: Mode | None = None,
        *,
        warmup_steps: int = 0,
        patience: int | None = None,
        target: float | None = None,
        budget_steps: int | None = None,
        **more: Any,
    ) -> Policy:
        """Return the policy that cuts only what is measured safe.

        Args:
            metric: Key of the objective.

            mode: ``min`` or ``max``.

            warmup_steps: Steps below this one are warm-up.

            patience: Arms the plateau rule: cut after so many evaluations
                without a gain. See :class:`~tune_guard.rules.Plateau` for the
                rate at which that cuts good trials.

            target: Arms the learning-rate floor: cut a trial whose schedule has
                ended short of this value of the metric.

            budget_steps: Steps that a full trial runs.

            more: Further fields of the policy.

        Raises:
            ConfigError: If a value cannot be meant.
            TypeError: If a policy has no such field.

        Example:
            >>> Policy.default("accuracy", "max").warmup_steps
            0
        """
        known = {f.name for f in fields(cls)} | {"patience", "target"}
        for name in sorted(more.keys() - known):
            msg = f"`{name}` is no field of a policy. {did_you_mean(name, known)}"
            raise TypeError(msg)
        rules = list(more.pop("rules", DEFAULT))
        if patience is not None:
            rules.append(Plateau(patience=patience))
        if target is not None:
            rules.append(LearningRateFloor(target=target))
        return cls(
            metric=metric,
            mode=mode,
            rules=tuple(rules),
            warmup_steps=warmup_steps,
            budget_steps=budget_steps,
            **more,
        )

    @classmethod
    def thrifty(cls, metric: str, mode: Mode | None = None, **more: Any) -> Policy:
        """Return the default policy, and the rule that compares trials.

        It saves more, and takes a risk that the default does not: a trial may
        cross late what the leaders showed early. Of 268 recorded sweeps, run one
        trial after another, it saved 14.7% of the reports (the default: 5.5%),
        24.5% on those over hyperparameters (11.9%), and cut 1.0% of the top
        tenth before their own best (95% interval 0.4 to 2.3%; the default 0.2%);
        in other orders of the trials 1.0 to 2.1%. See
        :class:`~tune_guard.rules.Behind`.

        Args:
            metric: Key of the objective.

            mode: ``min`` or ``max``.

            more: What :meth:`default` takes; ``budget_steps``, or ``budget_key``,
                should be among it: without a budget trials are not compared. Of
                an Optuna study it is known from the trials that completed.

        Raises:
            ConfigError: If a value cannot be meant.

        Example:
            >>> policy = Policy.thrifty("accuracy", "max", budget_steps=100)
            >>> policy.rule("behind").min_finished
            3
        """
        rules = (*more.pop("rules", DEFAULT), Behind())
        return cls.default(metric, mode, rules=rules, **more)

    @classmethod
    def from_yaml(cls, source: str | Path) -> Policy:
        """Read a policy from a YAML file, or from text that holds a line break.

        What the file leaves out is that of the default policy. ``rules``, where it
        stands, names all of them, as in Python; ``patience`` and ``target`` add
        theirs.

        Raises:
            ConfigError: If a key or value is wrong; the message names the line
                and the nearest key.

        Example:
            >>> Policy.from_yaml(Policy.default("loss", "min").to_yaml()).mode
            'min'
        """
        from tune_guard.policy_file import read_policy

        return read_policy(source)

    def to_yaml(self) -> str:
        """Write the policy as YAML that :meth:`from_yaml` reads back equal.

        Example:
            >>> policy = Policy.default("loss", "min", patience=20)
            >>> Policy.from_yaml(policy.to_yaml()) == policy
            True
        """
        from tune_guard.policy_file import write_policy

        return write_policy(self)

    def watching(self, rule_id: str) -> Policy:
        """Return the policy with a rule that at least watches, so that it can veto.

        A rule that the policy has keeps its parameters and what it may do; else
        it comes with its defaults and may only warn.

        Raises:
            ConfigError: If no rule has this id, or it needs parameters.

        Example:
            >>> Policy.default("loss", "min").watching("behind").action("behind")
            'warn'
        """
        has = any(rule.id == rule_id for rule in self.rules)
        if has and self.action(rule_id) != "off":
            return self
        rules = self.rules if has else (*self.rules, find_rule(rule_id)())
        return replace(self, rules=rules, actions={**self.actions, rule_id: "warn"})

    def with_mode(self, mode: Mode) -> Policy:
        """Return the policy with the host's direction, unless it has its own."""
        return self if self.mode is not None else replace(self, mode=mode)

    def for_trial(self, params: object) -> Policy:
        """Return the policy with the budget that a trial's hyperparameters name.

        Example:
            >>> policy = Policy.default("loss", "min", budget_key="epochs")
            >>> policy.for_trial({"epochs": 30, "lr": 0.1}).budget_steps
            30
        """
        if self.budget_key is None or not isinstance(params, Mapping):
            return self
        steps = to_number(lookup(params, self.budget_key))
        if steps is None or not 1.0 <= steps < float("inf"):
            return self
        return replace(self, budget_steps=int(steps))

    def checked(self) -> Policy:
        """Return the policy if its mode is known.

        Raises:
            ConfigError: If it is not: a direction is never guessed.
        """
        if self.mode is None:
            msg = (
                f"`mode` must be 'min' or 'max' for the metric `{self.metric}`, but"
                f' got None. Write Policy.default("{self.metric}", "max") if a higher'
                " value is better."
            )
            raise ConfigError(msg)
        return self

    def rule(self, rule_id: str) -> Any:
        """Return the rule of this id.

        Raises:
            ConfigError: If the policy has none.
        """
        for rule in self.rules:
            if rule.id == rule_id:
                return rule
        known = [rule.id for rule in self.rules]
        msg = f"This policy has no rule {rule_id!r}. {did_you_mean(rule_id, known)}"
        raise ConfigError(msg)

    def action(self, rule_id: str) -> str:
        """Return what the rule may do: ``stop``, ``warn`` or ``off``."""
        return self.actions.get(rule_id) or self.actions.get(EVERY_RULE) or "stop"

    def armed_rules(self) -> list[Rule]:
        """Return the rules that are not switched off."""
        return [rule for rule in self.rules if self.action(rule.id) != "off"]

    def extra_keys(self) -> set[str]:
        """Return the keys that rules ask for by name, beside the signals."""
        return {key for rule in self.rules for key in rule.extra_keys()}
