"""Scores of a policy over recorded sweeps, and the table of all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from tests.benchmarks.sweeps.data import Study
from tune_guard.sweeps.scoring import wilson

REWARD_SETS = ("dreamerv3", "marllib", "ray_", "rl_zoo", "td3", "tdmpc2")
THIRD = 0.3


def measure(study: Study, done: np.ndarray) -> dict[str, Any]:
    """Count what one policy did to one sweep.

    Args:
        study: The sweep.

        done: Readings of the objective that each trial ran.
    """
    lengths = np.array([len(run) for run in study.runs])
    cut, left = done < lengths, lengths - done
    early = cut & (done <= [run.key for run in study.runs])
    top, third = study.top(), study.top(THIRD)
    reached = np.array([math.isfinite(run.time_to_target) for run in study.runs])
    first = study.rank == 0 if reached.any() else study.best == np.nanmax(study.best)
    sick = np.array([run.is_sick(study.objective) for run in study.runs])
    dead = np.array([run.ends_non_finite(study.objective) for run in study.runs])
    return {
        "dataset": study.dataset,
        "sweep": study.name,
        "hp": study.on_hyperparameters,
        "reward": study.dataset.startswith(REWARD_SETS),
        "saved": left.sum() / lengths.sum(),
        "top": int(top.sum()),
        "kills": int((early & top).sum()),
        "third": int(third.sum()),
        "third_kills": int((early & third).sum()),
        "lost": bool(early[first].all()),
        "trials": len(done),
        "cut": int(cut.sum()),
        "premature": int(early.sum()),
        "sick_reports": int(lengths[sick].sum()),
        "sick_saved": int(left[sick].sum()),
        "dead_reports": int(lengths[dead].sum()),
        "dead_saved": int(left[dead].sum()),
    }


def summary(rows: pd.DataFrame) -> dict[str, str]:
    """Return the figures of one policy as text: shares in percent."""
    total = rows.sum(numeric_only=True)
    hp, supervised = rows[rows.hp], rows[~rows.reward]
    reward = rows[rows.reward]
    low, high = wilson(int(total.kills), int(total.top))
    return {
        "saved": _percent(rows.saved.mean()),
        "saved hp": _percent(hp.saved.mean()),
        "false kills": f"{_share(total.kills, total.top)} ({total.kills:.0f})",
        "95%": f"{100 * low:.1f}-{100 * high:.1f}",
        "hp kills": _share(hp.kills.sum(), hp.top.sum()),
        "top-30% kills": _share(total.third_kills, total.third),
        "best lost": _percent(rows.lost.mean()),
        "sick saved": _share(total.sick_saved, total.sick_reports),
        "sup. sick": _share(supervised.sick_saved.sum(), supervised.sick_reports.sum()),
        "reward sick": _share(reward.sick_saved.sum(), reward.sick_reports.sum()),
        "dead losses": _share(
            supervised.dead_saved.sum(), supervised.dead_reports.sum()
        ),
        "premature": _share(total.premature, total.trials),
    }


def _share(part: float, whole: float) -> str:
    return _percent(part / whole) if whole else "-"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f}"
