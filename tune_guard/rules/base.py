"""The contract of a rule: a frozen trigger, and a detector with one trial's state."""

from __future__ import annotations

import math
import reprlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from tune_guard.coercion import is_real
from tune_guard.curve import Curve
from tune_guard.exceptions import ConfigError
from tune_guard.observation import Observation
from tune_guard.peers import Peers
from tune_guard.schedule import Schedule
from tune_guard.statistics import RobustWindow
from tune_guard.verdict import Blame, Finding, Level, Tier

Mode = Literal["min", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a rule may know about the trial it starts to watch.

    Args:
        metric: Key of the trial's objective.

        mode: Whether a lower (``min``) or a higher (``max``) metric is better.

        warmup_steps: Steps below this one are warm-up.

        budget_steps: Steps that a full trial runs, or None when unknown.

        curve: The monitor's summary of the metric so far, fed before the rules.

        schedule: The monitor's summary of the learning rate so far, fed likewise.

        name_of: Gives the key under which a signal was reported last
            (``loss`` -> ``train/loss``), for messages.

        trial_id: The trial's name among its peers.

        peers: What the sweep's finished trials have reached, or None when the
            trial is judged by itself.
    """

    metric: str
    mode: Mode
    warmup_steps: int = 0
    budget_steps: int | None = None
    curve: Curve = field(default_factory=Curve)
    schedule: Schedule = field(default_factory=Schedule)
    name_of: Callable[[str], str] = str
    trial_id: str = ""
    peers: Peers | None = None

    @property
    def sign(self) -> float:
        """+1 when higher is better, else -1: turns the metric into a score."""
        return 1.0 if self.mode == "max" else -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Base of every rule. A subclass declares its id, tier and blame.

    A rule holds parameters only and checks them in ``__post_init__``; all state
    lies in the detector that :meth:`start` makes for each trial.
    """

    id: ClassVar[str]
    tier: ClassVar[Tier]
    blame: ClassVar[Blame]
    needs: ClassVar[tuple[str, ...]] = ()
    """Signals of which one must come. Until then the rule is inactive: its detector
    is shown nothing, and the rule is named as inactive, once."""

    rare: ClassVar[bool] = False
    """Whether few trainings have its signals: it is not named when inactive."""

    compares: ClassVar[bool] = False
    """Whether the rule measures a trial against finished ones, by its share of the
    budget: without ``budget_steps`` it is inactive."""

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        raise NotImplementedError

    def extra_keys(self) -> tuple[str, ...]:
        """Return the keys of the report that this rule reads beside the signals."""
        return ()

    def require(self, ok: object, name: str, constraint: str, advice: str) -> None:
        """Raise a ``ConfigError`` that names the parameter, unless ``ok``."""
        if not ok:
            value = getattr(self, name)
            asked = f"{self.id}: `{name}` must be {constraint}"
            msg = f"{asked}, but got {value!r}. {advice}"
            raise ConfigError(msg)

    def require_count(self, name: str, least: int, advice: str) -> None:
        """Raise unless the parameter is a whole number of at least ``least``."""
        value = getattr(self, name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        ok = whole and value >= least
        self.require(ok, name, f">= {least}" if whole else "a whole number", advice)

    def require_number(self, name: str, least: float, advice: str) -> None:
        """Raise unless the parameter is a finite number of at least ``least``."""
        value = getattr(self, name)
        real = isinstance(value, (int, float)) and not isinstance(value, bool)
        ok = real and math.isfinite(value) and value >= least
        wanted = f">= {least:g}" if math.isfinite(least) else "a finite number"
        self.require(ok, name, wanted if real else "a number", advice)


class Detector:
    """One rule's state for one trial.

    Every subclass names its state in ``__slots__``; a slot with a leading underscore
    is derived from the rule and not stored. Every other holds a number, a flag, a
    text, None, a list or deque of numbers, numbers by name, or a window, so that the
    state can be stored as plain values and compared after a restart. The slots are
    written by hand: ``dataclass(slots=True)`` makes them too late.
    """

    __slots__ = ("context", "rule")

    machine_bound: ClassVar[bool] = False
    """Whether the state describes the machine: it starts anew with an attempt."""

    _state_slots: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Work out once what is stored, as snapshots ask for every trial.

        Raises:
            ConfigError: If the class does not name its state.
        """
        super().__init_subclass__()
        own = cls.__dict__.get("__slots__")
        if own is None:
            msg = (
                f"`{cls.__qualname__}` must name its state in `__slots__`, or a restart"
                ' would lose it. Write __slots__ = ("count",); `()` where it has none.'
            )
            raise ConfigError(msg)
        own = (own,) if isinstance(own, str) else tuple(own)
        stored = (name for name in own if not name.startswith("_"))
        cls._state_slots = (*cls._state_slots, *stored)

    def __init__(self, rule: Rule, context: Context) -> None:
        self.rule: Any = rule
        self.context = context

    def update(self, observation: Observation) -> Finding | None:
        """Take one observation in O(1) and return a finding if it triggers."""
        raise NotImplementedError

    def finish(self) -> None:
        """Take notice that the trial has run to its end. Most rules need not."""

    def margin(self) -> float | None:
        """Return how near the trigger is: 0 is far away, 1 is where it fires.

        For display only. None where the state does not tell.
        """
        return None

    def state(self) -> list[Any]:
        """Return the state as plain values, in the order of ``__slots__``."""
        return [_stored(getattr(self, name)) for name in self._state_slots]

    def restore(self, state: list[Any]) -> None:
        """Take over a state that :meth:`state` returned.

        Raises:
            ValueError: If it is the state of another kind of detector.
        """
        names = self._state_slots
        if len(state) != len(names):
            msg = f"{len(state)} values for {len(names)} slots"
            raise ValueError(msg)
        for name, value in zip(names, state, strict=True):
            setattr(self, name, _restored(getattr(self, name), value))

    def finding(
        self,
        observation: Observation,
        *,
        metric: str,
        value: float,
        threshold: float | None,
        message: str,
        holds: tuple[str, ...] = (),
        rule_id: str | None = None,
    ) -> Finding:
        """Make a finding: it cuts unless a hold stands against it."""
        rule = self.rule
        return Finding(
            rule=rule_id or rule.id,
            step=observation.step,
            tier=rule.tier,
            blame=rule.blame,
            metric=metric,
            value=value,
            threshold=threshold,
            message=message,
            level=Level.WARN if holds else Level.STOP,
            holds=holds,
        )


def portion(count: float, needed: float) -> float:
    """Return which part of what a trigger needs is there, 1 at most."""
    return min(1.0, count / needed)


def _stored(value: Any) -> Any:
    if isinstance(value, RobustWindow):
        return list(value.values)
    if isinstance(value, dict):
        return dict(value)
    return list(value) if isinstance(value, (deque, list)) else value


def _restored(fresh: Any, value: Any) -> Any:
    """Return ``value`` in the kind of ``fresh``, the slot's value at the start.

    Raises:
        ValueError: If it is of another kind, or a list of fixed length has another.
    """
    if not _fits(fresh, value):
        msg = f"{reprlib.repr(value)} is no stored {type(fresh).__name__}"
        raise ValueError(msg)
    if isinstance(fresh, RobustWindow):
        return RobustWindow(fresh.values.maxlen or 1, value)
    if isinstance(fresh, deque):
        return deque(value, fresh.maxlen)
    return _stored(value)


def _fits(fresh: Any, value: Any) -> bool:
    if isinstance(fresh, (RobustWindow, deque, list)):
        numbers = isinstance(value, list) and all(map(_is_plain, value))
        fixed = isinstance(fresh, list) and len(fresh) > 0
        return numbers and not (fixed and len(value) != len(fresh))
    if isinstance(fresh, dict):
        return isinstance(value, dict) and all(
            isinstance(k, str) and _is_plain(v) for k, v in value.items()
        )
    if isinstance(fresh, str):
        return isinstance(value, str)
    return _is_plain(value) or (fresh is None and isinstance(value, list))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool) or is_real(value)
