"""The trials of a sweep that are open: their monitors, in bounded memory."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Mapping
from itertools import islice
from typing import Any

from tune_guard.evidence.window import Window
from tune_guard.exceptions import ConfigError
from tune_guard.monitor import Monitor
from tune_guard.notices import Notices
from tune_guard.peers import Peers
from tune_guard.policy import Policy
from tune_guard.ray.rows import LOOKED_AT, SINCE_RESTORE, Stamp, has_ended, stamp_of
from tune_guard.ray.stored import print_of
from tune_guard.stored_state import name_lost_state

_MOST_AWAKE = 256
_MOST_ENDED = 1024


class OpenTrial:
    """An open trial: its monitor, its newest row, and its configuration's print."""

    __slots__ = ("config", "monitor", "row", "stamp")

    def __init__(self, monitor: Monitor, config: str) -> None:
        self.monitor = monitor
        self.config = config
        self.row: dict[str, Any] | None = None
        self.stamp: Stamp | None = None
        """The live stamp of the newest row."""

    def is_behind(self, step: int | None) -> bool:
        """Whether a row needs a closer look: a rewind, or a checkpoint before it."""
        stamp, last = self.stamp, self.monitor.last_step
        if stamp is not None and stamp.checkpointed:
            return True
        return step is not None and last is not None and step < last

    def follow(self, step: int | None, result: Mapping[str, Any]) -> None:
        """Follow a retry, a rewind, a resume, or another trial's configuration."""
        monitor = self.monitor
        last = monitor.last_step
        stamp = self.stamp
        if stamp is not None and stamp.checkpointed:
            stamp.checkpointed = False
            monitor.keyframe()
        restarted = result.get(SINCE_RESTORE) == 1
        if last is None or not (restarted or (step is not None and step < last)):
            return
        config = print_of(result.get("config")) if restarted else self.config
        monitor.begin_attempt(
            last + 1 if step is None else step, config_changed=config != self.config
        )
        self.config = config

    def packed(self) -> bytes:
        """Return everything that decides later verdicts, as plain values."""
        return pickle.dumps({"monitor": self.monitor.state(), "config": self.config})


class _Sleeper:
    """A trial that was not heard of for long, or comes from another process.

    There may be thousands, and they sleep long: it pays to compress them. Those
    awake change with each row, and a snapshot takes them as they are.
    """

    __slots__ = ("data", "row")

    def __init__(self, data: bytes, row: dict[str, Any] | None = None) -> None:
        self.data = data
        self.row = row

    @classmethod
    def of(cls, packed: bytes, row: dict[str, Any] | None = None) -> _Sleeper:
        """Lay a packed trial to sleep."""
        return cls(zlib.compress(packed, level=1), row)


class OpenTrials:
    """The open trials of a sweep, by id.

    Only so many are kept awake; the others sleep as bytes (a HyperBand sweep may
    pause thousands). Of those that ended, the attempts are remembered, so that a
    trial that is started again later counts on.

    Args:
        policy: The rules; None when they could not be read.

        notices: Shared by all monitors.
    """

    def __init__(self, policy: Policy | None, notices: Notices) -> None:
        self.policy = policy
        self.peers = Peers()
        self.awake: dict[str, OpenTrial] = {}
        self._notices = notices
        self._asleep: dict[str, _Sleeper] = {}
        self._attempts: dict[str, int] = {}

    def __contains__(self, trial_id: str) -> bool:
        return trial_id in self.awake or trial_id in self._asleep

    def __len__(self) -> int:
        return len(self.awake) + len(self._asleep)

    def open(self, trial_id: str, result: Mapping[str, Any]) -> OpenTrial:
        """Return the trial's state: woken up, or new.

        Raises:
            ConfigError: If there is no policy.
        """
        self._let_ended_go()
        if self.policy is None:
            msg = "the policy could not be read from the experiment's state"
            raise ConfigError(msg)
        monitor = Monitor(
            self.policy.for_trial(result.get("config")),
            trial_id=trial_id,
            notices=self._notices,
            peers=self.peers,
        )
        monitor.witness = Window()
        sleeper = self._asleep.pop(trial_id, None)
        stored = None if sleeper is None else self._read(sleeper.data)
        if stored is None:
            monitor.attempt = self._attempts.pop(trial_id, 0) + 1
            trial = OpenTrial(monitor, print_of(result.get("config")))
        else:
            monitor.restore(stored["monitor"])
            trial = OpenTrial(monitor, stored["config"])
        trial.row = None if sleeper is None else sleeper.row
        trial.stamp = stamp_of(trial.row)
        self.awake[trial_id] = trial
        return trial

    def _read(self, data: bytes) -> dict[str, Any] | None:
        try:
            stored = pickle.loads(zlib.decompress(data))  # noqa: S301 - the stopper's own
            return {"monitor": stored["monitor"], "config": stored["config"]}
        except Exception as error:  # noqa: BLE001 - damaged data may raise anything
            name_lost_state(self._notices, error)
            return None

    def free(self, trial_id: str) -> None:
        """Let a trial go that has ended."""
        sleeper = self._asleep.pop(trial_id, None)
        trial = self.awake.pop(trial_id, None)
        if trial is not None:
            _release(trial.row)
            self._attempts[trial_id] = trial.monitor.attempt
        elif sleeper is not None:
            self._attempts[trial_id] = 1
        if len(self._attempts) > _MOST_ENDED:
            del self._attempts[next(iter(self._attempts))]

    def _let_ended_go(self) -> None:
        """Look at the few trials that were not looked at for longest."""
        for trial_id in list(islice(self.awake, LOOKED_AT)):
            trial = self.awake[trial_id]
            if has_ended(trial.row):
                self.free(trial_id)
                continue
            del self.awake[trial_id]
            if len(self.awake) < _MOST_AWAKE - 1:
                self.awake[trial_id] = trial
            else:
                _release(trial.row)
                self._asleep[trial_id] = _Sleeper.of(trial.packed(), trial.row)
        for trial_id in list(islice(self._asleep, LOOKED_AT)):
            sleeper = self._asleep.pop(trial_id)
            if not has_ended(sleeper.row):
                self._asleep[trial_id] = sleeper

    def state(self) -> dict[str, Any]:
        """Return plain values and bytes, each trial's apart."""
        asleep = {trial_id: sleeper.data for trial_id, sleeper in self._asleep.items()}
        awake = {trial_id: trial.packed() for trial_id, trial in self.awake.items()}
        return {
            "awake": awake,
            "asleep": asleep,
            "attempts": dict(self._attempts),
            "peers": self.peers.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state; its trials wake up when they are heard of."""
        # Earlier, all of them lay compressed under `trials`.
        asleep = state["asleep"] if "asleep" in state else state["trials"]
        awake, attempts = state.get("awake", {}), state["attempts"]
        if "peers" in state:
            self.peers.restore(state["peers"])
        self._attempts = {str(key): int(n) for key, n in attempts.items()}
        self._asleep = {str(key): _Sleeper(bytes(data)) for key, data in asleep.items()}
        for key, packed in awake.items():
            self._asleep[str(key)] = _Sleeper.of(bytes(packed))


def _release(row: dict[str, Any] | None) -> None:
    """Let a row that others may keep not keep the monitor too."""
    stamp = stamp_of(row)
    if stamp is not None:
        stamp.monitor = None
