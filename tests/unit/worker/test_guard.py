from __future__ import annotations

import logging
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from tests.schemas import stamp_in
from tests.unit.worker.support import INF, NAN, backward, chain, guarded, policy, stops
from tune_guard import ConfigError, Keys, Policy, TrialGuard
from tune_guard.record import KEYS
from tune_guard.rules import (
    AmpScaleCollapse,
    GradientExplosion,
    NonFinite,
    Plateau,
)


def test_a_nan_loss_stops_at_its_own_step() -> None:
    """On the CPU a step is judged before the next one begins."""
    guard = guarded()
    assert stops(guard, [1.0, torch.tensor(0.9), NAN]) == [False, False, True]
    assert (guard.verdict.reason, guard.verdict.step) == ("non_finite", 2)


def test_a_short_training_names_its_missing_metric_when_it_is_closed(
    caplog: Any,
) -> None:
    """Two reports never make ten; the guard is closed without a stop."""
    with TrialGuard(policy(Plateau(), metric="val_los")) as guard:
        for _ in range(2):
            guard.report({"val_loss": 1.0})
        assert caplog.messages == []
    (message,) = caplog.messages
    assert message.startswith("`val_los` was in none of the first 2 reports")
    assert message.endswith("Did you mean `val_loss`?")


def test_what_is_missing_in_a_training_that_was_stopped_is_not_named(
    caplog: Any,
) -> None:
    """It might have come yet."""
    with TrialGuard(policy(metric="val_loss")) as guard:
        guard.missed({"train_loss": 1.0})
        guard.check_step(NAN)
    assert caplog.messages == []


def test_a_stop_is_final() -> None:
    """A loop that goes on is told again, with the same step."""
    guard = guarded()
    stops(guard, [NAN, 1.0])
    assert guard.check_step(0.5).step == 0
    assert guard.check_epoch(0.1).reason == "non_finite"


def test_the_optimizer_does_not_step_on_dead_weights() -> None:
    """A loop that breaks on the verdict keeps the weights of before the bad loss."""
    guard, model = guarded(), chain(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        loss = backward(model, NAN if step == 3 else 1.0)
        if guard.check_step(loss, model).stop:
            break
        optimizer.step()
    assert step == 3
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_steps_go_by_the_number_that_the_loop_gives() -> None:
    """A resumed loop counts on from its own step."""
    guard = guarded()
    guard.check_step(1.0, step=700)
    assert guard.check_step(NAN, step=701).step == 701
    assert guard.record().step == 701


def test_counting_goes_on_after_a_given_number() -> None:
    """A step without a number is the one after the last."""
    guard = guarded()
    guard.check_step(1.0, step=7)
    assert guard.check_step(NAN).step == 8


def test_an_epoch_is_judged_on_the_metric() -> None:
    """Patience counts epochs, from 0."""
    guard = guarded(Plateau(patience=3, holds=()))
    verdicts = [guard.check_epoch(1.0) for _ in range(4)]
    assert [v.stop for v in verdicts] == [False, False, False, True]
    assert (verdicts[-1].reason, verdicts[-1].step) == ("plateau", 3)


def test_steps_between_epochs_do_not_count_as_epochs() -> None:
    """Losses of single steps are no observations of the metric."""
    guard = guarded(Plateau(patience=2, holds=()))
    for _ in range(2):
        stops(guard, [5.0] * 10)
        assert not guard.check_epoch(1.0).stop
    stops(guard, [5.0] * 10)
    assert guard.check_epoch(1.0).step == 2


def test_a_metric_named_loss_is_not_taken_from_steps() -> None:
    """The loss of a batch and the loss of an epoch are two streams."""
    guard = TrialGuard(policy(Plateau(patience=2, holds=()), metric="loss"))
    guard.check_epoch(1.0)
    assert not any(stops(guard, [9.0] * 20))
    assert not guard.check_epoch(0.5).stop
    assert guard.record().best_value == 0.5


def test_the_norm_is_measured_when_the_loop_gives_the_model() -> None:
    """A gradient that is not finite is seen beside a loss that is."""
    guard, model = guarded(NonFinite(norm_alone=0)), chain(3, 2)
    loss = backward(model)
    assert not guard.check_step(loss, model).stop
    backward(model)
    assert model[0].weight.grad is not None
    model[0].weight.grad[0, 0] = NAN
    verdict = guard.check_step(loss, model)
    assert verdict.cause is not None
    assert (verdict.reason, verdict.cause.metric) == ("non_finite", "grad_norm")


def test_a_given_norm_saves_the_pass_over_the_gradients() -> None:
    """With ``grad_norm`` the model's gradients are not read."""
    guard, model = guarded(NonFinite(norm_alone=0)), chain(3, 2)
    loss = backward(model)
    assert model[0].weight.grad is not None
    model[0].weight.grad.fill_(NAN)
    assert not guard.check_step(loss, model, grad_norm=torch.tensor(1.0)).stop


def test_an_exploding_norm_stops_at_its_third_spike() -> None:
    """The rule on explosions counts optimizer steps."""
    rule = GradientExplosion(min_history=5, k=3, holds=())
    guard = guarded(rule)
    norms = [1.0] * 6 + [50.0] * 3
    verdicts = [guard.check_step(1.0, grad_norm=norm) for norm in norms]
    assert [v.stop for v in verdicts].index(True) == 8
    assert verdicts[-1].reason == "gradient_explosion"


def test_warm_up_is_counted_in_reports() -> None:
    """Steps before the end of the reports' warm-up warn and do not cut."""
    rule = GradientExplosion(min_history=3, k=1, holds=())
    guard = TrialGuard(policy(rule, warmup_steps=2))
    norms = [1.0, 1.0, 1.0, 50.0]

    def epoch() -> list[bool]:
        found = [guard.check_step(1.0, grad_norm=norm).stop for norm in norms]
        guard.check_epoch(1.0)
        return found

    assert [any(epoch()) for _ in range(4)] == [False, False, False, True]
    assert guard.verdict.step == 15
    assert guard.record().warnings


def test_warm_up_is_counted_in_steps_where_the_loop_says_so() -> None:
    """With ``unit="step"`` the policy's numbers are optimizer steps."""
    rule = GradientExplosion(min_history=3, k=1, holds=())
    guard = TrialGuard(policy(rule, warmup_steps=5), unit="step")
    norms = [1.0, 1.0, 1.0, 50.0, 1.0, 50.0]
    found = [guard.check_step(1.0, grad_norm=norm).stop for norm in norms]
    assert found == [False] * 5 + [True]


def test_reports_of_a_loop_that_counts_steps_hold_its_step() -> None:
    """With ``unit="step"`` a report is one of the newest optimizer step."""
    guard = TrialGuard(policy(Plateau(patience=1, holds=())), unit="step")
    for _ in range(2):
        stops(guard, [1.0] * 50)
        verdict = guard.check_epoch(1.0)
    assert verdict.step == 99


def test_accumulated_batches_are_one_step() -> None:
    """Only the last call of a step is judged, with the losses of all."""
    guard = guarded(accumulate=3)
    assert stops(guard, [1.0, NAN, 1.0, 1.0]) == [False, False, True, True]
    assert guard.verdict.step == 0


def test_the_learning_rate_is_read_from_the_optimizer() -> None:
    """The largest of all groups is reported."""
    guard, model = guarded(), chain(3, 2, 1)
    groups = [{"params": layer.parameters()} for layer in model]
    optimizer = torch.optim.SGD([{**groups[0], "lr": 0.5}, groups[1]], lr=0.1)
    guard.check_step(1.0, optimizer=optimizer)
    assert guard.row({"val_loss": 1.0})["lr"] == 0.5


def test_a_row_carries_the_health_since_the_last_report() -> None:
    """The worst norm, the newest rate; the next row begins anew."""
    guard = guarded()
    for norm, lr in ((1.0, 0.1), (7.0, 0.2), (2.0, 0.3)):
        guard.check_step(1.0, grad_norm=norm, lr=lr)
    row = guard.row({"val_loss": 0.5})
    assert (row["grad_norm"], row["lr"], row["val_loss"]) == (7.0, 0.3, 0.5)
    assert row["step_time_s"] > 0.0
    guard.check_step(1.0, grad_norm=3.0, lr=0.4)
    assert guard.row({"val_loss": 0.4})["grad_norm"] == 3.0


def test_a_row_keeps_its_columns() -> None:
    """A signal that was there once is None where it is missing: a table needs it."""
    guard = guarded()
    guard.check_step(1.0, grad_norm=1.0)
    first = guard.row({"val_loss": 0.5})
    second = guard.row({"val_loss": 0.4})
    assert first.keys() == second.keys()
    assert second["grad_norm"] is None


def test_a_row_uses_the_policys_keys() -> None:
    """Signals are reported where the policy says that they lie."""
    guard = TrialGuard(policy(keys=Keys(grad_norm="optim/norm", lr=())))
    guard.check_step(1.0, grad_norm=1.0, lr=0.1)
    row = guard.row({"val_loss": 0.5})
    assert row["optim/norm"] == 1.0
    assert not {"grad_norm", "lr"} & row.keys()


def test_what_the_loop_reports_itself_stands() -> None:
    """A health signal does not replace a value that the trial reports."""
    guard = guarded()
    guard.check_step(1.0, grad_norm=1.0)
    assert guard.row({"val_loss": 0.5, "grad_norm": 9.0})["grad_norm"] == 9.0


def test_a_row_of_a_stopped_trial_says_why() -> None:
    """A class that returns its rows ends with the reason and ``done``."""
    guard = guarded()
    guard.check_step(NAN)
    row = guard.row({"val_loss": 0.5})
    assert (row["done"], row["tune_guard/reason"]) == (True, "non_finite")


def test_every_row_has_the_guards_columns() -> None:
    """The five values are there from the first row on, as a table needs it."""
    guard = guarded()
    healthy = guard.row({"val_loss": 0.5})
    guard.check_step(NAN)
    sick = guard.row({"val_loss": 0.5})
    assert stamp_in(healthy).keys() == stamp_in(sick).keys() == set(KEYS)
    status = (healthy["tune_guard/status"], sick["tune_guard/status"])
    assert status == ("running", "stopped")


def test_a_tensor_in_a_report_becomes_a_number() -> None:
    """Engines refuse tensors."""
    row = guarded().row({"val_loss": torch.tensor(0.5, requires_grad=True)})
    assert row["val_loss"] == 0.5
    assert type(row["val_loss"]) is float


@pytest.mark.parametrize("bad", [torch.tensor([1.0, NAN]), torch.tensor([NAN, 2.0])])
def test_a_loss_of_many_elements_is_judged_by_its_mean(
    bad: torch.Tensor, caplog: pytest.LogCaptureFixture
) -> None:
    """One notice; the verdict is that of the reduced loss."""
    guard = guarded()
    good = torch.tensor([1.0, 2.0])
    with caplog.at_level(logging.WARNING, "tune_guard"):
        assert stops(guard, [good, good, bad]) == [False, False, True]
    assert [r.message for r in caplog.records if "elements" in r.message] == [
        "The loss has 2 elements: their mean is judged. Reduce it to one number."
    ]


def test_a_model_without_gradients_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Called before ``backward()``, the guard says so; the loss is still judged."""
    guard, model = guarded(), chain(3, 2)
    with caplog.at_level(logging.WARNING, "tune_guard"):
        assert stops(guard, [1.0, 1.0, NAN], model=model) == [False, False, True]
    assert sum("has a gradient" in r.message for r in caplog.records) == 1


def test_a_report_without_the_metric_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After ten reports, with the nearest key that did come."""
    guard = guarded()
    with caplog.at_level(logging.WARNING, "tune_guard"):
        for _ in range(10):
            guard.row({"valid_loss": 1.0})
    assert any("Did you mean `valid_loss`?" in r.message for r in caplog.records)


class Strange:
    """A loss whose every use fails."""

    def detach(self) -> Any:
        """Fail."""
        msg = "no"
        raise RuntimeError(msg)


def test_nothing_is_raised_into_the_training(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What cannot be read is named once; the next step is judged."""
    guard = guarded()
    with caplog.at_level(logging.WARNING, "tune_guard"):
        assert stops(guard, [Strange(), Strange(), 1.0, NAN]) == [
            False,
            False,
            False,
            True,
        ]
    assert sum("could not take a step" in r.message for r in caplog.records) == 1


def test_gradients_that_cannot_be_measured_leave_the_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model of an unknown kind costs the norm, not the verdict."""
    guard = guarded()
    model = chain(3, 2)
    monkeypatch.setattr(model, "named_parameters", lambda: 1 / 0)
    assert stops(guard, [1.0, NAN], model=model) == [False, True]


def test_a_skipped_step_is_an_overflow() -> None:
    """With a gradient scaler a norm that is not finite is no fault."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    scaler.scale(torch.ones(()))
    guard = guarded(NonFinite(norm_alone=0))
    found = [guard.check_step(1.0, grad_norm=INF, scaler=scaler) for _ in range(6)]
    assert not any(verdict.stop for verdict in found)
    row = guard.row({"val_loss": 1.0})
    assert (row["step_skipped"], row["amp_scale"]) == (True, 2.0**16)


def test_a_scale_that_collapses_stops() -> None:
    """Twenty skipped steps in a row are no longer how loss scaling works."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    scaler.scale(torch.ones(()))
    guard = guarded(AmpScaleCollapse())
    found = [guard.check_step(1.0, grad_norm=INF, scaler=scaler) for _ in range(20)]
    assert [v.stop for v in found].index(True) == 19
    assert guard.verdict.reason == "amp_scale_collapse"


def test_a_state_goes_on_in_another_process() -> None:
    """Best, patience and the count of steps survive, as plain values."""
    first = guarded(Plateau(patience=3, holds=()))
    stops(first, [1.0] * 5)
    for _ in range(3):
        first.check_epoch(1.0)
    second = guarded(Plateau(patience=3, holds=()))
    second.load_state_dict(first.state_dict())
    assert second.check_epoch(1.0).step == 3
    assert second.record().attempt == 2


@pytest.mark.parametrize("state", [{}, {"version": 0}, {"version": 1, "steps": "x"}])
def test_a_damaged_state_starts_anew(state: dict[str, Any]) -> None:
    """It is named, and the guard works."""
    guard = guarded()
    guard.load_state_dict(state)
    assert stops(guard, [1.0, NAN]) == [False, True]


def test_a_guard_is_pickled_at_any_time() -> None:
    """The copy goes on where the guard was."""
    guard = guarded(Plateau(patience=3, holds=()))
    guard.check_step(1.0, chain(3, 2))
    for _ in range(3):
        guard.check_epoch(1.0)
    copy: TrialGuard = pickle.loads(pickle.dumps(guard))  # noqa: S301
    assert copy.check_epoch(1.0).reason == "plateau"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "epoch"}, "`unit` must be report or step, but got 'epoch'"),
        ({"accumulate": 0}, "`accumulate` must be >= 1, but got 0"),
        ({"gpu": -1}, "`gpu` must be 'auto', 'off' or a number"),
        ({"deciding_rank": True}, "`deciding_rank` must be a rank >= 0"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], message: str) -> None:
    """At construction, by name and with the way out."""
    with pytest.raises(ConfigError, match=message):
        guarded(**options)


def test_a_policy_needs_a_mode() -> None:
    """Without an Optuna study nothing says which direction is better."""
    with pytest.raises(ConfigError, match="`mode` must be 'min' or 'max'"):
        TrialGuard(Policy.default("val_loss"))
    with pytest.raises(ConfigError, match="`policy` must be a Policy"):
        TrialGuard("val_loss")  # type: ignore[arg-type]


def test_waiting_for_data_is_timed_apart() -> None:
    """Batches come through unchanged; the row says how long they took."""
    guard = guarded()
    batches = []
    for batch in guard.data([1, 2, 3]):
        batches.append(batch)
        guard.check_step(1.0)
    assert batches == [1, 2, 3]
    assert guard.row({"val_loss": 1.0})["data_time_s"] >= 0.0


def test_a_guard_lets_go_of_the_model() -> None:
    """After ``close`` no hook is left on it."""
    model = chain(3, 2)
    with guarded(trace=True) as guard:
        guard.check_step(backward(model), model)
        assert any(m._forward_hooks for m in model.modules())
    assert not any(m._forward_hooks for m in model.modules())


class Dead(nn.Module):
    """A layer whose output is NaN."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return NaN."""
        return inputs * NAN


def test_trace_names_the_output_that_went_first() -> None:
    """Hooks are set at the first step, so that the second can be traced."""
    model = nn.Sequential(nn.Linear(3, 3), Dead(), nn.Linear(3, 1))
    guard = guarded(trace=True)
    guard.check_step(1.0, model)
    verdict = guard.check_step(backward(model), model)
    assert "The output of `1` went first." in verdict.message


def test_a_model_that_is_watched_is_traced_from_its_first_step() -> None:
    """Without ``trace`` nothing is hooked."""
    model = nn.Sequential(nn.Linear(3, 3), Dead(), nn.Linear(3, 1))
    guarded().watch(model)
    assert not any(m._forward_hooks for m in model.modules())
    guard = guarded(trace=True)
    guard.watch(model)
    verdict = guard.check_step(backward(model), model)
    assert "The output of `1` went first." in verdict.message


def test_an_exception_is_passed_through() -> None:
    """The context manager swallows nothing."""
    with pytest.raises(KeyError), guarded():
        raise KeyError
