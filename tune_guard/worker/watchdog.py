"""A thread that writes every thread's stack when a training has gone silent."""

from __future__ import annotations

import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tune_guard.rules import Stalled

if TYPE_CHECKING:
    from tune_guard.policy import Policy

_BEFORE = 0.8
"""Share of the silence that is too much, at which the stacks are written: what
ends the trial comes soon after."""

_LOOKS = 20
_MOST_S = 5.0


def rule_in(policy: Policy) -> Stalled | None:
    """Return the policy's rule on silent trials, if it has one that is armed."""
    rules = [rule for rule in policy.armed_rules() if isinstance(rule, Stalled)]
    return rules[0] if rules else None


class StallWatch:
    """Call back once for each silence, a little before it is too long.

    The thread keeps nothing alive: it ends when whoever is called back is gone. It
    cannot run while another thread holds Python's lock: of such a hang there are
    no stacks, and only the driver's watchdog ends it.

    Args:
        rule: How long is too long.

        call: A bound method that takes the seconds of silence, and whether there
            was a report before. Called in the thread of the watch.
    """

    def __init__(self, rule: Stalled, call: Callable[[float, bool], None]) -> None:
        self._rule = rule
        self._call = weakref.WeakMethod(call)
        self._heard_s = time.monotonic()
        self._reported = self._told = False
        self._over = threading.Event()
        shortest = min(rule.limit_s(reported=known) for known in (True, False))
        self._pause_s = min(_MOST_S, shortest / _LOOKS)

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(
            target=self._run, name="tune_guard-watchdog", daemon=True
        ).start()

    def hear(self) -> None:
        """Take notice of a report."""
        self._heard_s = time.monotonic()
        self._reported, self._told = True, False

    def close(self) -> None:
        """End the thread."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self._pause_s):
            if not self.look(time.monotonic()):
                return

    def look(self, now_s: float) -> bool:
        """Call back if it is time; return whether there is anybody to call."""
        call: Any = self._call()
        if call is None:
            return False
        silent_s = now_s - self._heard_s
        limit_s = self._rule.limit_s(reported=self._reported)
        if silent_s >= _BEFORE * limit_s and not self._told:
            self._told = True
            call(silent_s, self._reported)
        return True


def stacks() -> str:
    """Return the stack of every thread, the main one first, as text."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    mine, main = threading.get_ident(), threading.main_thread().ident
    frames = sys._current_frames()  # noqa: SLF001 - documented, for this very use
    order = sorted(frames, key=lambda ident: (ident != main, ident))
    texts = []
    for ident in order:
        if ident != mine:
            lines = "".join(traceback.format_stack(frames[ident]))
            texts.append(f"Thread {names.get(ident, '?')} ({ident}):\n{lines}")
    return "\n".join(texts)
