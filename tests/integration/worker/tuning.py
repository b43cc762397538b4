"""One trial of a trainer that runs in Ray Tune, under a guard."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tune_guard import Policy


def tuned_once(
    train: Callable[[dict[str, Any]], None],
    config: dict[str, Any],
    policy: Policy,
    folder: Path,
) -> Any:
    """Run one trial; return its result, whose reason is the one in its file."""
    from ray import tune

    from tune_guard.ray import GuardCallback, GuardStopper

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (result,) = tune.Tuner(
            train,
            param_space=config,
            tune_config=tune.TuneConfig(metric=policy.metric, mode=policy.mode),
            run_config=tune.RunConfig(
                storage_path=str(folder / "results"),
                verbose=0,
                stop=GuardStopper(policy),
                callbacks=[GuardCallback(policy)],
            ),
        ).fit()
    stored = json.loads((Path(result.path) / "tune_guard.json").read_text())
    assert stored["tune_guard/reason"] == result.metrics["tune_guard/reason"]
    return result
