"""The tables of a sweep as pandas frames."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from tune_guard.sweeps.sweep import Sweep, Trial

_NESTED = frozenset({"params", "finals"})


def to_dataframe(sweep: Sweep, table: str) -> pd.DataFrame:
    """Return one table of ``sweep``; see :meth:`Sweep.to_dataframe`."""
    import pandas as pd

    if table == "trials":
        return pd.DataFrame([_trial_row(trial) for trial in sweep.trials])
    if table == "curves":
        return _curves(sweep)
    if table == "records":
        rows = [
            {"trial_id": trial, **dataclasses.asdict(record)}
            for trial, record in sweep.records.items()
        ]
        return pd.DataFrame(rows)
    msg = f"`table` must be 'trials', 'curves' or 'records', but got {table!r}."
    raise ConfigError(msg)


def _trial_row(trial: Trial) -> dict[str, Any]:
    fields = [f.name for f in dataclasses.fields(trial) if f.name not in _NESTED]
    row = {name: getattr(trial, name) for name in fields}
    row |= _columns("finals", trial.finals)
    return row | _columns("params", trial.params)


def _columns(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}/{name}": value for name, value in values.items()}


def _curves(sweep: Sweep) -> pd.DataFrame:
    """Build the frame column by column: rows of tuples would need ten times more."""
    import numpy as np
    import pandas as pd

    pieces = [
        (trial, metric, curve)
        for trial, curves in sweep.curves.by_trial.items()
        for metric, curve in curves.items()
    ]
    lengths = [len(curve) for _, _, curve in pieces]
    times = [
        np.full(len(curve), np.nan)
        if curve.times_s is None
        else np.asarray(curve.times_s)
        for _, _, curve in pieces
    ]
    empty = np.empty(0)
    return pd.DataFrame(
        {
            "trial": _repeated([trial for trial, _, _ in pieces], lengths),
            "step": np.concatenate(
                [empty.astype("i8"), *(c.steps for *_, c in pieces)]
            ),
            "metric": _repeated([metric for _, metric, _ in pieces], lengths),
            "value": np.concatenate([empty, *(c.values for *_, c in pieces)]),  # noqa: PD011
            "time_s": np.concatenate([empty, *times]),
        }
    )


def _repeated(names: list[str], lengths: list[int]) -> pd.Categorical[str]:
    """Return names, each repeated, without holding a text for every row."""
    import numpy as np
    import pandas as pd

    kinds = pd.Index(dict.fromkeys(names), dtype=object)
    codes = np.repeat(kinds.get_indexer(pd.Index(names, dtype=object)), lengths)
    return pd.Categorical.from_codes(codes, categories=kinds)
