"""From a case's generic ``guard_config`` to a policy of this library.

A case names triggers only, so every hold of the library is off. An option that
has no counterpart here is noted and printed, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
    "gpu_reasons": ("gpu_reasons", "clocks_event_reasons", "throttle_reasons"),
    "gpu_temperature_celsius": ("gpu_temp", "gpu_temperature_celsius", "temperature"),
    "gpu_clock_mhz": ("sm_clock", "gpu_clock_mhz"),
    "gpu_xid": ("gpu_xid", "xid"),
    "gpu_lost": ("gpu_lost",),
    "gpu_ecc_uncorrected": ("gpu_ecc_uncorrected", "ecc_uncorrected", "ecc_errors"),
}
_NO_FACTOR = 1e18
_DIRECTIONS = {"minimize": "min", "maximize": "max", "min": "min", "max": "max"}
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
            for signal, aliases in _TELEMETRY.items():
                if name in aliases:
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


class Options:
    """The options of one trigger: what nobody takes is noted."""

    def __init__(self, plan: Plan, trigger: str, options: Any) -> None:
        self._plan, self._trigger = plan, trigger
        self._left = dict(options) if isinstance(options, Mapping) else {}
        if not isinstance(options, Mapping) and options not in (True, "stop", None):
            plan.notes.append(f"unknown value of {trigger}: {options!r}")

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
        plan.set("warmup_steps", self.take("warmup_steps", "warmup", "start_from_step"))
        plan.set("fresh_key", self.take("fresh_key", "fresh", "marker"))
        plan.set("ignore_where", self.take("ignore_where"))
        plan.set("budget_steps", self.take("budget_steps", "max_steps"))
        unit = str(self.take("warmup_unit") or "step")
        if not any(word in unit for word in ("step", "iteration", "epoch")):
            plan.notes.append(f"unknown warmup_unit {unit!r}")
        baseline = str(self.take("baseline") or "median")
        if "median" not in baseline:
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
    return "grad" in key or "norm" in key


def _plateau(plan: Plan, options: Options) -> None:
    metric, mode = options.take("metric", "key", "monitor"), options.take("mode")
    plan.metrics.insert(0, metric or "loss")
    plan.set("mode", _DIRECTIONS.get(mode, mode))
    params = options.some(patience=("consecutive",), min_delta=("threshold", "delta"))
    kind = options.take("min_delta_mode", "threshold_mode", "delta_mode")
    if kind is not None:
        named = {"rel": "relative", "abs": "absolute"}
        params["min_delta_mode"] = named.get(kind, kind)
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
    options.take("mode")
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
    plan.keys["step_time_s"] = options.take("key", "metric") or "step_time"
    params = _windowed(options, SlowStep())
    plan.add(SlowStep(**params, **options.some(consecutive=("patience",))))


def _thermal(plan: Plan, options: Options) -> None:
    key = options.take("key", "metric", "reasons_key")
    if key is not None:
        plan.keys["gpu_reasons"] = key
    params = options.some(consecutive=("patience", "k"), window_s=())
    plan.add(ThermalThrottle(holds=(), **params))


def _gpu_fault(plan: Plan, options: Options) -> None:
    xids = options.take("xids", "fatal_xids", "xid")
    params = {} if xids is None else {"xids": tuple(xids)}
    plan.add(GpuFault(**params))


def _lr_floor(plan: Plan, options: Options) -> None:
    plan.keys["lr"] = options.take("key", "lr_key") or "lr"
    metric, mode = options.take("metric"), options.take("mode")
    if metric is not None:
        plan.metrics.append(metric)
    plan.set("mode", _DIRECTIONS.get(mode, mode))
    params = options.some(
        floor=("min_lr", "lr_floor"), consecutive=("patience", "k"), target=()
    )
    plan.add(LearningRateFloor(holds=(), **params))


def _non_finite(plan: Plan, options: Options) -> None:
    metrics = options.take("metrics", "metric", "keys", "key")
    metrics = [metrics] if isinstance(metrics, str) else metrics
    params = options.some(consecutive=("patience", "n", "k"))
    for name in metrics or ():
        if _is_norm(name):
            plan.keys["grad_norm"] = name
        elif name == "loss":
            plan.keys["loss"] = name
            plan.metrics.append(name)
        else:
            plan.metrics.append(name)
    if metrics is not None:
        watched = ["grad_norm" if _is_norm(name) else name for name in metrics]
        params["metrics"] = tuple(watched)
    off = {"reward_gap": 0, "norm_alone": 0, "skipped_losses": 0}
    plan.add(NonFinite(**params, **off))


def _amp(plan: Plan, options: Options) -> None:
    plan.keys["amp_scale"] = options.take("loss_scale", "scale", "scale_key") or ()
    plan.keys["step_skipped"] = options.take("skipped", "skipped_key") or ()
    limit = ("consecutive", "consecutive_limit", "patience")
    params = options.some(consecutive=("overflow_consecutive_limit", *limit))
    params["min_scale"] = options.take("min_scale", "min_loss_scale", "floor") or 0.0
    plan.add(AmpScaleCollapse(**params))


_TRIGGERS: dict[str, Callable[[Plan, Options], None]] = {
    "plateau": _plateau,
    "early_stopping": _plateau,
    "no_improvement": _plateau,
    "divergence": _divergence,
    "loss_spike": _divergence,
    "spike": _spike,
    "explosion": _spike,
    "grad_explosion": _explosion,
    "gradient_explosion": _explosion,
    "exploding_gradients": _explosion,
    "throughput_collapse": _throughput,
    "throughput": _throughput,
    "slow_step": _throughput,
    "gpu_thermal": _thermal,
    "thermal": _thermal,
    "thermal_throttle": _thermal,
    "gpu_fault": _gpu_fault,
    "gpu_xid": _gpu_fault,
    "gpu_ecc": _gpu_fault,
    "on_gpu_lost": _gpu_fault,
    "lr_floor": _lr_floor,
    "learning_rate_floor": _lr_floor,
    "non_finite": _non_finite,
    "nonfinite": _non_finite,
    "nan": _non_finite,
    "amp": _amp,
    "amp_scale_collapse": _amp,
    "loss_scale": _amp,
}


def plan_of(config: Mapping[str, Any]) -> Plan:
    """Return the plan of a config; the library's own errors come through."""
    plan = Plan(keys={"step_skipped": (), "amp_scale": ()})
    plan.context = {name: config[name] for name in _CONTEXT & config.keys()}
    for name, options in config.items():
        trigger = _TRIGGERS.get(name)
        if trigger is not None:
            given = Options(plan, name, options)
            trigger(plan, given)
            given.end()
    rest = {k: v for k, v in config.items() if k not in _TRIGGERS and k not in _CONTEXT}
    _policy_wide(plan, Options(plan, "guard_config", rest))
    return plan


def _policy_wide(plan: Plan, options: Options) -> None:
    plan.set("metric", options.take("metric"))
    direction = options.take("mode", "host_direction", "direction")
    if "mode" not in plan.fields:
        plan.set("mode", _DIRECTIONS.get(direction, direction))
    if "plateau" not in plan.rules:
        plan.fields.setdefault("mode", "min")
    plan.set("actions", options.take("actions"))
    options.end()


REASONS = {
    "amp": "amp_scale_collapse",
    "amp_overflow": "amp_scale_collapse",
    "explosion": "gradient_explosion",
    "grad_explosion": "gradient_explosion",
    "gpu_ecc": "gpu_fault",
    "gpu_lost": "gpu_fault",
    "gpu_thermal": "thermal_throttle",
    "gpu_xid": "gpu_fault",
    "loss_scale_collapse": "amp_scale_collapse",
    "nan": "non_finite",
    "spike": "divergence",
    "thermal": "thermal_throttle",
    "throughput_collapse": "slow_step",
}
"""The cases' generic reasons, under our rules' ids where they differ."""
