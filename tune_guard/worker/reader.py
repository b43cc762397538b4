"""What one optimizer step brings: read at once on the CPU, in passing on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_largest, to_number
from tune_guard.notices import Notices
from tune_guard.worker import amp
from tune_guard.worker.gradients import GradientNorm, Norms, is_sharded, whole
from tune_guard.worker.ring import PinnedCopies, Reading, Ring
from tune_guard.worker.trace import OutputTrace

if TYPE_CHECKING:
    from torch import Tensor, nn

Pair = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a training loop hands over at one optimizer step.

    Args:
        model: Whose gradients are measured, unless ``grad_norm`` is given.

        grad_norm: Norm before clipping, as ``clip_grad_norm_`` returns it.

        optimizer: Whose learning rate is read, unless ``lr`` is given.

        scaler: The gradient scaler of mixed precision.

        lr: Learning rate, or those of all groups.

        scheduler: Its state is kept when the trial is cut.

        batch: Ids or data of the step; named when the trial is cut.
    """

    model: nn.Module | None = None
    grad_norm: Any = None
    optimizer: Any = None
    scaler: Any = None
    lr: Any = None
    scheduler: Any = None
    batch: Any = None


@dataclass(slots=True)
class Context:
    """What is left of a step for a closer look, if it turns out bad.

    Args:
        model: The model, if it was given.

        names: The parameters whose norms were measured.

        norms: Their norms, where they are on the host already.

        outputs: The traced outputs of the step.

        scaled_norm: Whether the norm was taken of gradients still scaled.

        has_scaler: Whether a gradient scaler was on.

        data_time_s: Seconds that the step waited for its data.
    """

    model: nn.Module | None = None
    names: Any = ()
    norms: Tensor | None = None
    outputs: list[tuple[str, Tensor]] | None = None
    scaled_norm: bool = False
    has_scaler: bool = False
    data_time_s: float | None = None


class StepReader:
    """Gather the numbers of each optimizer step.

    Args:
        notices: Where what cannot be read is named, once.

        trace: Whether to trace the outputs of modules.

        accumulate: Calls that make up one optimizer step.

        ring: Holds what is on its way from a device.
    """

    def __init__(
        self,
        notices: Notices,
        *,
        trace: bool = False,
        accumulate: int = 1,
        ring: Ring | None = None,
    ) -> None:
        self.ring = Ring(PinnedCopies()) if ring is None else ring
        self.device: int | None = None
        self._notices = notices
        self._norm = GradientNorm()
        self._trace = OutputTrace() if trace else None
        self._accumulate = accumulate
        self._clipped: Norms | None = None
        self._parts = 0
        self._sum: Any = None

    def accumulated(self, loss: Any) -> Any:
        """Add a loss to those of the step; return their mean when it is complete.

        Returns:
            The step's loss; ``NotImplemented`` while batches of it are to come.
        """
        if self._accumulate == 1:
            return self._scalar(loss)
        loss = self._scalar(loss)
        if loss is not None:
            self._sum = loss if self._sum is None else self._sum + loss
        self._parts += 1
        if self._parts < self._accumulate:
            return NotImplemented
        total, self._sum, self._parts = self._sum, None, 0
        return None if total is None else total / self._accumulate

    def _scalar(self, loss: Any) -> Any:
        """Return a loss as one number or tensor that holds no graph."""
        if loss is None or not hasattr(loss, "detach"):
            return to_number(loss)
        loss = whole(loss.detach())
        if loss.numel() == 1:
            return loss
        self._notices.once(
            "loss:elements",
            f"The loss has {loss.numel()} elements: their mean is judged. Reduce it"
            " to one number.",
        )
        return loss.float().mean() if loss.numel() else None

    def read(self, step: int, loss: Any, given: Given, pace: Pair) -> None:
        """Put a step's reading into the ring; what lies on a GPU is on its way.

        Args:
            step: The optimizer step.

            loss: What :meth:`accumulated` returned.

            given: What the loop handed over.

            pace: Seconds since the step before, and those spent on data.
        """
        model, lr = given.model, given.lr
        context = Context(model=model, data_time_s=pace[1])
        found = {"loss": loss, "lr": lr if lr is not None else _lr_of(given.optimizer)}
        norms = self._norms(given)
        found["grad_norm"] = _one(given.grad_norm) if norms is None else norms.total
        if norms is not None:
            context.names, context.norms = norms.names, norms.each
        if amp.is_scaling(given.scaler):
            found["amp_scale"] = amp.scale_of(given.scaler)
            context.has_scaler = True
            context.scaled_norm = not amp.is_unscaled(given.scaler)
        if self._trace is not None and model is not None:
            context.outputs = self._trace.take()
            self._trace.watch(model)
        self._send(Reading(step, step_time_s=pace[0], context=context), found)

    def watch(self, model: nn.Module) -> None:
        """Set the hooks of the trace, if it is wanted."""
        if self._trace is not None:
            self._trace.watch(model)

    def clip(self, model: nn.Module, max_norm: float) -> Tensor:
        """Clip the gradients, and keep their norms for the step's reading."""
        import torch

        norms = self._norm.measure(model)
        if norms is None:
            return torch.zeros(())
        self._clipped = norms
        total = norms.total.to(torch.float32)
        torch.nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, total)
        return norms.total

    def _norms(self, given: Given) -> Norms | None:
        clipped, self._clipped = self._clipped, None
        if clipped is not None:
            return clipped
        if given.grad_norm is not None or given.model is None:
            return None
        try:
            norms = self._norm.measure(given.model)
        except Exception as error:  # noqa: BLE001 - the loss is still to be judged
            self._notices.once(
                "gradients:error",
                f"The gradients could not be measured ({error!r}): only what else"
                " is given is watched. Pass the norm as `grad_norm`.",
            )
            return None
        if norms is None:
            self._notices.once(
                "gradients",
                "No parameter of the model has a gradient: the gradient norm is not"
                " watched. Call the guard after `backward()` and before"
                " `zero_grad()`.",
            )
        return norms

    def _send(self, reading: Reading, found: dict[str, Any]) -> None:
        """Keep what is on the host, and start the transfer of the rest."""
        away: dict[str, Any] = {}
        for name, value in found.items():
            if _is_on_gpu(value):
                away[name] = value
                self.device = value.device.index
            else:
                number = to_largest(value) if name == "lr" else to_number(value)
                if number is not None:
                    reading.known[name] = number
        context = reading.context
        tensors = list(away.values())
        if away and _is_on_gpu(context.norms):
            tensors.append(context.norms)
            context.norms = None
        reading.names = tuple(away)
        self.ring.put(reading, tensors)

    def close(self) -> None:
        """Take hooks off and let go of the model."""
        if self._trace is not None:
            self._trace.close()
        self._norm.forget()


def _one(norm: Any) -> Any:
    """Return a norm that the loop measured, in whole and without its graph."""
    if is_sharded(norm):
        norm = whole(norm)
    return norm.detach() if hasattr(norm, "detach") else norm


def _lr_of(optimizer: Any) -> Any:
    """Return the largest learning rate of an optimizer's groups, if it has one."""
    groups = getattr(optimizer, "param_groups", None)
    if not groups:
        return None
    rates = [group.get("lr") for group in groups]
    on_gpu = [rate for rate in rates if _is_on_gpu(rate)]
    return on_gpu[0] if on_gpu else rates


def _is_on_gpu(value: Any) -> bool:
    return bool(getattr(value, "is_cuda", False))
