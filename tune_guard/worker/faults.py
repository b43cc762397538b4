"""A fault of the machine, raised where an engine must hear of it."""

from __future__ import annotations

from tune_guard.record import StopRecord


class HardwareFault(RuntimeError):  # noqa: N818 - it says what happened
    """The machine broke the trial, not the hyperparameters.

    It is raised in the worker, so that the search algorithm learns nothing from
    the trial and it is tried again elsewhere: in Ray by ``max_failures``. In
    Optuna it is raised from ``should_prune`` and marks the trial as failed; its
    parameters are queued again by themselves. Name it in
    ``study.optimize(..., catch=...)`` so that the study goes on.

    Args:
        message: What was seen, on which host and GPU.

        record: The record of the stop.

    Example:
        >>> import optuna
        >>> from tune_guard.optuna import GuardPruner, HardwareFault
        >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
        >>> study = optuna.create_study(pruner=GuardPruner())
        >>> study.optimize(lambda trial: 0.0, n_trials=1, catch=(HardwareFault,))
    """

    def __init__(self, message: str, record: StopRecord | None = None) -> None:
        super().__init__(message, record)
        self.record = record

    def __str__(self) -> str:
        return str(self.args[0])

    def __repr__(self) -> str:
        """Leave the record out: Optuna logs this text, and it says all of it."""
        return f"{type(self).__name__}({str(self)!r})"
