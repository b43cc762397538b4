"""Lightning: one line in the trainer's callbacks, and every step is watched.

Example:
    >>> from lightning.pytorch import Trainer
    >>> from tune_guard import Policy
    >>> from tune_guard.lightning import GuardCallback
    >>> policy = Policy.default("val_loss", "min", patience=20)
    >>> trainer = Trainer(callbacks=[GuardCallback(policy)], logger=False)
"""

# ruff: noqa: ARG002 - the arguments of the hooks are Lightning's

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number
from tune_guard.policy import Policy
from tune_guard.worker import TrialGuard
from tune_guard.worker.settings import policy_for

try:
    from lightning.pytorch import Callback
except ImportError:  # the same library under its older name
    from pytorch_lightning import Callback  # type: ignore[assignment]

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer
    from optuna.trial import BaseTrial
    from torch import Tensor
    from torch.optim import Optimizer

logger = logging.getLogger("tune_guard")


class GuardCallback(Callback):
    """Watch a Lightning training, and end it when it is sick.

    Each optimizer step is judged before it is taken: loss, gradient norm before
    clipping, learning rate, loss scale, step and data time, GPU. Each validation
    is judged on the metric, and so is each training epoch where the metric is
    logged there. The sanity check before training is ignored, and so is
    ``fast_dev_run``.

    Under Ray Tune the values go to ``tune.report``, with an Optuna trial to
    ``trial.report``, and the engine ends the trial. Elsewhere the trainer is
    asked to stop, the bad gradients are dropped, so that the weights stay as they
    are, and :attr:`guard` holds the verdict and the record.

    Args:
        policy: The rules; its metric is the name under which the module logs it.

        trial: The Optuna trial, if there is one.

        options: Further options of :class:`~tune_guard.TrialGuard`, such as
            ``trace=True`` or ``unit="step"``.

    Raises:
        ConfigError: If the policy cannot be used.

    Example:
        >>> callback = GuardCallback(Policy.default("val_loss", "min"))
        >>> callback.guard is None
        True
    """

    def __init__(
        self, policy: Policy, *, trial: BaseTrial | None = None, **options: Any
    ) -> None:
        super().__init__()
        self._policy = policy_for(policy, trial)
        self._trial = trial
        self._options = options
        self._stored: dict[str, Any] | None = None
        self._source = ""
        self._validated = False
        self._loss: Tensor | None = None
        self._idle_since_s: float | None = None
        self.guard: TrialGuard | None = None

    # ------------------------------------------------------------ begin and end

    def setup(
        self, trainer: Trainer, pl_module: LightningModule, stage: str | None = None
    ) -> None:
        """Begin to watch a training."""
        if stage not in ("fit", None) or getattr(trainer, "fast_dev_run", False):
            return
        if self.guard is not None:
            self.guard.close()
        self._source, self._validated, self._loss = "", False, None
        self.guard = TrialGuard(self._policy, trial=self._trial, **self._options)
        if self._stored is not None:
            self.guard.load_state_dict(self._stored)

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Give an end by lack of memory its reason."""
        if self.guard is not None:
            self.guard.failed(exception)

    def teardown(
        self, trainer: Trainer, pl_module: LightningModule, stage: str | None = None
    ) -> None:
        """Let go of the GPU and of the model."""
        if self.guard is not None:
            self.guard.close()

    # ------------------------------------------------------------------ a step

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Note how long the batch was waited for."""
        if self.guard is not None and self._idle_since_s is not None:
            self.guard.waited(time.perf_counter() - self._idle_since_s)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, *args: Any, **kwargs: Any
    ) -> None:
        """Begin to wait for the next batch."""
        self._idle_since_s = time.perf_counter()

    def on_before_backward(
        self, trainer: Trainer, pl_module: LightningModule, loss: Tensor
    ) -> None:
        """Add a batch's loss to its step's; Lightning divided it by their number."""
        loss = loss.detach()
        scaler = _scaler_of(trainer)
        if scaler is not None:
            loss = loss / scaler.scale(loss.new_ones(()))
        self._loss = loss if self._loss is None else self._loss + loss

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer
    ) -> None:
        """Judge the step before it is taken."""
        loss, self._loss = self._loss, None
        if self.guard is None:
            return
        verdict = self.guard.step(
            loss,
            pl_module,
            optimizer=optimizer,
            scaler=_scaler_of(trainer),
            step=trainer.global_step,
        )
        if verdict.stop:
            for parameter in pl_module.parameters():
                parameter.grad = None
            self._stop(trainer)

    # ---------------------------------------------------------------- a report

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Judge the metric, unless it is logged in training."""
        self._idle_since_s = None
        if not trainer.sanity_checking:
            self._validated = True
            self._report(trainer, "validation")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Judge the metric, unless it is logged in validation."""
        self._idle_since_s = None
        self._report(trainer, "training")
        self._look_for_metric(trainer)

    def _look_for_metric(self, trainer: Trainer) -> None:
        """Count an epoch in which the metric could have come, and did not.

        An epoch before the first validation is none.
        """
        due = self._validated or not trainer.enable_validation
        self._validated = False
        if self.guard is not None and due and not self._source:
            self.guard.missed(_numbers(trainer.callback_metrics))

    def _report(self, trainer: Trainer, source: str) -> None:
        """Report, from where the metric first came: elsewhere it is an old value."""
        if self.guard is None or self.guard.verdict.stop:
            return
        metrics = _numbers(trainer.callback_metrics)
        if not self._source and self._policy.metric in metrics:
            self._source = source
        if self._source != source:
            return
        report = {"epoch": trainer.current_epoch, **metrics}
        if self.guard.report(report).stop:
            self._stop(trainer)

    def _stop(self, trainer: Trainer) -> None:
        if not trainer.should_stop and self.guard is not None:
            record = self.guard.record()
            logger.warning("Training is stopped: %s: %s", record.reason, record.message)
        trainer.should_stop = True

    # ------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Return what Lightning saves in a checkpoint."""
        return {} if self.guard is None else self.guard.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where the checkpoint was taken."""
        self._stored = dict(state_dict) or None
        if self.guard is not None and self._stored is not None:
            self.guard.load_state_dict(self._stored)


def _scaler_of(trainer: Trainer) -> Any:
    """Return the gradient scaler of mixed precision, or None."""
    plugin = getattr(trainer, "precision_plugin", None)
    scaler = getattr(plugin, "scaler", None)
    return scaler if scaler is not None and scaler.is_enabled() else None


def _numbers(metrics: Any) -> dict[str, Any]:
    """Return logged metrics as numbers; what is none is left out."""
    found = {str(name): to_number(value) for name, value in metrics.items()}
    return {name: value for name, value in found.items() if value is not None}
