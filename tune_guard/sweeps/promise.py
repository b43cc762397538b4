"""What is promised of future sweeps, and the test that carries the promise.

The promise is about future sweeps: on average over them, of each sweep's best
trials at most the given share is cut before its own best. It holds with the given
confidence over the draw of the past sweeps, for whatever distribution they come
from, as long as future sweeps come from the same. A sweep is the unit: the trials
of one sweep resemble each other, so that a thousand of them are one sample.

Method: *Learn then Test* by fixed-sequence testing. The levels are tried from
lenient to bold, each as the hypothesis "its false-kill rate is above the limit",
at the same error rate; the first that cannot be refuted ends the sequence. The
chance that any level passes wrongly is then below 1 - confidence.

Source: A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan, L. Lei, Learn then
    Test: calibrating predictive algorithms to achieve risk control, Annals of
    Applied Statistics 19 (2025), arXiv:2110.01052; the p-values: see
    :mod:`tune_guard.sweeps.risk`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tune_guard.exceptions import ConfigError
from tune_guard.sweeps.risk import fewest, p_value
from tune_guard.sweeps.scoring import TOP_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is to be promised.

    Args:
        false_kill: Largest share of a sweep's best trials that may be cut before
            their own best, as the mean over future sweeps; above 0, below 1.

        confidence: How sure the promise is, at least 0.5 and below 1.

        top: Share of a sweep that counts as its best.

    Raises:
        ConfigError: If a value cannot be meant.
    """

    false_kill: float = 0.01
    confidence: float = 0.9
    top: float = TOP_RATIO

    def __post_init__(self) -> None:
        ok = 0 < self.false_kill < 1
        advice = "0.01 is one in a hundred."
        _need("false_kill", ok, "between 0 and 1", self.false_kill, advice)
        ok = 0.5 <= self.confidence < 1  # noqa: PLR2004 - below, it is no promise
        advice = "0.9 is right nine times in ten."
        _need("confidence", ok, "at least 0.5 and below 1", self.confidence, advice)
        ok = 0 < self.top <= 1
        _need("top", ok, "above 0 and up to 1", self.top, "0.1 is the best tenth.")

    @property
    def fewest_sweeps(self) -> int:
        """Sweeps without any false kill that the promise needs."""
        return fewest(self.false_kill, self.confidence)

    @property
    def fewest_trials(self) -> int:
        """Trials of a sweep from which on it counts: its best are at least one."""
        return math.ceil(1 / self.top)


def _need(
    name: str,
    ok: bool,  # noqa: FBT001
    what: str,
    value: object,
    advice: str,
) -> None:
    if not ok:
        msg = f"`{name}` must be {what}, but got {value!r}. {advice}"
        raise ConfigError(msg)


def fixed_sequence(
    losses: Sequence[Sequence[float]], limit: float, error: float
) -> list[tuple[float, float, bool]]:
    """Test levels one after another, until one cannot be refuted.

    Args:
        losses: For each sweep, the loss of each level, lenient first.

        limit: Largest mean loss.

        error: Chance that any level passes wrongly.

    Returns:
        For each level its mean loss, its p-value and whether it passed.

    Example:
        >>> rows = fixed_sequence([(0.0, 1.0, 0.0)] * 30, limit=0.1, error=0.1)
        >>> [kept for _, _, kept in rows]
        [True, False, False]
    """
    going, found = True, []
    for level in zip(*losses, strict=True):
        p = p_value(level, limit)
        going = going and p <= error
        found.append((math.fsum(level) / len(level), p, going))
    return found
