"""The searcher: tell the search algorithm the truth about trials that were cut."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from ray.tune.search import Searcher

from tune_guard.coercion import to_number
from tune_guard.exceptions import ConfigError
from tune_guard.notices import Notices
from tune_guard.ray import _engine
from tune_guard.ray.outcome import error_fields
from tune_guard.record import BLAME, DETAIL, KEYS, REASON, StopRecord
from tune_guard.strict_json import from_json
from tune_guard.verdict import Blame

OnNonFinite = Literal["drop_metric", "error", "penalty"]
_CHOICES = ("drop_metric", "error", "penalty")


class GuardSearcher(Searcher):
    """Wrap a searcher, so that NaN teaches it what it should.

    OptunaSearch alone leaves a trial that ended on NaN RUNNING in the study for
    ever, and HyperOptSearch stores it as a good result. Here a metric that is
    not finite is

    - ``drop_metric``: left out. OptunaSearch then calls the trial PRUNED.
    - ``error``: a failed trial. For searchers that want a metric, such as
      HyperOptSearch. Not for OptunaSearch: TPE ignores failed trials and
      samples the same region again.
    - ``penalty``: replaced by ``penalty``.

    A trial that was cut because of the machine (``blame`` infrastructure) is told
    as failed: it says nothing about its hyperparameters. One that ran out of GPU
    memory is told like one without a metric: the next is to be smaller. With
    OptunaSearch each trial's reason becomes a user attribute of the Optuna trial.

    Args:
        searcher: The searcher to wrap; a ConcurrencyLimiter may be around it.

        on_nonfinite: What to make of a metric that is not finite.

        penalty: The value in its place; only for ``penalty``.

    Raises:
        ConfigError: If a value cannot be meant.

    Example:
        >>> from ray.tune.search.optuna import OptunaSearch
        >>> search_alg = GuardSearcher(OptunaSearch())
    """

    def __init__(
        self,
        searcher: Searcher,
        on_nonfinite: OnNonFinite = "drop_metric",
        *,
        penalty: float | None = None,
    ) -> None:
        if not isinstance(searcher, Searcher):
            msg = (
                f"`searcher` must be a ray.tune.search.Searcher, but got {searcher!r}."
                " Wrap an instance, such as GuardSearcher(OptunaSearch())."
            )
            raise ConfigError(msg)
        if on_nonfinite not in _CHOICES:
            msg = (
                f"`on_nonfinite` must be one of {', '.join(_CHOICES)}, but got"
                f" {on_nonfinite!r}. Use drop_metric for OptunaSearch."
            )
            raise ConfigError(msg)
        number = to_number(penalty)
        finite = number is not None and math.isfinite(number)
        if finite != (on_nonfinite == "penalty"):
            msg = (
                "`penalty` must be a finite number with on_nonfinite='penalty', and"
                f" is left out else, but got {penalty!r}. Take a value that is worse"
                " than any real one."
            )
            raise ConfigError(msg)
        self.searcher = searcher
        self.on_nonfinite = on_nonfinite
        self.penalty = penalty
        self._notices = Notices()
        super().__init__(metric=searcher.metric, mode=searcher.mode)

    @property
    def metric(self) -> Any:
        """The wrapped searcher's metric: it may learn it late."""
        return self.searcher.metric

    @property
    def mode(self) -> Any:
        """The wrapped searcher's mode."""
        return self.searcher.mode

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Hand metric, mode and space on."""
        return bool(self.searcher.set_search_properties(metric, mode, config, **spec))

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Hand the limit on."""
        return bool(self.searcher.set_max_concurrency(max_concurrent))

    def suggest(self, trial_id: str) -> Any:
        """Return the wrapped searcher's suggestion."""
        return self.searcher.suggest(trial_id)

    def add_evaluated_point(self, *args: Any, **kwargs: Any) -> None:
        """Hand a known point on."""
        self.searcher.add_evaluated_point(*args, **kwargs)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Hand an intermediate result on if its metric is finite."""
        if all(_is_finite(result.get(key)) for key in self._metrics()):
            self.searcher.on_trial_result(trial_id, result)

    def on_trial_complete(
        self,
        trial_id: str,
        result: dict[str, Any] | None = None,
        error: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Hand the end of a trial on, as truthfully as the searcher can take it."""
        failure = self._failure(trial_id) if error else None
        self._note_reason(trial_id, result, failure)
        if failure and failure.get("blame") is Blame.CONFIG:
            error = self.on_nonfinite == "error"
        if result is not None and not error:
            result, error = self._told(result)
        self.searcher.on_trial_complete(trial_id, result=result, error=error)

    def _metrics(self) -> list[str]:
        metric = self.metric
        return list(metric) if isinstance(metric, (list, tuple)) else [metric or ""]

    def _told(self, result: dict[str, Any]) -> tuple[dict[str, Any] | None, bool]:
        """Return what the searcher is told: the result, and whether it failed."""
        if result.get(BLAME) == Blame.INFRASTRUCTURE:
            return None, True
        wrong = [key for key in self._metrics() if not _is_finite(result.get(key))]
        if not wrong:
            return result, False
        if self.on_nonfinite == "error":
            return None, True
        if self.on_nonfinite == "penalty":
            return {**result, **dict.fromkeys(wrong, self.penalty)}, False
        if len(self._metrics()) > 1:
            # An incomplete set of values is no set: Optuna prunes without any.
            return None, False
        return {key: value for key, value in result.items() if key not in wrong}, False

    def _failure(self, trial_id: str) -> dict[str, Any]:
        """Return why a trial failed, as fields of a record."""
        try:
            trial = _engine.trial_of(_engine.controller(), trial_id)
            return {} if trial is None else error_fields(trial)
        except Exception as problem:  # noqa: BLE001 - nothing may raise into a sweep
            self._notices.once(
                "failure",
                f"Why trial {trial_id} failed could not be told ({problem!r}): the"
                " searcher is told that it failed.",
            )
            return {}

    def _note_reason(
        self,
        trial_id: str,
        result: Mapping[str, Any] | None,
        failure: Mapping[str, Any] | None,
    ) -> None:
        """Set the reason on the Optuna trial, before the trial is told and closed."""
        base = self.searcher
        while hasattr(base, "searcher"):
            base = base.searcher
        trial = _engine.optuna_trial(base, trial_id)
        if trial is None:
            return
        try:
            for key, value in _attributes(result, failure).items():
                trial.set_user_attr(key, value)
        except Exception as problem:  # noqa: BLE001 - a storage may raise anything
            self._notices.once(
                "optuna",
                f"A trial's reason could not be set in the Optuna study ({problem!r});"
                " it is in Ray's results.",
            )

    def get_state(self) -> dict[str, Any]:
        """Return nothing: the wrapped searcher is saved by Ray on its own."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over nothing."""

    def save(self, checkpoint_path: str) -> None:
        """Save the wrapped searcher."""
        self.searcher.save(checkpoint_path)

    def restore(self, checkpoint_path: str) -> None:
        """Restore the wrapped searcher."""
        self.searcher.restore(checkpoint_path)

    def on_pause(self, trial_id: str) -> None:
        """Hand a pause on to a searcher that wants to know of it (BOHB)."""
        getattr(self.searcher, "on_pause", _ignore)(trial_id)

    def on_unpause(self, trial_id: str) -> None:
        """Hand a resume on to a searcher that wants to know of it (BOHB)."""
        getattr(self.searcher, "on_unpause", _ignore)(trial_id)


def _ignore(trial_id: str) -> None:
    """Stand in for a hook that the wrapped searcher lacks."""


def _is_finite(value: Any) -> bool:
    number = to_number(value)
    return number is not None and math.isfinite(number)


def _attributes(
    result: Mapping[str, Any] | None, failure: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the five values, detail first and reason last.

    Args:
        result: The last result.

        failure: Why the trial failed, as far as it is known; None if it did not.
    """
    if failure is not None:
        return StopRecord(**failure).metadata() if failure else {REASON: "error"}
    if result is None:
        return {}
    found = {key: result[key] for key in KEYS if key in result}
    detail = found.pop(DETAIL, "")
    reason = found.pop(REASON, None)
    if reason is None:
        return {}
    unpacked = from_json(detail) if isinstance(detail, str) and detail else {}
    return {DETAIL: unpacked or {}, **found, REASON: reason}
