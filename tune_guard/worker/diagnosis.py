"""A bad step looked at closely: what its record says about where it began."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tune_guard.notices import Notices
from tune_guard.verdict import Finding, Verdict
from tune_guard.worker import first_bad
from tune_guard.worker.reader import Context
from tune_guard.worker.ring import Reading

if TYPE_CHECKING:
    from torch import Tensor

_BLIND = "non_finite"
_GROWN = "gradient_explosion"
_PACE = 0.1
"""How fast the usual norm of a gradient follows the present one."""


class Diagnosis:
    """Name the module in which a non-finite or exploding step began.

    The first bad step of a row is looked at, because by the next one the bad
    weights have spoilt everything. What was found goes into the message of the
    verdict, whichever step that comes at. A healthy step ends the row.

    Args:
        notices: Where a look that failed is named.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._usual: Tensor | None = None
        self._found: tuple[int, str] | None = None

    def look(
        self, reading: Reading, signals: Mapping[str, Any], *, fresh: bool
    ) -> None:
        """Take in one step, and look closely at the first that is not finite.

        Args:
            reading: The step.

            signals: Its numbers, as they are judged.

            fresh: Whether the model's gradients are still those of the step.
        """
        if signals.get("step_skipped"):
            return
        values = [signals.get("loss"), signals.get("grad_norm")]
        if any(value is not None and not math.isfinite(value) for value in values):
            if self._found is None:
                text = self._safely(lambda: _why_not_finite(reading, fresh=fresh))
                self._found = reading.step, text
            return
        self._found = None
        norms = norms_of_step(reading)
        if norms is not None:
            self._learn(norms)

    def _learn(self, norms: Tensor) -> None:
        usual = self._usual
        if usual is None or usual.shape != norms.shape:
            self._usual = norms.double().clone()
        else:
            usual.lerp_(norms.double(), _PACE)

    def explain(self, verdict: Verdict, reading: Reading, *, fresh: bool) -> Verdict:
        """Return the verdict with what was found in its message."""
        cause = verdict.cause
        if cause is None or cause.rule not in (_BLIND, _GROWN):
            return verdict
        if cause.rule == _GROWN:
            text = self._safely(lambda: self._why_grown(reading, fresh=fresh))
        else:
            text = self._said(cause)
        if not text:
            return verdict
        told = replace(cause, message=f"{cause.message} {text}")
        return Verdict(verdict.level, (told, *verdict.findings[1:]))

    def _said(self, cause: Finding) -> str:
        if self._found is None:
            return ""
        step, text = self._found
        return text if step == cause.step or not text else f"Step {step}: {text}"

    def _why_grown(self, reading: Reading, *, fresh: bool) -> str:
        context: Context = reading.context
        norms, usual = norms_of_step(reading), self._usual
        if norms is not None and usual is not None and usual.shape == norms.shape:
            names = context.names
            told = first_bad.by_growth(names, norms.tolist(), usual.tolist())
            return told or first_bad.by_share(names, norms.tolist())
        if not fresh or context.model is None:
            return ""
        return first_bad.by_share(*first_bad.gradients_of(context.model))

    def _safely(self, look: Callable[[], str]) -> str:
        try:
            return look()
        except Exception as error:  # noqa: BLE001 - the verdict stands without it
            self._notices.once(
                "diagnosis",
                f"A bad step could not be looked at closely ({error!r}); the verdict"
                " stands.",
            )
            return ""


def _why_not_finite(reading: Reading, *, fresh: bool) -> str:
    """Say where a step went bad, from the most telling of what is left of it."""
    context: Context = reading.context
    told = [first_bad.by_outputs(context.outputs or ())]
    norms = norms_of_step(reading)
    if norms is not None:
        told.append(first_bad.by_norms(context.names, norms.tolist()))
    elif fresh and context.model is not None:
        told.append(first_bad.by_gradients(context.model))
    if context.model is not None:
        told.append(first_bad.by_weights(context.model))
    return " ".join(filter(None, told))


def norms_of_step(reading: Reading) -> Tensor | None:
    """Return the norm of each gradient, if they were measured one by one."""
    rest = reading.rest()
    return reading.context.norms if rest is None else rest
