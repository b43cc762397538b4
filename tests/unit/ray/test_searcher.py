"""What a wrapped searcher is told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from ray.tune.search import ConcurrencyLimiter, Searcher
from ray.tune.search.search_generator import SearchGenerator

from tune_guard import Blame, ConfigError, Outcome
from tune_guard.ray import GuardSearcher


class Listening(Searcher):
    """Write down what it is told."""

    def __init__(self, metric: Any = "loss", mode: Any = "min") -> None:
        super().__init__(metric=metric, mode=mode)
        self.results: list[Any] = []
        self.ends: list[Any] = []
        self.properties: tuple[Any, ...] = ()
        self.most = 0
        self.paused: list[str] = []

    def set_search_properties(
        self, metric: Any, mode: Any, config: Any, **spec: Any
    ) -> bool:
        """Take metric and mode."""
        self._metric, self._mode = metric, mode
        self.properties = (metric, mode, config, spec)
        return True

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Take the limit."""
        self.most = max_concurrent
        return True

    def suggest(self, trial_id: str) -> dict[str, Any]:
        """Suggest the same for all."""
        return {"lr": 0.1}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Note an intermediate result."""
        self.results.append(result)

    def on_trial_complete(
        self, trial_id: str, result: Any = None, error: bool = False
    ) -> None:
        """Note an end."""
        self.ends.append((result, error))

    def on_pause(self, trial_id: str) -> None:
        """Note a pause."""
        self.paused.append(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Save how often it was told."""
        Path(checkpoint_path).write_text(str(len(self.ends)))

    def restore(self, checkpoint_path: str) -> None:
        """Restore as many ends."""
        self.ends = [None] * int(Path(checkpoint_path).read_text())


def row(loss: Any = 0.5, **more: Any) -> dict[str, Any]:
    """Return a result as Ray hands it to a searcher: flat."""
    return {"loss": loss, "training_iteration": 3, **more}


INFINITE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("loss", INFINITE)
def test_a_metric_that_is_not_finite_is_left_out(loss: float) -> None:
    """OptunaSearch prunes a trial whose result has no metric."""
    inner = Listening()
    GuardSearcher(inner).on_trial_complete("t", row(loss))
    assert inner.ends == [({"training_iteration": 3}, False)]


def test_or_is_an_error() -> None:
    """For searchers that want a metric with every result."""
    inner = Listening()
    GuardSearcher(inner, on_nonfinite="error").on_trial_complete("t", row(math.nan))
    assert inner.ends == [(None, True)]


def test_or_a_penalty() -> None:
    """In the place of the metric."""
    inner = Listening()
    searcher = GuardSearcher(inner, on_nonfinite="penalty", penalty=1e6)
    searcher.on_trial_complete("t", row(math.inf))
    assert inner.ends == [(row(1e6), False)]


def test_one_of_several_metrics_leaves_all_out() -> None:
    """An incomplete set of values is no set."""
    inner = Listening(metric=["loss", "time"], mode=["min", "min"])
    searcher = GuardSearcher(inner)
    searcher.on_trial_complete("t", row(math.nan, time=1.0))
    searcher.on_trial_complete("u", row(0.5, time=1.0))
    assert inner.ends == [(None, False), (row(0.5, time=1.0), False)]


def test_a_finite_result_is_handed_on_as_it_is() -> None:
    """Also errors, and trials that were never heard of again."""
    inner = Listening()
    searcher = GuardSearcher(inner)
    searcher.on_trial_complete("a", row())
    searcher.on_trial_complete("b", None, error=True)
    searcher.on_trial_complete("c", None)
    assert inner.ends == [(row(), False), (None, True), (None, False)]


def test_a_cut_for_the_machines_sake_teaches_nothing() -> None:
    """Blame infrastructure is a failed trial, whatever its metric was."""
    inner = Listening()
    blamed = row(**{"tune_guard/blame": "infrastructure"})
    GuardSearcher(inner).on_trial_complete("t", blamed)
    assert inner.ends == [(None, True)]


@pytest.mark.parametrize("loss", [*INFINITE, None, "broken"])
def test_intermediate_results_without_a_finite_metric_are_kept_back(loss: Any) -> None:
    """OptunaSearch would store NaN, and fail on a missing one."""
    inner = Listening()
    searcher = GuardSearcher(inner)
    searcher.on_trial_result("t", row(loss))
    searcher.on_trial_result("t", {"training_iteration": 1})
    searcher.on_trial_result("t", row(0.25))
    assert inner.results == [row(0.25)]


def test_everything_else_is_handed_on() -> None:
    """Space, metric and mode, the limit, pauses, suggestions."""
    inner = Listening(metric=None, mode=None)
    searcher = GuardSearcher(inner)
    assert searcher.set_search_properties("acc", "max", {"lr": 1}, seed=2) is True
    assert inner.properties == ("acc", "max", {"lr": 1}, {"seed": 2})
    assert (searcher.metric, searcher.mode) == ("acc", "max")
    assert searcher.set_max_concurrency(3) is True
    assert inner.most == 3
    assert searcher.suggest("t") == {"lr": 0.1}
    searcher.on_pause("t")
    searcher.on_unpause("t")
    assert inner.paused == ["t"]


@pytest.mark.parametrize(
    "wrap",
    [
        GuardSearcher,
        lambda inner: ConcurrencyLimiter(GuardSearcher(inner), 2),
        lambda inner: GuardSearcher(ConcurrencyLimiter(inner, 2)),
    ],
    ids=["alone", "limited", "limiting"],
)
def test_ray_saves_and_restores_the_wrapped_searcher(wrap: Any, tmp_path: Path) -> None:
    """It unwraps by the attribute `searcher`, whichever way they are nested."""
    inner = Listening()
    searcher = wrap(inner)
    searcher.suggest("t")
    searcher.on_trial_complete("t", row(), error=False)
    SearchGenerator(searcher).save_to_dir(str(tmp_path), "one")
    fresh = Listening()
    SearchGenerator(wrap(fresh)).restore_from_dir(str(tmp_path))
    assert len(fresh.ends) == 1


class OptunaLike(Listening):
    """Hold Optuna trials where OptunaSearch does."""

    def __init__(self, trial: Any) -> None:
        super().__init__()
        self._ot_trials = {"t": trial}


class Attributes:
    """An Optuna trial's user attributes."""

    def __init__(self, *, fails: bool = False) -> None:
        self.written: dict[str, Any] = {}
        self.fails = fails

    def set_user_attr(self, key: str, value: Any) -> None:
        """Write one, or fail as a storage does."""
        if self.fails:
            msg = "database is locked"
            raise OSError(msg)
        self.written[key] = value


STAMPED = {
    "tune_guard/detail": '{"schema": 1, "rule": "non_finite", "value": "NaN"}',
    "tune_guard/status": "stopped",
    "tune_guard/blame": "config",
    "tune_guard/step": 3,
    "tune_guard/reason": "non_finite",
}


def test_the_reason_becomes_attributes_of_the_optuna_trial() -> None:
    """The same five, detail first as plain values, reason last."""
    trial = Attributes()
    GuardSearcher(OptunaLike(trial)).on_trial_complete("t", row(math.nan, **STAMPED))
    assert list(trial.written)[0::4] == ["tune_guard/detail", "tune_guard/reason"]
    assert trial.written == {
        **STAMPED,
        "tune_guard/detail": {"schema": 1, "rule": "non_finite", "value": "NaN"},
    }


def test_a_trial_that_failed_has_the_reason_error() -> None:
    """Ray shows a searcher no result then, nor the exception."""
    trial = Attributes()
    GuardSearcher(OptunaLike(trial)).on_trial_complete("t", None, error=True)
    assert trial.written == {"tune_guard/reason": "error"}


def test_attributes_that_cannot_be_written_cost_nothing_else(caplog: Any) -> None:
    """One notice; the searcher is told all the same."""
    inner = OptunaLike(Attributes(fails=True))
    searcher = GuardSearcher(ConcurrencyLimiter(inner, 2))
    searcher.suggest("t")
    for _ in range(2):
        searcher.on_trial_complete("t", row(0.5, **STAMPED))
    assert inner.ends == [(row(0.5, **STAMPED), False)] * 2
    assert len([m for m in caplog.messages if "database is locked" in m]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"searcher": object()}, "`searcher` must be"),
        ({"searcher": Listening}, "`searcher` must be"),
        ({"searcher": Listening(), "on_nonfinite": "drop"}, "`on_nonfinite` must be"),
        ({"searcher": Listening(), "on_nonfinite": "penalty"}, "`penalty` must be"),
        ({"searcher": Listening(), "penalty": 1.0}, "`penalty` must be"),
    ],
)
def test_what_cannot_be_meant_is_an_error(
    arguments: dict[str, Any], message: str
) -> None:
    """At construction."""
    with pytest.raises(ConfigError, match=message):
        GuardSearcher(**arguments)


@pytest.mark.parametrize(
    ("blame", "on_nonfinite", "failed"),
    [
        (Blame.CONFIG, "drop_metric", False),
        (Blame.CONFIG, "error", True),
        (Blame.INFRASTRUCTURE, "drop_metric", True),
        (None, "drop_metric", True),
    ],
)
def test_a_failure_teaches_when_the_hyperparameters_are_to_blame(
    monkeypatch: pytest.MonkeyPatch,
    blame: Blame | None,
    on_nonfinite: Any,
    failed: bool,
) -> None:
    """Out of GPU memory is told like a trial without a metric: the next is smaller."""
    inner = Listening()
    searcher = GuardSearcher(inner, on_nonfinite)
    fields = {"reason": "error:cuda_oom", "outcome": Outcome.ERROR, "blame": blame}
    monkeypatch.setattr(searcher, "_failure", lambda _: fields)
    searcher.on_trial_complete("t", None, error=True)
    assert inner.ends == [(None, failed)]


def test_a_failures_reason_is_known_where_ray_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kind and blame become attributes of the Optuna trial."""
    attributes = Attributes()
    searcher = GuardSearcher(OptunaLike(attributes))
    fields = {"reason": "stalled", "blame": Blame.INFRASTRUCTURE, "step": 7}
    monkeypatch.setattr(searcher, "_failure", lambda _: fields)
    searcher.on_trial_complete("t", None, error=True)
    assert attributes.written["tune_guard/reason"] == "stalled"
    assert attributes.written["tune_guard/blame"] == "infrastructure"
    assert list(attributes.written)[-1] == "tune_guard/reason"
