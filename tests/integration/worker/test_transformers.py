"""GuardCallback in real trainings of the Hugging Face Trainer."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch
from optuna.trial import TrialState
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from tests.integration.worker.tuning import tuned_once
from tune_guard import Policy
from tune_guard.optuna import GuardPruner
from tune_guard.rules import GradientExplosion, NonFinite, Plateau
from tune_guard.transformers import GuardCallback

pytestmark = pytest.mark.filterwarnings("ignore")

NAN = float("nan")
ROWS = [{"x": torch.full((4,), 1.0 + i / 50)} for i in range(16)]


def policy(*rules: Any, **more: Any) -> Policy:
    """Return a policy of few rules; NaN alone when none is named."""
    rules = rules or (NonFinite(),)
    return Policy(metric="eval_loss", mode="min", rules=rules, **more)


class Tiny(nn.Module):
    """Two layers whose loss falls sick as told; evaluation has a loss of its own."""

    def __init__(
        self,
        *,
        bad_batch: int = -1,
        factor: float = NAN,
        evaluated: Callable[[int], float] = lambda n: 1.0 / n,
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
        self.bad_batch, self.factor, self.evaluated = bad_batch, factor, evaluated
        self.batches = 0

    def forward(
        self, x: torch.Tensor, *, return_loss: bool = True
    ) -> dict[str, torch.Tensor]:
        """Return the loss; bad from a batch on. Its default says that there is one."""
        loss = self.head(self.body(x)).pow(2).mean()
        if not self.training:
            value = self.evaluated(max(1, self.batches))
            return {"loss": torch.tensor(value), "logits": torch.zeros(len(x))}
        if 0 <= self.bad_batch <= self.batches:
            loss = loss * self.factor
        self.batches += 1
        return {"loss": loss}

    def is_finite(self) -> bool:
        """Whether all weights are."""
        return all(bool(torch.isfinite(p).all()) for p in self.parameters())


def trainer(model: Any, callback: Any, path: Path, **more: Any) -> Trainer:
    """Return a Trainer of eight steps an epoch on the CPU, without any output."""
    options = {
        "output_dir": str(path),
        "num_train_epochs": 5,
        "per_device_train_batch_size": 2,
        "per_device_eval_batch_size": 16,
        "learning_rate": 1e-3,
        "logging_steps": 4,
        "eval_strategy": "epoch",
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
        **more,
    }
    given = {"model_init": model} if callable(model) and not _is_module(model) else {}
    return Trainer(
        model=None if given else model,
        args=TrainingArguments(**options),
        train_dataset=ROWS,
        eval_dataset=ROWS,
        callbacks=[callback],
        **given,
    )


def _is_module(model: Any) -> bool:
    return isinstance(model, nn.Module)


def record_of(callback: GuardCallback) -> Any:
    """Return the record of a training that was watched."""
    assert callback.guard is not None
    return callback.guard.record()


def test_a_nan_that_the_trainer_hides_ends_the_training(tmp_path: Path) -> None:
    """At its step, with finite weights, though the log shows healthy losses."""
    model, callback = Tiny(bad_batch=11), GuardCallback(policy())
    training = trainer(model, callback, tmp_path)
    training.train()
    record = record_of(callback)
    assert (record.reason, record.step, record.metric) == ("non_finite", 11, "loss")
    assert training.state.global_step == 12
    assert model.is_finite()
    logged = [log["loss"] for log in training.state.log_history if "loss" in log]
    assert logged
    assert all(math.isfinite(loss) for loss in logged)


def test_a_loss_of_zero_beside_a_nan_norm_is_seen_in_the_log(tmp_path: Path) -> None:
    """Where the Trainer cannot be looked up, what it logs is judged."""
    rule = NonFinite()
    callback = GuardCallback(policy(rule))
    training = trainer(Tiny(), callback, tmp_path)
    callback.on_train_begin(training.args, training.state, training.control)
    for step in (4, 8):
        training.state.global_step = step
        logs = {"loss": 0.0 if step == 8 else 1.0, "grad_norm": NAN if step == 8 else 1}
        callback.on_log(training.args, training.state, training.control, logs=logs)
    assert training.control.should_training_stop
    assert (record_of(callback).metric, record_of(callback).step) == ("grad_norm", 8)


def test_the_norm_is_taken_before_clipping(tmp_path: Path) -> None:
    """Every step, though the Trainer logs one in a while and clips all."""
    rule = GradientExplosion(min_history=5, k=2, holds=())
    model, callback = Tiny(bad_batch=10, factor=1e4), GuardCallback(policy(rule))
    trainer(model, callback, tmp_path, max_grad_norm=0.1).train()
    record = record_of(callback)
    assert (record.reason, record.step) == ("gradient_explosion", 11)


def missing(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was said about keys that never came."""
    return [text for text in caplog.messages if "was in none of the first" in text]


@pytest.mark.parametrize(("epochs", "reports"), [(8, 10), (1, 3)])
def test_without_evaluation_the_metric_is_named_as_missing(
    tmp_path: Path, caplog: Any, epochs: int, reports: int
) -> None:
    """Once, after ten logs or at the end of fewer, with what to do about it."""
    callback = GuardCallback(policy())
    more = {"eval_strategy": "no", "num_train_epochs": epochs}
    trainer(Tiny(), callback, tmp_path, **more).train()
    (message,) = missing(caplog)
    assert f"`eval_loss` was in none of the first {reports} reports" in message
    assert "evaluation is off" in message
    assert 'TrainingArguments(eval_strategy="epoch")' in message


def test_a_misspelt_metric_is_named_at_the_end_of_a_short_training(
    tmp_path: Path, caplog: Any
) -> None:
    """Five evaluations, none with it."""
    callback = GuardCallback(Policy.default("evall_loss", "min"))
    trainer(Tiny(), callback, tmp_path).train()
    (message,) = missing(caplog)
    assert "`evall_loss` was in none of the first 5 reports" in message
    assert "Did you mean `eval_loss`" in message


def test_evaluation_that_is_waited_for_is_not_missing(
    tmp_path: Path, caplog: Any
) -> None:
    """Many logs before the only evaluation."""
    callback = GuardCallback(policy())
    more = {"eval_strategy": "steps", "eval_steps": 40, "logging_steps": 1}
    trainer(Tiny(), callback, tmp_path, **more).train()
    assert missing(caplog) == []


def test_without_clipping_the_norm_is_seen_as_well(tmp_path: Path) -> None:
    """The Trainer measures it for its log."""
    rule = GradientExplosion(min_history=5, k=2, holds=())
    model, callback = Tiny(bad_batch=10, factor=1e4), GuardCallback(policy(rule))
    trainer(model, callback, tmp_path, max_grad_norm=0.0).train()
    assert record_of(callback).step == 11


def test_an_evaluation_is_judged_on_the_metric(tmp_path: Path) -> None:
    """The policy's steps are the Trainer's."""
    callback = GuardCallback(policy(Plateau(patience=2, holds=())))
    training = trainer(Tiny(evaluated=lambda _: 1.0), callback, tmp_path)
    training.train()
    assert (record_of(callback).reason, record_of(callback).step) == ("plateau", 24)
    assert training.state.global_step == 24


def test_accumulated_batches_are_one_step(tmp_path: Path) -> None:
    """Four batches a step: the bad batch 9 belongs to step 2."""
    model, callback = Tiny(bad_batch=9), GuardCallback(policy())
    trainer(model, callback, tmp_path, gradient_accumulation_steps=4).train()
    assert record_of(callback).step == 2
    assert model.is_finite()


def test_a_healthy_training_runs_to_its_end(tmp_path: Path) -> None:
    """And the Trainer is left as it was."""
    model, callback = Tiny(), GuardCallback(policy())
    training = trainer(model, callback, tmp_path)
    training.train()
    assert training.state.global_step == 40
    assert "training_step" not in vars(training)
    assert "clip_grad_norm_" not in vars(training.accelerator)


def test_a_real_model_names_its_first_bad_module(tmp_path: Path) -> None:
    """A tiny GPT-2 whose last block holds a bad weight."""
    config = GPT2Config(
        vocab_size=16, n_positions=8, n_embd=8, n_layer=2, n_head=2, loss_type=None
    )
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        model.transformer.h[1].mlp.c_fc.weight[0, 0] = NAN
    tokens = [{"input_ids": torch.arange(8), "labels": torch.arange(8)}] * 8
    callback = GuardCallback(policy())
    training = trainer(model, callback, tmp_path, eval_strategy="no")
    training.train_dataset = tokens
    training.train()
    assert record_of(callback).step == 0
    assert "The weights of `transformer.h.1.mlp.c_fc` are bad" in (
        record_of(callback).message
    )


def test_out_of_memory_has_its_reason(tmp_path: Path) -> None:
    """The Trainer passes the error on."""

    class Hungry(Tiny):
        def forward(
            self, x: torch.Tensor, *, return_loss: bool = True
        ) -> dict[str, torch.Tensor]:
            raise torch.OutOfMemoryError

    callback = GuardCallback(policy())
    with pytest.raises(torch.OutOfMemoryError):
        trainer(Hungry(), callback, tmp_path).train()
    assert record_of(callback).reason == "cuda_oom"


def test_the_callback_is_pickled_with_the_trainer(tmp_path: Path) -> None:
    """Ray ships both to its workers, also after a training."""
    callback = GuardCallback(policy())
    trainer(Tiny(), callback, tmp_path, num_train_epochs=1).train()
    copy = pickle.loads(pickle.dumps(callback))  # noqa: S301
    assert copy._taps == []


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_an_optuna_trial_is_pruned_with_its_reason(tmp_path: Path) -> None:
    """In an objective of one's own, in the middle of an epoch."""
    rules = policy()

    def objective(trial: optuna.Trial) -> float:
        callback = GuardCallback(rules, trial=trial)
        trainer(Tiny(bad_batch=11), callback, tmp_path).train()
        return 1.0

    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(
        study_name="study", storage=url, pruner=GuardPruner(policy=rules)
    )
    study.optimize(objective, n_trials=1)
    (trial,) = optuna.load_study(study_name="study", storage=url).trials
    assert trial.state is TrialState.PRUNED
    assert trial.user_attrs["tune_guard/reason"] == "non_finite"
    assert trial.user_attrs["tune_guard/step"] == 11
    assert list(trial.intermediate_values) == [8]


@pytest.mark.parametrize(
    ("fate", "reason", "steps"),
    [("nan", "non_finite", [8]), ("flat", "plateau", [8, 16, 24])],
)
def test_the_trainers_own_search_is_pruned_with_its_reason(
    tmp_path: Path, fate: str, reason: str, steps: list[int]
) -> None:
    """It hides the trial; each value is reported once."""
    rules = policy(NonFinite(), Plateau(patience=2, holds=()))
    url = f"sqlite:///{tmp_path / 'study.db'}"
    training = trainer(
        lambda: Tiny(bad_batch=11 if fate == "nan" else -1, evaluated=lambda _: 1.0),
        GuardCallback(rules),
        tmp_path,
    )
    with pytest.raises(ValueError, match="Record does not exist"):
        training.hyperparameter_search(
            backend="optuna",
            hp_space=lambda t: {"learning_rate": t.suggest_float("lr", 1e-4, 1e-3)},
            n_trials=1,
            pruner=GuardPruner(policy=rules),
            study_name="study",
            storage=url,
        )
    (trial,) = optuna.load_study(study_name="study", storage=url).trials
    assert trial.state is TrialState.PRUNED
    assert trial.user_attrs["tune_guard/reason"] == reason
    assert list(trial.intermediate_values) == steps


def tuned(config: dict[str, Any]) -> None:
    """Train in a Tune function."""
    rules = policy(NonFinite(), Plateau(patience=2, holds=()))
    model = Tiny(bad_batch=config["bad_batch"], evaluated=lambda _: 1.0)
    trainer(model, GuardCallback(rules), Path(config["path"])).train()


@pytest.mark.ray
@pytest.mark.parametrize(
    ("bad_batch", "reason", "rows"), [(11, "non_finite", 2), (-1, "plateau", 3)]
)
def test_a_ray_trial_is_stopped_with_its_reason(
    cluster: None, tmp_path: Path, bad_batch: int, reason: str, rows: int
) -> None:
    """Rows hold the health signals; the last one the reason."""
    config = {"bad_batch": bad_batch, "path": str(tmp_path)}
    rules = policy(NonFinite(), Plateau(patience=2, holds=()))
    result = tuned_once(tuned, config, rules, tmp_path)
    assert result.error is None
    assert result.metrics["tune_guard/reason"] == reason
    assert result.metrics["training_iteration"] == rows
