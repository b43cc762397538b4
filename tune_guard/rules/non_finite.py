"""NaN and infinities: the trial is dead, unless it only looks so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite
from operator import attrgetter
from typing import ClassVar

from tune_guard.exceptions import ConfigError
from tune_guard.observation import SIGNALS, Observation
from tune_guard.rules.base import Context, Detector, Rule, portion
from tune_guard.verdict import Blame, Finding, Tier

_STREAMS = ("loss", "metric", "grad_norm")


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite(Rule):
    """Stop when a loss, the metric or the gradient norm is NaN or infinite.

    Every reported key that is named like a loss is watched, once it was finite.
    A negative norm counts too. Fires at the ``consecutive``-th bad reading in a
    row of one stream; a finite reading starts the count anew. It has no
    warm-up. A gradient norm of a step that the gradient scaler skipped is an
    overflow and not counted: the weights were not touched.

    Three things look like it and are not; each is a parameter, and 0 switches
    its hold off:

    - a reward (mode ``max``) is NaN until its first episode ends, and has gaps;
    - a non-finite norm beside a finite loss that is not exactly 0.0: poisoned
      weights show in the next loss. (An exact 0.0 is what a trainer that
      filters NaN logs, and no excuse.)
    - a loss that overflowed in a step that the scaler skipped.

    Args:
        consecutive: Bad readings in a row that stop the trial.

        metrics: Names of signals or keys to watch; None for the losses, the
            metric and ``grad_norm``.

        reward_gap: Bad readings in a row that a maximised metric may have
            after its first finite one; before that, any number.

        norm_alone: Bad norms in a row that a finite loss excuses.

        skipped_losses: Bad losses in a row that skipped steps excuse.

    Raises:
        ConfigError: If a count is negative, or ``consecutive`` is below 1.

    Source: of 134 recorded trials whose loss went non-finite none recovered; of
        236 reward trials with NaN, gaps were at most 8 readings long; the one
        gradient norm that recovered did so after 16 (5,860 recorded trials,
        ``tune-guard replay``). The defaults stay clear of these.

    Example:
        >>> from tune_guard import Monitor, Policy
        >>> monitor = Monitor(Policy(metric="loss", mode="min", rules=[NonFinite()]))
        >>> [monitor.observe(i, {"loss": x}).stop for i, x in enumerate([1.0, "NaN"])]
        [False, True]
    """

    id: ClassVar[str] = "non_finite"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.CONFIG

    consecutive: int = 1
    metrics: tuple[str, ...] | None = None
    reward_gap: int = 20
    norm_alone: int = 32
    skipped_losses: int = 3

    def __post_init__(self) -> None:
        self.require_count("consecutive", 1, "1 stops at the first bad reading.")
        for name in ("reward_gap", "norm_alone", "skipped_losses"):
            self.require_count(name, 0, "0 switches the hold off.")
        if self.metrics is None:
            return
        listed = isinstance(self.metrics, (tuple, list)) and len(self.metrics) > 0
        if not listed or not all(isinstance(m, str) and m for m in self.metrics):
            msg = (
                f"non_finite: `metrics` must be a list of keys, but got"
                f" {self.metrics!r}. Leave it out for loss, metric and grad_norm."
            )
            raise ConfigError(msg)
        object.__setattr__(self, "metrics", tuple(self.metrics))

    def extra_keys(self) -> tuple[str, ...]:
        """Return the keys that are no signals of their own."""
        known = {*SIGNALS, "metric"}
        return tuple(name for name in self.metrics or () if name not in known)

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        return _NonFiniteDetector(self, context)


class _NonFiniteDetector(Detector):
    __slots__ = ("_names", "_read", "bad_in_row", "last_finite")

    def __init__(self, rule: NonFinite, context: Context) -> None:
        super().__init__(rule, context)
        self._names = rule.metrics or _STREAMS
        self._read = attrgetter(*_STREAMS) if rule.metrics is None else None
        self.bad_in_row: dict[str, int] = {}
        self.last_finite: dict[str, float] = {}

    def update(self, observation: Observation) -> Finding | None:
        if self._read is None:
            named = [(name, observation.get(name)) for name in self._names]
            return self._judge(named, observation)
        loss, metric, norm = self._read(observation)
        if (
            (loss is None or isfinite(loss))
            and (metric is None or isfinite(metric))
            and (norm is None or 0.0 <= norm < inf)
            and not self.bad_in_row
            and not observation.losses
        ):
            self._keep(loss, metric, norm)
            return None
        streams = zip(_STREAMS, (loss, metric, norm), strict=True)
        return self._judge([*streams, *observation.losses], observation)

    def _keep(
        self, loss: float | None, metric: float | None, norm: float | None
    ) -> None:
        """Keep what was seen last: nearly every report comes here, hence unrolled."""
        last = self.last_finite
        if loss is not None:
            last["loss"] = loss
        if metric is not None:
            last["metric"] = metric
        if norm is not None:
            last["grad_norm"] = norm

    def _judge(
        self, streams: Iterable[tuple[str, float | None]], observation: Observation
    ) -> Finding | None:
        worst: Finding | None = None
        for name, value in streams:
            if value is None:
                continue
            if isfinite(value) and not (value < 0.0 and name == "grad_norm"):
                self.last_finite[name] = value
                self.bad_in_row.pop(name, None)
            else:
                found = self._bad(name, value, observation)
                if found is not None and (worst is None or found.level > worst.level):
                    worst = found
        return worst

    def margin(self) -> float | None:
        return portion(max(self.bad_in_row.values(), default=0), self.rule.consecutive)

    def _bad(self, name: str, value: float, observation: Observation) -> Finding | None:
        if name == "grad_norm" and observation.step_skipped:
            return None
        if self._never_had_a_value(name):
            return None
        count = self.bad_in_row[name] = self.bad_in_row.get(name, 0) + 1
        if count < self.rule.consecutive:
            return None
        key = self.context.name_of(name)
        last = self.last_finite.get(name)
        before = "never finite before" if last is None else f"last finite {last:.6g}"
        return self.finding(
            observation,
            metric=key,
            value=value,
            threshold=None,
            message=(
                f"{key} = {value} at step {observation.step} ({count} in a row;"
                f" {before}). Lower the learning rate, clip gradients, or look for a"
                " division by zero or a log of zero."
            ),
            holds=self._holds(name, count, observation),
        )

    def _never_had_a_value(self, name: str) -> bool:
        """Whether a reward, or a loss beside the main one, has no value yet.

        A reward is NaN until its first episode ends, and trainers write NaN for
        a loss that they do not evaluate: there is nothing to judge.
        """
        if name in self.last_finite or self.rule.metrics is not None:
            return False
        if name == "metric":
            return self.context.mode == "max" and self.rule.reward_gap > 0
        return name not in _STREAMS

    def _holds(
        self, name: str, count: int, observation: Observation
    ) -> tuple[str, ...]:
        rule = self.rule
        if name == "metric" and self.context.mode == "max":
            return ("reward_gap",) if count <= rule.reward_gap else ()
        if name == "grad_norm":
            excused = count <= rule.norm_alone and self._loss_is_sound(observation)
            return ("norm_alone",) if excused else ()
        if observation.step_skipped and count <= rule.skipped_losses:
            return ("skipped_step",)
        return ()

    def _loss_is_sound(self, observation: Observation) -> bool:
        loss = observation.loss
        if loss is None and self.context.mode == "min":
            loss = observation.metric
        return loss is not None and isfinite(loss) and loss != 0.0
