"""The default policy from lenient to bold, in a few steps: what is calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tune_guard.policy import DEFAULT
from tune_guard.rules import Divergence, NoProgress, Plateau, Relapse
from tune_guard.rules.base import Rule
from tune_guard.rules.holds import Hold
from tune_guard.rules.progress_holds import Young


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One step of the way from lenient to bold.

    Args:
        name: What it is called.

        rules: The rules of its policy.
    """

    name: str
    rules: tuple[Rule, ...]


def _changed(*rules: Rule, without: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """Return the default rules, some of them changed, left out or added."""
    own = {rule.id: rule for rule in rules}
    kept = [own.pop(rule.id, rule) for rule in DEFAULT if rule.id not in without]
    return (*kept, *own.values())


def _patient(age_ratio: float) -> Plateau:
    """Return a plateau rule whose patience is a share of the trial's age."""
    holds: tuple[Hold, ...] = tuple(
        replace(hold, age_ratio=age_ratio) if isinstance(hold, Young) else hold
        for hold in Plateau().holds
    )
    return Plateau(holds=holds)


_BOLD = (Divergence(start_ratio=0.05), Relapse(window_ratio=0.15, margin=1.0))

LEVELS: tuple[Level, ...] = (
    Level(
        name="what breaks",
        rules=_changed(
            Divergence(start_ratio=0.0), without=(NoProgress.id, Relapse.id)
        ),
    ),
    Level(
        name="and never starts",
        rules=_changed(Divergence(start_ratio=0.0), without=(Relapse.id,)),
    ),
    Level(
        name="lenient",
        rules=_changed(
            Divergence(start_ratio=0.2), Relapse(window_ratio=0.4, margin=3.0)
        ),
    ),
    Level(name="default", rules=DEFAULT),
    Level(
        name="firm",
        rules=_changed(Divergence(start_ratio=0.07), Relapse(window_ratio=0.2)),
    ),
    Level(name="bold", rules=_changed(*_BOLD)),
    Level(name="bold, plateau of half its age", rules=_changed(*_BOLD, _patient(0.5))),
    Level(name="bold, plateau", rules=_changed(*_BOLD, Plateau())),
)
"""Each cuts more than the one before, and is tried only once that one has passed."""
