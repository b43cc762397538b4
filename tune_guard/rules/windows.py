"""How long a window is: a share of the budget, longer where the stream is noisy."""

from __future__ import annotations

import functools
import re
from itertools import pairwise

from tune_guard.rules.base import Context

LEAST_READINGS = 6
"""A window never holds fewer readings than this."""

NOISY = 1.0
STEADY = 1 / 3
"""Windows on a steady stream, as a share of those on a noisy one."""

_SMOOTH = 1.25
_LEAST_BUDGET = 200
_BUDGET_IN_AGES = 4

_SUPERVISED = re.compile(
    r"loss|acc|err|nll|ppl|perplexity|likelihood|entropy|elbo|bits|bpb|bpc|mse|rmse|mae"
    r"|rouge|bleu|meteor|auc|auroc|auprc|f1|iou|miou|dice|ssim|psnr|fid|wer|cer|map|top\d"
    r"|precision|recall|brier|r2|kappa"
)
_REWARD = re.compile(r"rew|return|score|success|win|elo|episode|ep_")


def budget_readings(context: Context) -> float:
    """Return about how many readings of the metric a full trial gives.

    Readings so far over the steps that they span, carried to the budget: steps
    may begin at 0 or 1, and skip. Without a budget the trial is taken to be a
    quarter through, and to give at least 200 readings: old enough to be judged,
    over windows that grow with its age.
    """
    curve, budget = context.curve, context.budget_steps
    if budget is None:
        return float(max(_LEAST_BUDGET, _BUDGET_IN_AGES * curve.count))
    span = curve.last_step - curve.first_step
    return (curve.count - 1) * budget / span if span > 0 else float("inf")


def buckets(context: Context, share: float) -> int:
    """Return how many of the curve's newest buckets make up ``share`` of the budget.

    0 while the history outside warm-up is no longer than that.
    """
    readings = max(LEAST_READINGS, share * budget_readings(context))
    return context.curve.window(readings)


def stretch(context: Context) -> float:
    """Return the factor on windows: 1 on a noisy stream, a third on a steady one.

    What the metric is says which: losses, errors and accuracies are steady,
    rewards and scores are noisy. Where its name does not tell, its own course
    does: a stream is steady when it comes and goes so little that its path is at
    most a quarter longer than its range.
    """
    steady = steady_by_name(context.metric)
    if steady is None:
        steady = _is_smooth(context.curve.levels)
    return STEADY if steady else NOISY


@functools.lru_cache(maxsize=256)
def steady_by_name(metric: str) -> bool | None:
    """Return whether a metric of this name is steady; None when it does not tell.

    Example:
        >>> steady_by_name("val_loss"), steady_by_name("episode_reward_mean")
        (True, False)
        >>> steady_by_name("objective") is None
        True
    """
    words = re.split(r"[^a-z0-9]+", metric.lower())
    if any(_SUPERVISED.match(word) for word in words):
        return True
    if any(_REWARD.match(word) for word in words):
        return False
    return None


def _is_smooth(levels: list[float]) -> bool:
    path = sum(abs(b - a) for a, b in pairwise(levels))
    return path <= _SMOOTH * (max(levels) - min(levels))
