"""Hugging Face: one line in the Trainer's callbacks, and every step is watched.

Example:
    >>> from tune_guard import Policy
    >>> from tune_guard.transformers import GuardCallback
    >>> policy = Policy.default("eval_loss", "min", patience=20)
    >>> callbacks = [GuardCallback(policy)]  # Trainer(..., callbacks=callbacks)
"""

# ruff: noqa: ARG002 - the arguments of the events are those of transformers

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from transformers import Trainer, TrainerCallback

from tune_guard.policy import Policy
from tune_guard.worker import TrialGuard
from tune_guard.worker.settings import policy_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from optuna.trial import BaseTrial
    from transformers import TrainerControl, TrainerState, TrainingArguments

logger = logging.getLogger("tune_guard")

_DEEPEST = 16
_EVALUATION_IS_OFF = (
    "The metric is read from evaluations, and evaluation is off. Turn it on with"
    ' TrainingArguments(eval_strategy="epoch") or "steps".'
)


class GuardCallback(TrainerCallback):
    """Watch a training of the Trainer, and end it when it is sick.

    Each optimizer step is judged before it is taken, on the true loss and on the
    gradient norm before clipping. The Trainer logs neither: it replaces a loss
    that is NaN by the mean of those before (``logging_nan_inf_filter``), and
    shows a norm every few hundred steps. Each evaluation is judged on the metric.
    The policy's steps are optimizer steps, as in the Trainer's own log.

    In a Ray Tune function the metrics go to ``tune.report``, with an Optuna trial
    to ``trial.report``, and the engine ends the trial. In the Trainer's own
    ``hyperparameter_search`` the trial is found by itself, and the Trainer goes
    on to report. Elsewhere the Trainer is asked to stop, the bad gradients are
    dropped, so that the weights stay as they are, and :attr:`guard` holds the
    verdict and the record.

    Args:
        policy: The rules; its metric has the Trainer's name, such as ``eval_loss``.

        trial: The Optuna trial, if there is one.

        options: Further options of :class:`~tune_guard.TrialGuard`.

    Raises:
        ConfigError: If the policy cannot be used.

    Example:
        >>> callback = GuardCallback(Policy.default("eval_loss", "min"))
        >>> callback.guard is None
        True
    """

    def __init__(
        self, policy: Policy, *, trial: BaseTrial | None = None, **options: Any
    ) -> None:
        self._policy = policy_for(policy, trial)
        self._trial = trial
        self._options = {"unit": "step", **options}
        self._taps: list[tuple[Any, str]] = []
        self._scaler: Any = None
        self._loss: Any = None
        self._norm: Any = None
        self._is_tapped = False
        self.guard: TrialGuard | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: Ray pickles the whole Trainer."""
        fresh: dict[str, Any] = {
            "_taps": [],
            "_scaler": None,
            "_loss": None,
            "_norm": None,
        }
        return {**self.__dict__, **fresh, "_is_tapped": False}

    # ------------------------------------------------------------ begin and end

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Begin to watch a training."""
        self._untap()
        if self.guard is not None:
            self.guard.close()
        trainer = _trainer()
        trial = self._trial
        if trainer is not None:
            self._tap(trainer)
            searched = getattr(trainer, "_trial", None)
            trial = searched if trial is None and hasattr(searched, "study") else trial
        self.guard = TrialGuard(self._policy, trial=trial, **self._options)

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Let go of the Trainer, the GPU and the model."""
        self._untap()
        if self.guard is not None:
            self.guard.close()

    # ------------------------------------------------------------------ a step

    def on_pre_optimizer_step(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: Any = None,
        optimizer: Any = None,
        **kwargs: Any,
    ) -> None:
        """Judge the step before it is taken."""
        loss, self._loss = self._loss, None
        norm, self._norm = self._norm, None
        if self.guard is None:
            return
        verdict = self.guard.step(
            loss,
            model,
            grad_norm=norm,
            optimizer=optimizer,
            scaler=self._scaler,
            step=state.global_step,
        )
        if verdict.stop:
            if model is not None:
                model.zero_grad(set_to_none=True)
            self._stop(control)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Judge what is logged, where the steps themselves could not be seen."""
        if self.guard is None or not logs:
            return
        if args.eval_strategy == "no":
            self.guard.missed(logs, advice=_EVALUATION_IS_OFF)
        if self._is_tapped or "loss" not in logs:
            return
        verdict = self.guard.step(
            logs["loss"], grad_norm=logs.get("grad_norm"), step=state.global_step
        )
        if verdict.stop:
            self._stop(control)

    # ---------------------------------------------------------------- a report

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Judge an evaluation, and report it unless the Trainer does so itself."""
        if self.guard is None or metrics is None or self.guard.verdict.stop:
            return
        send = not state.is_hyper_param_search
        if self.guard.report(metrics, state.global_step, send=send).stop:
            self._stop(control)

    def _stop(self, control: TrainerControl) -> None:
        if not control.should_training_stop and self.guard is not None:
            record = self.guard.record()
            logger.warning("Training is stopped: %s: %s", record.reason, record.message)
        control.should_training_stop = True

    # ------------------------------------------------- what the Trainer hides

    def _tap(self, trainer: Trainer) -> None:
        """Listen in on the loss of each batch and the norm of each clipping."""
        accelerator = trainer.accelerator
        self._scaler = getattr(accelerator, "scaler", None)
        self._replace(trainer, "training_step", self._with_loss)
        self._replace(accelerator, "clip_grad_norm_", self._with_norm)
        self._is_tapped = True

    def _replace(self, owner: Any, name: str, tap: Callable[..., Any]) -> None:
        setattr(owner, name, tap(getattr(owner, name)))
        self._taps.append((owner, name))

    def _untap(self) -> None:
        for owner, name in self._taps:
            owner.__dict__.pop(name, None)
        self._taps, self._is_tapped, self._scaler = [], False, None
        self._loss = self._norm = None

    def _with_loss(self, training_step: Callable[..., Any]) -> Callable[..., Any]:
        def tapped(*args: Any, **kwargs: Any) -> Any:
            try:
                loss = training_step(*args, **kwargs)
            except Exception as error:
                if self.guard is not None:
                    self.guard.failed(error)
                raise
            self._loss = loss if self._loss is None else self._loss + loss
            return loss

        return tapped

    def _with_norm(self, clip: Callable[..., Any]) -> Callable[..., Any]:
        def tapped(*args: Any, **kwargs: Any) -> Any:
            self._norm = clip(*args, **kwargs)
            return self._norm

        return tapped


def _trainer() -> Trainer | None:
    """Return the Trainer that is calling this callback, or None.

    It hands its callbacks neither itself nor the loss, so that they have to be
    looked up: once, when training begins.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - the only way to it
    for _ in range(_DEEPEST):
        owner = frame.f_locals.get("self")
        if isinstance(owner, Trainer):
            return owner
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
