"""From a case's generic ``guard_config`` to a policy of this library.

A case names triggers only, so every hold of the library is off. An option that
has no counterpart here is noted and printed, never dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cases.staging import NotStagedError
from tune_guard import Keys, Policy
from tune_guard.rules import (
    AmpScaleCollapse,
    Divergence,
    GpuFault,
    GradientExplosion,
    LearningRateFloor,
    NonFinite,
    Plateau,
    SlowStep,
    ThermalThrottle,
)
from tune_guard.rules.base import Rule

_TELEMETRY = {
    "gpu_reasons": ("reasons", "clocks_event_reasons", "throttle_reasons"),
    "gpu_temperature_celsius": ("temp", "temperature", "temperature_celsius"),
    "gpu_clock_mhz": ("sm_clock", "clock_mhz"),
    "gpu_xid": ("xid",),
    "gpu_lost": ("lost",),
    "gpu_ecc_uncorrected": ("ecc_uncorrected", "ecc_errors"),
}
"""Names that rows have for it: in any folder, with ``gpu_`` before them or without."""

_NO_FACTOR = 1e18
_DIRECTIONS = {
    **dict.fromkeys(("min", "minimize", "minimise", "lower_is_better"), "min"),
    **dict.fromkeys(("max", "maximize", "maximise", "higher_is_better"), "max"),
}
_NORM = re.compile(
    r"(^|[^a-z])((g|grads?|gradients?|total)[^a-z]?)?norm($|[^a-z])"
    r"|(^|/)grad(ient)?s?($|/)"
)
_RATE = re.compile(r"(per_|/)s(ec(ond)?)?$|(^|[^a-z])(fps|throughput|speed)($|[^a-z])")
_CONTEXT = frozenset(
    {"any", "alert", "comment", "deciding_rank", "mode_of_use", "note", "why"}
)
"""What a config says about its setting; it sets nothing of a policy."""


@dataclass
class Plan:
    """What a config comes to.

    Args:
        fields: Arguments of the policy.

        rules: Its rules by id.

        keys: Under which keys of the rows the signals are found.

        notes: What of the config has no counterpart.

        metrics: Keys that could be the objective, the likeliest first.

        context: What the config says about its setting.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)

    def policy(self) -> Policy:
        """Build the policy; it raises what the library raises."""
        metric = self.fields.get("metric") or next(iter(self.metrics), "loss")
        fields = {**self.fields, "metric": metric, "rules": tuple(self.rules.values())}
        return Policy(keys=Keys(**self.keys), **fields)

    def read_telemetry_of(self, names: Iterable[str]) -> None:
        """Find telemetry under the names that the rows have for it."""
        for name in names:
            last = re.split(r"[/.]", name.removesuffix(".active"))[-1]
            last = last.removeprefix("gpu_").replace("clocks_throttle", "throttle")
            for signal, aliases in _TELEMETRY.items():
                if last in aliases:
                    self.keys.setdefault(signal, name)

    def add(self, rule: Rule) -> None:
        """Take in a rule."""
        if rule.id in self.rules:
            self.notes.append(f"second {rule.id}")
        self.rules[rule.id] = rule

    def set(self, name: str, value: Any) -> None:
        """Set a field of the policy, once."""
        if value is None:
            return
        if self.fields.setdefault(name, value) != value:
            self.notes.append(f"second {name} {value!r}")

    def act(self, rule: str, action: Any) -> None:
        """Set what a rule that triggers does, once."""
        actions = self.fields.setdefault("actions", {})
        if actions.setdefault(rule, action) != action:
            self.notes.append(f"second action {action!r} for {rule}")


class Options:
    """The options of one trigger: what nobody takes is noted."""

    def __init__(self, plan: Plan, trigger: str, options: Any) -> None:
        self._plan, self._trigger = plan, trigger
        self._left = dict(options) if isinstance(options, Mapping) else {}

    def take(self, *names: str) -> Any:
        """Return the first of several options that is given, or None."""
        found = [self._left.pop(name) for name in names if name in self._left]
        return next((value for value in found if value is not None), None)

    def some(self, **names: tuple[str, ...]) -> dict[str, Any]:
        """Return the options that are given, under our names."""
        taken = {name: self.take(name, *others) for name, others in names.items()}
        return {name: value for name, value in taken.items() if value is not None}

    def common(self) -> None:
        """Take what belongs to the policy as a whole."""
        plan = self._plan
        warmup = ("warmup_steps", "warmup", "warmup_epochs", "start_from_step")
        plan.set("warmup_steps", self.take(*warmup, "start_from_epoch"))
        plan.set("fresh_key", self.take("fresh_key", "fresh", "marker"))
        plan.set("ignore_where", self.take("ignore_where"))
        plan.set("budget_steps", self.take("budget_steps", "max_steps"))
        unit = str(self.take("warmup_unit") or "step")
        if not any(word in unit for word in ("step", "iteration", "epoch")):
            plan.notes.append(f"unknown warmup_unit {unit!r}")
        baseline = str(self.take("baseline") or "median")
        if "median" not in baseline and "robust" not in baseline:
            plan.notes.append(f"unknown baseline {baseline!r}")

    def end(self) -> None:
        """Note every option that nobody took."""
        self.common()
        for name, value in self._left.items():
            if name not in _CONTEXT:
                self._plan.notes.append(
                    f"unknown option {self._trigger}.{name}={value!r}"
                )


# --------------------------------------------------------------- the triggers


def _is_norm(key: str) -> bool:
    """Whether a key is that of the gradient norm, by its name."""
    return _NORM.search(key) is not None and not key.endswith("loss")


def _plateau(plan: Plan, options: Options) -> None:
    metric = options.take("metric", "key", "monitor")
    plan.metrics.insert(0, metric or "loss")
    plan.set("mode", _direction(options.take("mode", "direction")))
    params = options.some(patience=("consecutive",), min_delta=("threshold", "delta"))
    kind = options.take("min_delta_mode", "threshold_mode", "delta_mode", "relative")
    if kind is not None:
        named = {"rel": "relative", "abs": "absolute", True: "relative"}
        params["min_delta_mode"] = named.get(kind, kind or "absolute")
    plan.add(Plateau(holds=(), **params))


def _spike(plan: Plan, options: Options) -> None:
    """Divergence of a loss, or explosion of a gradient norm: by what is watched."""
    metric = options.take("metric", "key", "monitor")
    if metric is not None and not _is_norm(metric):
        return _divergence(plan, options, metric)
    return _explosion(plan, options, metric)


def _divergence(plan: Plan, options: Options, metric: str | None = None) -> None:
    metric = metric or options.take("metric", "key", "monitor")
    if metric is not None and _is_norm(metric):
        return _explosion(plan, options, metric)
    plan.metrics.append(metric or "loss")
    direction = _direction(options.take("mode", "direction"))
    if direction not in (None, "min"):
        plan.notes.append(f"divergence upwards only: direction {direction!r}")
    params = _windowed(options, Divergence())
    params |= options.some(consecutive=("patience", "k", "n"))
    plan.add(Divergence(metric=metric, start_ratio=0.0, holds=(), **params))
    return None


def _explosion(plan: Plan, options: Options, metric: str | None = None) -> None:
    plan.keys["grad_norm"] = metric or options.take("key", "metric") or "grad_norm"
    params = options.some(max_norm=("limit", "threshold"), k=(), n=())
    given = options.take("factor", "ratio")
    if given is None and "max_norm" in params:
        given = _NO_FACTOR
    if given is not None:
        params["factor"] = given
    in_row = options.take("consecutive", "patience")
    if in_row is not None:
        params |= {"k": in_row, "n": in_row}
    elif "k" not in params and "max_norm" in params:
        params |= {"k": 1, "n": 1}
    params |= _windowed(options, GradientExplosion())
    plan.add(GradientExplosion(holds=(), **params))


def _windowed(options: Options, usual: Any) -> dict[str, Any]:
    """Take the window of a baseline; it must hold what is asked of it at least."""
    params = options.some(
        factor=("ratio",), window=("window_size",), min_history=("min_samples",)
    )
    history = params.get("min_history", usual.min_history)
    if "min_history" not in params and "window" in params:
        params["min_history"] = min(history, params["window"])
    elif params.get("window", usual.window) < history:
        params["window"] = history
    return params


def _throughput(plan: Plan, options: Options) -> None:
    key = options.take("key", "metric") or "step_time"
    if _RATE.search(key):
        msg = f"a rule on a rate, where {key} is no time"
        raise NotStagedError(msg)
    plan.keys["step_time_s"] = key
    params = _windowed(options, SlowStep())
    plan.add(SlowStep(**params, **options.some(consecutive=("patience",))))


def _thermal(plan: Plan, options: Options) -> None:
    key = options.take("key", "metric", "reasons_key")
    if key is not None:
        plan.keys["gpu_reasons"] = key
    params = options.some(consecutive=("patience", "k", "samples"), window_s=())
    plan.add(ThermalThrottle(holds=(), **params))


def _gpu_fault(plan: Plan, options: Options) -> None:
    xids = options.take("xids", "fatal_xids", "xid")
    xids = [xids] if isinstance(xids, int) else xids
    params = {} if xids is None else {"xids": tuple(xids)}
    plan.add(GpuFault(**params))


def _lr_floor(plan: Plan, options: Options) -> None:
    plan.keys["lr"] = options.take("key", "lr_key") or "lr"
    metric = options.take("metric")
    if metric is not None:
        plan.metrics.append(metric)
    plan.set("mode", _direction(options.take("mode", "direction")))
    params = options.some(
        floor=("min_lr", "lr_floor", "threshold"),
        consecutive=("patience", "k"),
        target=(),
    )
    plan.add(LearningRateFloor(holds=(), **params))


def _non_finite(plan: Plan, options: Options) -> None:
    metrics = options.take("metrics", "metric", "keys", "key")
    metrics = [metrics] if isinstance(metrics, str) else metrics
    metrics = None if metrics in (["all"], ["*"]) else metrics
    params = options.some(consecutive=("patience", "n", "k", "consecutive_limit"))
    norm = next(filter(_is_norm, metrics or ()), None)
    if norm is not None:
        plan.keys["grad_norm"] = norm
    if metrics is not None:
        plan.metrics += [name for name in metrics if not _is_norm(name)]
        watched = ["grad_norm" if name == norm else name for name in metrics]
        params["metrics"] = tuple(watched)
    if "loss" in (metrics or ()):
        plan.keys["loss"] = "loss"
    off = {"reward_gap": 0, "norm_alone": 0, "skipped_losses": 0}
    plan.add(NonFinite(**params, **off))


def _amp(plan: Plan, options: Options) -> None:
    usual = Keys()
    scale = options.take("loss_scale", "scale", "scale_key")
    plan.keys["amp_scale"] = scale or usual.amp_scale
    skipped = options.take("skipped", "skipped_key", "step_skipped", "overflow")
    plan.keys["step_skipped"] = skipped or usual.step_skipped
    params = options.some(
        consecutive=(
            *("overflow_consecutive_limit", "consecutive_overflow_limit"),
            *("consecutive_limit", "overflow_limit", "patience"),
        )
    )
    params["min_scale"] = options.take("min_scale", "min_loss_scale", "floor") or 0.0
    plan.add(AmpScaleCollapse(**params))


_TRIGGERS: dict[str, Callable[[Plan, Options], None]] = {
    "plateau": _plateau,
    "early_stopping": _plateau,
    "no_improvement": _plateau,
    "stagnation": _plateau,
    "divergence": _divergence,
    "loss_divergence": _divergence,
    "loss_spike": _divergence,
    "spike": _spike,
    "explosion": _spike,
    "grad_explosion": _explosion,
    "gradient_explosion": _explosion,
    "exploding_gradients": _explosion,
    "gradient_spike": _explosion,
    "throughput_collapse": _throughput,
    "throughput": _throughput,
    "slow_step": _throughput,
    "slowdown": _throughput,
    "gpu_thermal": _thermal,
    "thermal": _thermal,
    "thermal_throttle": _thermal,
    "gpu_throttle": _thermal,
    "gpu_fault": _gpu_fault,
    "gpu_xid": _gpu_fault,
    "gpu_ecc": _gpu_fault,
    "gpu_lost": _gpu_fault,
    "on_gpu_lost": _gpu_fault,
    "lr_floor": _lr_floor,
    "learning_rate_floor": _lr_floor,
    "non_finite": _non_finite,
    "nonfinite": _non_finite,
    "nan": _non_finite,
    "nan_loss": _non_finite,
    "amp": _amp,
    "amp_scale_collapse": _amp,
    "loss_scale": _amp,
}


def plan_of(config: Mapping[str, Any]) -> Plan:
    """Return the plan of a config; the library's own errors come through."""
    plan = Plan(keys={"step_skipped": (), "amp_scale": ()})
    plan.context = {name: config[name] for name in _CONTEXT & config.keys()}
    for name, options in config.items():
        if name in _TRIGGERS and not _is_silent(options):
            _take_trigger(plan, name, options)
    rest = {k: v for k, v in config.items() if k not in _TRIGGERS and k not in _CONTEXT}
    _policy_wide(plan, Options(plan, "guard_config", rest))
    return plan


def _take_trigger(plan: Plan, name: str, options: Any) -> None:
    """Take in a trigger and what it is to do: stop or, where it says so, warn."""
    if options is not True and not isinstance(options, (Mapping, str)):
        msg = f"a meaning of {name}: {options!r}"
        raise NotStagedError(msg)
    known, given = set(plan.rules), Options(plan, name, options)
    _TRIGGERS[name](plan, given)
    given.end()
    for rule in plan.rules.keys() - known:
        if options == "warn":
            plan.act(rule, "warn")
        elif isinstance(options, str) and options != "stop":
            plan.notes.append(f"unknown value of {name}: {options!r}")


def _is_silent(options: Any) -> bool:
    # 0 equals False, but nobody knows what it means.
    return options is False or options in (None, "off", "continue", "ignore")


def _direction(given: Any) -> Any:
    """Return our word for a direction; what is none is left to the library."""
    return _DIRECTIONS.get(given.lower(), given) if isinstance(given, str) else given


def _policy_wide(plan: Plan, options: Options) -> None:
    plan.set("metric", options.take("metric"))
    said = ("mode", "direction", "host_direction", "host_mode", "study_direction")
    direction = options.take(*said)
    if "mode" not in plan.fields:
        plan.set("mode", _direction(direction))
    if "plateau" not in plan.rules:
        plan.fields.setdefault("mode", "min")
    actions = options.take("actions")
    if isinstance(actions, Mapping):
        for rule, action in actions.items():
            plan.act(rule, action)
    else:
        plan.set("actions", actions)
    options.end()


REASONS = {
    "amp": "amp_scale_collapse",
    "amp_overflow": "amp_scale_collapse",
    "early_stopping": "plateau",
    "exploding_gradients": "gradient_explosion",
    "explosion": "gradient_explosion",
    "grad_explosion": "gradient_explosion",
    "gradient_spike": "gradient_explosion",
    "gpu_ecc": "gpu_fault",
    "gpu_lost": "gpu_fault",
    "gpu_throttle": "thermal_throttle",
    "gpu_thermal": "thermal_throttle",
    "gpu_xid": "gpu_fault",
    "learning_rate_floor": "lr_floor",
    "loss_divergence": "divergence",
    "loss_scale": "amp_scale_collapse",
    "loss_scale_collapse": "amp_scale_collapse",
    "loss_spike": "divergence",
    "nan": "non_finite",
    "nan_loss": "non_finite",
    "no_improvement": "plateau",
    "nonfinite": "non_finite",
    "slowdown": "slow_step",
    "spike": "divergence",
    "stagnation": "plateau",
    "thermal": "thermal_throttle",
    "throughput": "slow_step",
    "throughput_collapse": "slow_step",
}
"""The cases' generic reasons, under our rules' ids where they differ."""
