"""Mixed precision that cannot find a usable loss scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule, portion
from tune_guard.verdict import Blame, Finding, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class AmpScaleCollapse(Rule):
    """Stop when the gradient scaler skips step after step, or its scale runs out.

    Single skipped steps, at the start and about every 2,000 steps, are how
    dynamic loss scaling works; only a run of them, or a scale under
    ``min_scale``, says that no scale fits. Needs ``step_skipped`` or
    ``amp_scale`` in the reports, one report per optimizer step; without them
    the rule is inactive.

    Args:
        consecutive: Skipped steps in a row that stop the trial.

        min_scale: Loss scale below which the trial stops; 0 for none.

    Raises:
        ConfigError: If ``consecutive`` is below 1 or ``min_scale`` negative.

    Source: DeepSpeed gives up at scale 1, fairseq at 1e-4; from PyTorch's first
        scale, 65536, sixteen halvings lead to 1, and twenty leave room.

    Example:
        >>> AmpScaleCollapse(consecutive=10).min_scale
        1.0
    """

    id: ClassVar[str] = "amp_scale_collapse"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.CONFIG
    needs: ClassVar[tuple[str, ...]] = ("step_skipped", "amp_scale")
    rare: ClassVar[bool] = True

    consecutive: int = 20
    min_scale: float = 1.0

    def __post_init__(self) -> None:
        self.require_count("consecutive", 1, "20 is the default.")
        self.require_number("min_scale", 0.0, "0 switches the limit off.")

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        return _AmpDetector(self, context)


class _AmpDetector(Detector):
    __slots__ = ("skipped_in_row",)

    def __init__(self, rule: AmpScaleCollapse, context: Context) -> None:
        super().__init__(rule, context)
        self.skipped_in_row = 0

    def update(self, observation: Observation) -> Finding | None:
        skipped, scale = observation.step_skipped, observation.amp_scale
        if skipped is None and scale is None:
            return None
        if skipped is not None:
            self.skipped_in_row = self.skipped_in_row + 1 if skipped else 0
        rule = self.rule
        if scale is not None and scale < rule.min_scale:
            return self._found(
                observation,
                self.context.name_of("amp_scale"),
                scale,
                rule.min_scale,
                f"the loss scale fell to {scale:.6g}, below {rule.min_scale:.6g}",
            )
        if self.skipped_in_row >= rule.consecutive:
            return self._found(
                observation,
                self.context.name_of("step_skipped"),
                float(self.skipped_in_row),
                float(rule.consecutive),
                f"the gradient scaler skipped {self.skipped_in_row} steps in a row",
            )
        return None

    def margin(self) -> float | None:
        return portion(self.skipped_in_row, self.rule.consecutive)

    def _found(
        self, observation: Observation, key: str, value: float, limit: float, seen: str
    ) -> Finding:
        return self.finding(
            observation,
            metric=key,
            value=value,
            threshold=limit,
            message=(
                f"At step {observation.step} {seen}: gradients overflow at every"
                " scale. Use bfloat16, lower the learning rate, or look for an"
                " infinite loss."
            ),
        )
