"""GuardCallback in real Lightning trainings of a tiny model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import optuna
import pytest
import torch
from optuna.trial import TrialState
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.integration.worker.tuning import tuned_once
from tune_guard import Policy
from tune_guard.lightning import GuardCallback
from tune_guard.optuna import GuardPruner
from tune_guard.rules import GradientExplosion, NonFinite, Plateau

pytestmark = pytest.mark.filterwarnings("ignore")

BATCHES = 8
NAN = float("nan")


def policy(*rules: Any, metric: str = "val_loss", **more: Any) -> Policy:
    """Return a policy of few rules; NaN alone when none is named."""
    return Policy(metric=metric, mode="min", rules=rules or (NonFinite(),), **more)


class Tiny(pl.LightningModule):
    """Two layers whose loss, gradients and validation fall sick as told."""

    def __init__(
        self,
        *,
        bad_step: int = -1,
        factor: float = NAN,
        val: Callable[[int], float] = lambda epoch: 1.0 / (epoch + 1),
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
        self.bad_step, self.factor, self.val = bad_step, factor, val
        self.batches = 0
        self.steps = 0

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        """Return the loss; bad from a batch on."""
        loss = self.head(self.body(batch[0])).pow(2).mean()
        if 0 <= self.bad_step <= self.batches:
            loss = loss * self.factor
        self.batches += 1
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Log a validation loss that goes by the epoch."""
        value = NAN if self.trainer.sanity_checking else self.val(self.current_epoch)
        self.log("val_loss", value)

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Count the steps."""
        super().optimizer_step(*args, **kwargs)
        self.steps += 1

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return plain SGD."""
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def is_finite(self) -> bool:
        """Whether all weights are."""
        return all(bool(torch.isfinite(p).all()) for p in self.parameters())


def fit(module: Tiny, callback: GuardCallback, path: Path, **more: Any) -> Any:
    """Train for five epochs of eight batches on the CPU, without any output."""
    loader = DataLoader(TensorDataset(torch.ones(BATCHES * 2, 4)), batch_size=2)
    options = {
        "max_epochs": 5,
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": str(path),
        **more,
    }
    trainer = pl.Trainer(callbacks=[callback], **options)
    validation = None if more.get("limit_val_batches") == 0 else loader
    trainer.fit(module, loader, validation)
    return trainer


def test_a_nan_ends_the_training_at_its_step(tmp_path: Path) -> None:
    """The trainer stops in the middle of the epoch, with finite weights."""
    module, callback = Tiny(bad_step=11), GuardCallback(policy())
    fit(module, callback, tmp_path)
    assert callback.guard is not None
    record = callback.guard.record()
    assert (record.reason, record.step) == ("non_finite", 11)
    assert module.steps == 12
    assert module.is_finite()


def test_the_norm_is_taken_before_clipping(tmp_path: Path) -> None:
    """An explosion is seen, though the trainer clips it away."""
    rule = GradientExplosion(min_history=5, k=2, holds=())
    module, callback = Tiny(bad_step=10, factor=1e4), GuardCallback(policy(rule))
    fit(module, callback, tmp_path, gradient_clip_val=0.1)
    assert callback.guard is not None
    record = callback.guard.record()
    assert (record.reason, record.step) == ("gradient_explosion", 11)


def test_a_validation_is_judged_on_the_metric(tmp_path: Path) -> None:
    """Patience counts validations; the sanity check's NaN is none."""
    module = Tiny(val=lambda _: 1.0)
    callback = GuardCallback(policy(NonFinite(), Plateau(patience=2, holds=())))
    trainer = fit(module, callback, tmp_path)
    assert callback.guard is not None
    record = callback.guard.record()
    assert (record.reason, record.step) == ("plateau", 2)
    assert trainer.current_epoch == 3


def test_a_metric_of_training_is_judged_once_an_epoch(tmp_path: Path) -> None:
    """At the epoch's end; validation would only show the last epoch's value."""
    rule = Plateau(patience=3, min_delta=100.0, holds=())
    callback = GuardCallback(policy(rule, metric="train_loss"))
    trainer = fit(Tiny(), callback, tmp_path)
    assert callback.guard is not None
    assert callback.guard.record().step == 3
    assert trainer.current_epoch == 4


def test_without_validation_the_training_epoch_is_judged(tmp_path: Path) -> None:
    """A module may have no validation at all."""
    rule = Plateau(patience=1, min_delta=100.0, holds=())
    callback = GuardCallback(policy(rule, metric="train_loss"))
    trainer = fit(Tiny(), callback, tmp_path, limit_val_batches=0)
    assert trainer.current_epoch == 2


def test_epochs_without_validation_repeat_no_value(tmp_path: Path) -> None:
    """Validation every second epoch: patience counts the real ones."""
    module = Tiny(val=lambda _: 1.0)
    callback = GuardCallback(policy(Plateau(patience=2, holds=())))
    trainer = fit(module, callback, tmp_path, max_epochs=20, check_val_every_n_epoch=2)
    assert trainer.current_epoch == 6


def missing(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was said about keys that never came."""
    return [text for text in caplog.messages if "was in none of the first" in text]


@pytest.mark.parametrize(("epochs", "reports"), [(15, 10), (3, 3)])
@pytest.mark.parametrize("batches", [None, 0], ids=["validated", "training_only"])
def test_a_misspelt_metric_is_named_with_the_nearest_key(
    tmp_path: Path, caplog: Any, epochs: int, reports: int, batches: int | None
) -> None:
    """Once, after ten epochs or at the end of fewer, with validation and without."""
    callback = GuardCallback(Policy.default("vald_loss", "min"))
    more = {"max_epochs": epochs, "limit_val_batches": batches}
    fit(Tiny(), callback, tmp_path, **more)
    (message,) = missing(caplog)
    name = "train_loss" if batches == 0 else "val_loss"
    assert f"`vald_loss` was in none of the first {reports} reports" in message
    assert f"`{name}`" in message.partition("Did you mean")[2]


@pytest.mark.parametrize(
    ("metric", "more"),
    [
        ("train_loss", {"val_check_interval": 1}),
        ("val_loss", {"check_val_every_n_epoch": 12, "max_epochs": 24}),
    ],
)
def test_a_metric_that_is_waited_for_is_not_missing(
    tmp_path: Path, caplog: Any, metric: str, more: dict[str, Any]
) -> None:
    """Many validations before an epoch ends, many epochs before the first of them."""
    callback = GuardCallback(policy(metric=metric))
    fit(Tiny(), callback, tmp_path, **more)
    assert missing(caplog) == []


def test_accumulated_batches_are_one_step(tmp_path: Path) -> None:
    """Four batches a step: the bad batch 17 belongs to step 4."""
    module, callback = Tiny(bad_step=17), GuardCallback(policy())
    fit(module, callback, tmp_path, accumulate_grad_batches=4)
    assert callback.guard is not None
    assert callback.guard.record().step == 4
    assert module.is_finite()


def test_a_healthy_training_runs_to_its_end(tmp_path: Path) -> None:
    """All epochs, and nothing is left on the model."""
    module, callback = Tiny(), GuardCallback(policy(), trace=True)
    trainer = fit(module, callback, tmp_path)
    assert trainer.current_epoch == 5
    assert not any(m._forward_hooks for m in module.modules())


def test_a_fast_dev_run_is_not_watched(tmp_path: Path) -> None:
    """One batch proves nothing."""
    callback = GuardCallback(policy())
    fit(Tiny(bad_step=0), callback, tmp_path, fast_dev_run=True)
    assert callback.guard is None


def test_patience_goes_on_after_a_checkpoint(tmp_path: Path) -> None:
    """The guard's state is in Lightning's checkpoint."""
    rule = Plateau(patience=4, holds=())
    first = GuardCallback(policy(rule))
    trainer = fit(Tiny(val=lambda _: 1.0), first, tmp_path, max_epochs=3)
    trainer.save_checkpoint(tmp_path / "saved.ckpt")
    second = GuardCallback(policy(rule))
    loader = DataLoader(TensorDataset(torch.ones(4, 4)), batch_size=2)
    again = pl.Trainer(
        max_epochs=10,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[second],
    )
    module = Tiny(val=lambda _: 1.0)
    again.fit(module, loader, loader, ckpt_path=tmp_path / "saved.ckpt")
    assert second.guard is not None
    assert second.guard.record().step == 4


def test_out_of_memory_has_its_reason(tmp_path: Path) -> None:
    """Lightning passes the error on; the record says what it was."""

    class Hungry(Tiny):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            raise torch.OutOfMemoryError

    callback = GuardCallback(policy())
    with pytest.raises(torch.OutOfMemoryError):
        fit(Hungry(), callback, tmp_path)
    assert callback.guard is not None
    assert callback.guard.record().reason == "cuda_oom"


def test_half_precision_is_read_unscaled(tmp_path: Path) -> None:
    """The loss that Lightning shows is scaled; what is judged is not."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    plugin = pl.plugins.precision.MixedPrecision("16-mixed", "cpu", scaler)
    seen: list[float] = []

    class Watching(GuardCallback):
        def on_before_optimizer_step(self, *args: Any) -> None:
            assert self._loss is not None
            seen.append(float(self._loss))
            super().on_before_optimizer_step(*args)

    callback = Watching(policy())
    fit(Tiny(), callback, tmp_path, plugins=[plugin], max_epochs=1)
    assert callback.guard is not None
    assert max(seen) < 10.0
    assert not callback.guard.verdict.stop


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Return a storage of each kind."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
    else:
        yield optuna.storages.InMemoryStorage()


@pytest.mark.parametrize(
    ("fate", "reason", "values"), [("nan", "non_finite", 1), ("flat", "plateau", 3)]
)
def test_an_optuna_trial_is_pruned_with_its_reason(
    storage: Any, tmp_path: Path, fate: str, reason: str, values: int
) -> None:
    """In the middle of an epoch, and at a validation."""
    rules = policy(NonFinite(), Plateau(patience=2, holds=()))

    def objective(trial: optuna.Trial) -> float:
        bad = 11 if fate == "nan" else -1
        module = Tiny(bad_step=bad, val=lambda _: 1.0)
        fit(module, GuardCallback(rules, trial=trial), tmp_path)
        return 1.0

    study = optuna.create_study(
        study_name="study", storage=storage, pruner=GuardPruner(policy=rules)
    )
    study.optimize(objective, n_trials=1)
    (trial,) = optuna.load_study(study_name="study", storage=storage).trials
    assert trial.state is TrialState.PRUNED
    assert trial.user_attrs["tune_guard/reason"] == reason
    assert len(trial.intermediate_values) == values


def tuned(config: dict[str, Any]) -> None:
    """Train in a Tune function."""
    module = Tiny(bad_step=config["bad_step"], val=lambda _: 1.0)
    rules = policy(NonFinite(), Plateau(patience=2, holds=()))
    fit(module, GuardCallback(rules), Path(config["path"]))


@pytest.mark.ray
@pytest.mark.parametrize(
    ("bad_step", "reason", "rows"), [(11, "non_finite", 2), (-1, "plateau", 3)]
)
def test_a_ray_trial_is_stopped_with_its_reason(
    cluster: None, tmp_path: Path, bad_step: int, reason: str, rows: int
) -> None:
    """Rows hold the health signals; the last one the reason."""
    config = {"bad_step": bad_step, "path": str(tmp_path)}
    rules = policy(NonFinite(), Plateau(patience=2, holds=()))
    result = tuned_once(tuned, config, rules, tmp_path)
    assert result.error is None
    assert result.metrics["tune_guard/reason"] == reason
    assert result.metrics["training_iteration"] == rows
    assert result.metrics["grad_norm"] is not None
