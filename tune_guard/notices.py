"""Say each thing once: notices that a sweep of thousands of trials must not repeat."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import ClassVar

logger = logging.getLogger("tune_guard")

_MOST_KEPT = 1000


class Notices:
    """Log a message the first time its topic comes up, and never again.

    One instance is shared by all trials of a sweep, so that a missing key is
    named once and not once per trial. It holds plain text only and can be
    pickled at any time.

    Example:
        >>> notices = Notices()
        >>> notices.once("lr", "no learning rate was reported")
        True
        >>> notices.once("lr", "no learning rate was reported")
        False
    """

    observers: ClassVar[list[Callable[[str, str], None]]] = []
    """Called with each topic and message that was logged. They must not raise."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}

    def once(self, topic: str, message: str) -> bool:
        """Log ``message`` as a warning unless ``topic`` was named before.

        Args:
            topic: What the message is about; the same topic is silent later.

            message: One sentence a person can act on.

        Returns:
            Whether the message was logged now.
        """
        if topic in self.messages or len(self.messages) >= _MOST_KEPT:
            return False
        self.messages[topic] = message
        with contextlib.suppress(Exception):  # a logging set-up may raise anything
            logger.warning("%s", message)
        for observer in self.observers:
            with contextlib.suppress(Exception):
                observer(topic, message)
        return True
