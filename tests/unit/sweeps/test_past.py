from __future__ import annotations

from array import array

from tune_guard.policy import DEFAULT
from tune_guard.record import Outcome
from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.levels import LEVELS
from tune_guard.sweeps.past import judge
from tune_guard.sweeps.promise import Goal
from tune_guard.sweeps.sweep import Sweep, Trial


def sweep(*outcomes: Outcome | None, state: str = "") -> Sweep:
    """Return a sweep whose trials are stuck from the start, and one that learns."""
    names = [f"t{number}" for number in range(len(outcomes))]
    flat = Curve(array("q", range(40)), array("d", [1.0] * 40))
    good = Curve(array("q", range(40)), array("d", [1 / (1 + i) for i in range(40)]))
    return Sweep(
        source="here",
        engine="table",
        modes={"loss": "min"},
        metric="loss",
        trials=tuple(
            Trial(id=name, outcome=outcome, state=state, steps_run=39)
            for name, outcome in zip(names, outcomes, strict=True)
        ),
        curves=Curves({n: {"loss": good if n == "t0" else flat} for n in names}),
    )


def test_every_level_judges_the_trials_that_nothing_had_cut() -> None:
    """Two were pruned: they are left out, and nine stuck ones are cut."""
    done, pruned = [Outcome.COMPLETED] * 10, [Outcome.PRUNER, Outcome.GUARD]
    found = judge(sweep(*done, *pruned), ("", ""), Goal(top=0.1))

    assert (found.trials, found.censored) == (10, 2)
    assert found.losses == (0.0,) * len(LEVELS)
    assert found.saved[0] == 0.0
    assert found.saved[1] > 0.5


def test_a_table_that_says_nothing_of_ends_counts() -> None:
    """But a trial whose engine called it something unknown does not."""
    assert judge(sweep(*[None] * 10), ("", ""), Goal(top=0.1)).trials == 10
    assert (
        judge(sweep(*[None] * 10, state="RUNNING"), ("", ""), Goal(top=0.1)).trials == 0
    )


def test_levels_only_get_bolder() -> None:
    """Each cuts the stuck and fallen at least as the one before; the ids differ."""
    assert LEVELS[3].rules == DEFAULT
    assert len({level.name for level in LEVELS}) == len(LEVELS)
    found = judge(sweep(*[Outcome.COMPLETED] * 10), ("", ""), Goal(top=0.1))
    assert list(found.saved) == sorted(found.saved)
