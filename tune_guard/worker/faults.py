"""A fault of the machine, raised where an engine must hear of it."""

from __future__ import annotations

from tune_guard.record import StopRecord


class HardwareFault(RuntimeError):  # noqa: N818 - it says what happened
    """The machine broke the trial, not the hyperparameters.

    It is raised in the worker so that the engine tries the trial again elsewhere
    and the search algorithm learns nothing from it.

    Args:
        message: What was seen, on which host and GPU.

        record: The record of the stop.

    Example:
        >>> HardwareFault("the GPU is lost [node-7]").record is None
        True
    """

    def __init__(self, message: str, record: StopRecord | None = None) -> None:
        super().__init__(message, record)
        self.record = record

    def __str__(self) -> str:
        return str(self.args[0])
