"""The guard in the training loop: two lines that see every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tune_guard.evidence.settings import Evidence
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.record import StopRecord
from tune_guard.verdict import Verdict
from tune_guard.worker import memory, ray_session, settings
from tune_guard.worker.announcer import Announcer
from tune_guard.worker.optuna_session import OptunaSession
from tune_guard.worker.reader import Given
from tune_guard.worker.sessions import PlainSession, Session
from tune_guard.worker.settings import Gpu, Options, Unit
from tune_guard.worker.trial import WatchedTrial

if TYPE_CHECKING:
    from optuna.trial import BaseTrial
    from torch import Tensor, nn


_EVIDENCE = Evidence()


class TrialGuard:
    """Watch a trial from within its training loop.

    Call :meth:`step` after ``backward()`` and before ``optimizer.step()``, and
    :meth:`report` where the loop reports. In a Ray Tune function the report goes
    to ``tune.report``, with an Optuna trial to ``trial.report``, elsewhere
    nowhere. A stop is acted on at once, also between reports: Ray gets a last
    row with the reason and ends the trial; Optuna gets the reason and
    ``TrialPruned``; a fault of the machine raises
    :class:`~tune_guard.worker.HardwareFault` in both, so that the trial is tried
    again. A loop without an engine takes :meth:`check_step` and
    :meth:`check_epoch` and ends itself::

        if guard.check_step(loss, model).stop:
            break

    A step on a CPU is judged at once. Numbers that lie on a GPU are copied in
    passing, so that nothing waits for them: the verdict is at most two steps
    late, and says for which step it holds.

    Nothing else is ever raised into the training: what cannot be judged is named
    once in the log, and training goes on.

    Args:
        policy: The rules, with metric and mode. With an Optuna trial the study's
            direction may stand for the mode.

        trial: The Optuna trial, if there is one. Ray is found by itself.

        unit: What the policy's ``warmup_steps`` and ``budget_steps`` count:
            ``report`` (epochs, mostly) or ``step`` (optimizer steps).

        sync: Judge every step before the next, at the cost of waiting for the
            GPU in each.

        accumulate: Calls of :meth:`step` that make up one optimizer step, for
            gradient accumulation. The last of them is judged, with the mean loss
            of all.

        trace: Note which module's output is not finite first. Costs another pass
            over all activations: for hunting a fault.

        gpu: Which GPU to watch: ``auto`` for the one that the loss lies on,
            ``off``, or a number of CUDA's.

        deciding_rank: In a distributed training, whose judgement counts where no
            fatal fault is found.

        evidence: What is kept of the trial before it is cut: in the trial's
            directory of Ray, else where the evidence says. None for nothing.

    Raises:
        ConfigError: If an argument cannot be meant.

    Example:
        >>> from tune_guard import Policy
        >>> guard = TrialGuard(Policy.default("val_loss", "min"))
        >>> [guard.check_step(loss).stop for loss in (0.7, 0.6, float("nan"))]
        [False, False, True]
        >>> guard.record().reason, guard.record().step
        ('non_finite', 2)
    """

    def __init__(
        self,
        policy: Policy,
        *,
        trial: BaseTrial | None = None,
        unit: Unit = "report",
        sync: bool = False,
        accumulate: int = 1,
        trace: bool = False,
        gpu: Gpu = "auto",
        deciding_rank: int = 0,
        evidence: Evidence | None = _EVIDENCE,
    ) -> None:
        self._options = Options(
            unit=unit,
            sync=sync,
            accumulate=accumulate,
            trace=trace,
            gpu=gpu,
            deciding_rank=deciding_rank,
            evidence=evidence,
        )
        self._policy = settings.policy_for(policy, trial)
        self._notices = Notices()
        if trial is None:
            self._begin(ray_session.find() or PlainSession())
        else:
            self._begin(OptunaSession(trial, self._policy, self._notices))

    def _begin(self, session: Session) -> None:
        self._session = session
        self._has_ended = False
        alone = isinstance(session, PlainSession) and not ray_session.in_actor()
        self._trial = WatchedTrial(
            self._policy,
            self._options,
            trial_id=session.trial_id,
            first_step=session.first_step,
            place=session.place,
            announcer=Announcer(self._policy) if alone else None,
            notices=self._notices,
        )

    # ----------------------------------------------------------- the two lines

    def step(
        self,
        loss: Any = None,
        model: nn.Module | None = None,
        *,
        grad_norm: Any = None,
        optimizer: Any = None,
        scaler: Any = None,
        lr: Any = None,
        scheduler: Any = None,
        batch: Any = None,
        step: int | None = None,
    ) -> Verdict:
        """Judge an optimizer step, and end the trial at once if it is sick.

        Call it once per optimizer step, after ``backward()`` and clipping and
        before ``optimizer.step()``. In a distributed training every rank calls
        it for every step.

        Args:
            loss: The step's loss, a tensor or a number. A tensor is not waited for.

            model: Whose gradients are measured, unless ``grad_norm`` is given.
                Either way a bad step is traced to one of its modules.

            grad_norm: The norm before clipping: what ``clip_grad_norm_`` returns.
                It saves the pass over all gradients.

            optimizer: Whose learning rate is read, unless ``lr`` is given.

            scaler: The gradient scaler. A norm taken before ``unscale_`` is
                divided by its scale; a step that it skips is an overflow, not a
                fault.

            lr: The learning rate, or those of all parameter groups.

            scheduler: The learning-rate scheduler; its state is part of the
                evidence.

            batch: Ids of the step's samples, or the batch itself, of which the
                evidence holds a hash. The last two stay in memory.

            step: Number of the optimizer step; counted from 0 if left out.

        Returns:
            The verdict: a stop on the step itself, or on one of the two before.

        Raises:
            optuna.TrialPruned: With an Optuna trial, if it is cut.
            HardwareFault: In an engine, if the machine is to blame.
        """
        given = Given(
            model=model,
            grad_norm=grad_norm,
            optimizer=optimizer,
            scaler=scaler,
            lr=lr,
            scheduler=scheduler,
            batch=batch,
        )
        return self._act_on(self._trial.check_step(loss, given, step))

    def report(
        self,
        metrics: Mapping[str, Any],
        step: int | None = None,
        *,
        send: bool = True,
        **extra: Any,
    ) -> Verdict:
        """Judge a report, pass it on with the health signals, and act on a stop.

        Args:
            metrics: What the trial reports, with the policy's metric. A tensor of
                one element is sent as a number.

            step: Number of the report; counted if left out.

            send: Whether to pass it on; False where a framework does so itself.

            extra: Passed on to Ray's ``report``, such as ``checkpoint=``.

        Returns:
            The verdict.

        Raises:
            optuna.TrialPruned: With an Optuna trial, if it is cut.
            HardwareFault: In an engine, if the machine is to blame.
            Exception: Whatever the engine's own ``report`` raises.
        """
        verdict, row, at = self._trial.check_report(metrics, step)
        if verdict.stop:
            self._end(row, at)
        elif send:
            self._session.send(row, at, **extra)
        return verdict

    def clip_grad_norm_(self, model: nn.Module, max_norm: float) -> Tensor:
        """Clip the gradients like ``torch.nn.utils.clip_grad_norm_``.

        It keeps the norm of each gradient, at no cost, so that a bad step can be
        traced to a module: clipping by a norm that is NaN makes every gradient
        NaN. The next :meth:`step` needs no ``grad_norm`` then.

        Args:
            model: The model whose gradients are clipped.

            max_norm: The largest norm that is left as it is.

        Returns:
            The norm before clipping, on its device.

        Raises:
            Exception: Whatever the clipping raises.
        """
        return self._trial.steps.reader.clip(model, max_norm)

    # ------------------------------------------------------- without an engine

    def check_step(
        self,
        loss: Any = None,
        model: nn.Module | None = None,
        *,
        grad_norm: Any = None,
        optimizer: Any = None,
        scaler: Any = None,
        lr: Any = None,
        scheduler: Any = None,
        batch: Any = None,
        step: int | None = None,
    ) -> Verdict:
        """Judge an optimizer step like :meth:`step`, but act on nothing.

        Never raises.
        """
        given = Given(
            model=model,
            grad_norm=grad_norm,
            optimizer=optimizer,
            scaler=scaler,
            lr=lr,
            scheduler=scheduler,
            batch=batch,
        )
        return self._trial.check_step(loss, given, step)

    def check_epoch(
        self, metric: Any = None, step: int | None = None, **signals: Any
    ) -> Verdict:
        """Judge the metric, and send it nowhere. Never raises.

        Args:
            metric: Value of the policy's metric; None on a rank that has none.

            step: Number of the epoch; counted from 0 if left out.

            signals: Further values by key, such as ``loss=``.

        Returns:
            The verdict.
        """
        metrics = {self._policy.metric: metric, **signals}
        return self._trial.check_report(metrics, step)[0]

    def row(
        self, metrics: Mapping[str, Any], step: int | None = None
    ) -> dict[str, Any]:
        """Return what :meth:`report` would send, for a class that returns its rows.

        A stop is in it: the reason, and ``done``. Never raises.
        """
        verdict, row, _ = self._trial.check_report(metrics, step)
        return {**row, ray_session.DONE: True} if verdict.stop else row

    def data(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield batches, and time how long each is waited for.

        A stalled data loader is then told apart from a slow GPU::

            for inputs, targets in guard.data(loader):
                ...
        """
        return self._trial.pace.timed(batches)

    def waited(self, seconds: float) -> None:
        """Say that the step waited so long for its data, where :meth:`data` cannot."""
        self._trial.pace.waited(seconds)

    def missed(self, metrics: Mapping[str, Any], *, advice: str = "") -> None:
        """Say that a report was due, and came without the metric. Never raises.

        It is neither judged nor sent. A metric that goes on missing is named once,
        with the nearest keys that did come.

        Args:
            metrics: What came.

            advice: What to do, where none of these keys can be meant.
        """
        self._trial.streams.reports.miss(metrics, advice)

    def watch(self, model: nn.Module) -> None:
        """Trace a model's outputs from its first batch on; needs ``trace=True``.

        Otherwise the hooks are set at the first :meth:`step` that is given the
        model, and that step itself cannot be traced.
        """
        self._trial.steps.reader.watch(model)

    # ----------------------------------------------------------------- the end

    @property
    def verdict(self) -> Verdict:
        """The newest verdict; a stop is final."""
        return self._trial.verdict

    def record(self) -> StopRecord:
        """Return the record of the present verdict."""
        return self._trial.record()

    def failed(self, error: BaseException | None) -> Verdict:
        """Look at an error that ends the training: out of memory has a reason.

        ``with guard:`` calls it. In an engine the trial ends here, with the reason.

        Returns:
            A stop if the GPU ran out of memory, else the present verdict.

        Raises:
            optuna.TrialPruned: With an Optuna trial, if memory ran out.
            HardwareFault: In an engine, if other processes hold the memory.
        """
        if not memory.is_out_of_memory(error):
            return self.verdict
        trial = self._trial
        at = max(0, trial.steps.count - 1)
        trial.streams.adopt(memory.verdict_of(at, memory.gpu_memory()))
        trial.keep_evidence()
        return self._act_on(self.verdict)

    def close(self) -> None:
        """Let go of the GPU, of hooks, and of the model. Never raises."""
        self._trial.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.failed(error)
        finally:
            self.close()

    def _act_on(self, verdict: Verdict) -> Verdict:
        if verdict.stop and not self._has_ended:
            self._end(self._trial.last_row(), None)
        return verdict

    def _end(self, row: Mapping[str, Any], at: int | None) -> None:
        """Let the engine end the trial, once."""
        if not self._has_ended:
            self._has_ended = True
            self._session.end(self.record(), row, at)

    # ------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Return what is to be saved beside the model: plain values."""
        return self._trial.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another process ended. Never raises.

        What describes the machine starts anew.
        """
        self._trial.restore(state)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: threads, devices, the engine."""
        return {
            "policy": self._policy,
            "options": self._options,
            "notices": self._notices,
            "state": self.state_dict(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin in this process where the other one was. Never raises."""
        self._policy, self._options = state["policy"], state["options"]
        self._notices = state["notices"]
        self._begin(ray_session.find() or PlainSession())
        self.load_state_dict(state["state"])
