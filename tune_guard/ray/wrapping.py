"""A scheduler around another: everything is handed on, unless a subclass steps in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ray.tune.schedulers import TrialScheduler

from tune_guard.exceptions import ConfigError

if TYPE_CHECKING:
    from ray.tune.experiment import Trial


class WrappingScheduler(TrialScheduler):
    """Hand everything on to the wrapped scheduler.

    Args:
        wrapped_scheduler: The scheduler.

    Raises:
        ConfigError: If it is none.
    """

    def __init__(self, wrapped_scheduler: TrialScheduler) -> None:
        if not isinstance(wrapped_scheduler, TrialScheduler):
            msg = (
                "`wrapped_scheduler` must be a scheduler of Ray Tune, but got"
                f" {wrapped_scheduler!r}. Pass an instance, such as ASHAScheduler()."
            )
            raise ConfigError(msg)
        super().__init__()  # type: ignore[no-untyped-call]
        self.wrapped_scheduler = wrapped_scheduler

    @property
    def metric(self) -> Any:
        """The wrapped scheduler's metric."""
        return self.wrapped_scheduler.metric

    @property
    def supports_buffered_results(self) -> bool:
        """Whether the wrapped scheduler takes several results at once."""
        return bool(self.wrapped_scheduler.supports_buffered_results)

    def set_search_properties(
        self, metric: str | None, mode: str | None, **spec: Any
    ) -> bool:
        """Hand over what the TuneConfig says."""
        return self.wrapped_scheduler.set_search_properties(metric, mode, **spec)

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """A trial is new, or is to run again."""
        self.wrapped_scheduler.on_trial_add(tune_controller, trial)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """A trial failed."""
        self.wrapped_scheduler.on_trial_error(tune_controller, trial)

    def on_trial_result(
        self, tune_controller: Any, trial: Trial, result: dict[str, Any]
    ) -> str:
        """Let the scheduler decide about a result."""
        return self.wrapped_scheduler.on_trial_result(tune_controller, trial, result)

    def on_trial_complete(
        self, tune_controller: Any, trial: Trial, result: dict[str, Any]
    ) -> None:
        """A trial ended."""
        self.wrapped_scheduler.on_trial_complete(tune_controller, trial, result)

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """A trial was removed before it ran."""
        self.wrapped_scheduler.on_trial_remove(tune_controller, trial)

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """Let the scheduler choose."""
        return self.wrapped_scheduler.choose_trial_to_run(tune_controller)

    def debug_string(self) -> str:
        """Return the scheduler's own line."""
        return str(self.wrapped_scheduler.debug_string())

    def save(self, checkpoint_path: str) -> None:
        """Save the scheduler."""
        self.wrapped_scheduler.save(checkpoint_path)

    def restore(self, checkpoint_path: str) -> None:
        """Restore the scheduler."""
        self.wrapped_scheduler.restore(checkpoint_path)
