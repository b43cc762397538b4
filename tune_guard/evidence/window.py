"""The last observations of a live trial, and a state to judge them again from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import brief
from tune_guard.observation import Observation

if TYPE_CHECKING:
    from tune_guard.monitor import Monitor

KEPT = 512
"""Observations that are there at least, once there were so many."""

_SEGMENT = 128
"""Observations between two stored states: a state costs about as much as twenty
observations to take."""

Shape = tuple[str, ...]


class _Segment:
    """Observations that follow a stored state.

    What each holds is a shape that many share, and the values of all lie one after
    the other: beside its values no object is kept for an observation, which a
    collector would visit.
    """

    __slots__ = ("shapes", "state", "values")

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.shapes: list[Shape] = []
        self.values: list[Any] = []

    def observations(self) -> Iterator[Observation]:
        """Yield them, the oldest first."""
        values = iter(self.values)
        for shape in list(self.shapes):
            observation = object.__new__(Observation)
            # The shape ends first: the next observation's value is not taken.
            observation.__dict__.update(zip(shape, values, strict=False))
            yield observation


class Window:
    """Keep what a monitor saw last, in memory only.

    The monitor's state is taken at every 128th observation and kept with those
    that follow, so that the oldest kept state and all observations since lead to
    the same verdict again, bit for bit. It holds the present attempt: a retry or
    a restored state starts it anew.

    Example:
        >>> from tune_guard import Monitor, Policy
        >>> monitor = Monitor(Policy.default("loss", "min"))
        >>> monitor.witness = Window()
        >>> for step in range(1000):
        ...     verdict = monitor.observe(step, {"loss": 1 / (step + 1)})
        >>> len(monitor.witness), next(monitor.witness.observations()).step
        (616, 384)
    """

    __slots__ = ("_failed", "_newest", "_segments", "_shape", "_shapes")

    def __init__(self) -> None:
        self._failed = ""
        self._shapes: dict[Shape, Shape] = {}
        self._shape: Shape = ()
        self.forget()

    def __len__(self) -> int:
        return sum(len(segment.shapes) for segment in self._segments)

    def forget(self) -> None:
        """Drop everything."""
        self._segments: deque[_Segment] = deque(maxlen=KEPT // _SEGMENT + 1)
        self._newest: _Segment | None = None

    def see(self, monitor: Monitor, observation: Observation) -> None:
        """Take an observation that is about to be judged. Never raises."""
        segment = self._newest
        if segment is None or len(segment.shapes) >= _SEGMENT:
            segment = self._begin(monitor)
        fields = observation.__dict__
        shape = tuple(fields)
        if shape != self._shape:  # compared by identity: cheaper than a hash
            self._shape = self._shapes.setdefault(shape, shape)
        segment.values.extend(fields.values())
        segment.shapes.append(self._shape)  # last: whoever reads meanwhile goes by it

    def _begin(self, monitor: Monitor) -> _Segment:
        """Take the monitor's state; keyframes decide no verdict."""
        try:
            state = {**monitor.state(), "keyframes": []}
        except Exception as error:  # noqa: BLE001 - a foreign rule's state may raise anything
            self._failed, state = brief(error), {}
        self._newest = segment = _Segment(state)
        self._segments.append(segment)
        return segment

    @property
    def state(self) -> dict[str, Any]:
        """The monitor's state before the oldest observation; empty without one."""
        return self._segments[0].state if self._segments and not self._failed else {}

    @property
    def failed(self) -> str:
        """Why there is no state, or empty."""
        return self._failed

    def observations(self) -> Iterator[Observation]:
        """Yield the observations, the oldest first."""
        for segment in list(self._segments):
            yield from segment.observations()
