"""Infrastructure faults by node and by GPU."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tune_guard.record import StopRecord
    from tune_guard.sweeps.sweep import Sweep, Trial

UNNAMED = "not recorded"
"""Node of a fault whose record names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The faults of one node, or of one GPU in it.

    Args:
        node: Name of the host.

        gpu: UUID of the GPU, empty where no record names one.

        reasons: Number of trials by reason.

        trials: Ids of the trials with a fault.

        ran: Trials that are known to have run on the node.
    """

    node: str
    gpu: str
    reasons: Mapping[str, int]
    trials: tuple[str, ...]
    ran: int


def faults(sweep: Sweep) -> tuple[Faults, ...]:
    """Count the trials that the machine is to blame for, most faults first.

    Example:
        >>> from tune_guard.sweeps import Sweep, Trial
        >>> blame = Blame.INFRASTRUCTURE
        >>> hot = Trial(id="7", reason="slow_step", blame=blame, host="n3")
        >>> found = faults(Sweep(source="x", engine="ray", trials=(hot,)))
        >>> found[0].node, dict(found[0].reasons), found[0].ran
        ('n3', {'slow_step': 1}, 1)
    """
    ran = Counter(host_of(trial, sweep.records) for trial in sweep.trials)
    places: defaultdict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in sweep.trials:
        if trial.blame is Blame.INFRASTRUCTURE:
            record = sweep.records.get(trial.id)
            gpu = record.gpu_uuid if record else ""
            places[host_of(trial, sweep.records), gpu].append(trial)
    found = [_faults(node, gpu, t, ran[node]) for (node, gpu), t in places.items()]
    return tuple(sorted(found, key=lambda f: (-len(f.trials), f.node, f.gpu)))


def _faults(node: str, gpu: str, trials: Sequence[Trial], ran: int) -> Faults:
    return Faults(
        node=node or UNNAMED,
        gpu=gpu,
        reasons=dict(Counter(trial.reason for trial in trials).most_common()),
        trials=tuple(trial.id for trial in trials),
        ran=ran,
    )


def host_of(trial: Trial, records: Mapping[str, StopRecord]) -> str:
    """Return the host that ran a trial, empty when that is not known."""
    record = records.get(trial.id)
    return (record.host if record else "") or trial.host
