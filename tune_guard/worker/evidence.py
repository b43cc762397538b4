"""What only the training process knows of a trial, kept when it is cut."""

from __future__ import annotations

import dataclasses
import math
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from tune_guard.evidence.bundle import LeftOut, Part, Place, Stream
from tune_guard.evidence.parts import json_part, trial_parts, write_wanted
from tune_guard.evidence.places import Folder, bundle_name
from tune_guard.evidence.rng import rng_states
from tune_guard.evidence.settings import Evidence
from tune_guard.notices import Notices
from tune_guard.record import StopRecord
from tune_guard.strict_json import plain
from tune_guard.worker import memory
from tune_guard.worker.batches import batch_as_json
from tune_guard.worker.checkpoints import Checkpoints
from tune_guard.worker.first_bad import by_gradients
from tune_guard.worker.gradients import module_of, norms_of
from tune_guard.worker.states import plain_state, size_bytes

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tune_guard.verdict import Verdict
    from tune_guard.worker.machine import Machine
    from tune_guard.worker.reader import Given
    from tune_guard.worker.streams import Streams

_STATEFUL = ("optimizer", "scheduler", "scaler")
_BATCHES = 2
_OUTSIDE = "watchdog"
"""What decided where no stream of numbers did."""


class Keeper:
    """Hold what a training loop shows, and write it down when the trial is cut.

    Until then it holds references only; copies are taken for checkpoints alone,
    which are off unless asked for.

    Args:
        evidence: What to keep; None for nothing.

        engines_place: Returns the engine's place for a bundle of a name, or None
            where it has none.

        streams: The trial's monitors.

        machine: The machine under the training.

        notices: Where trouble is named.
    """

    def __init__(
        self,
        evidence: Evidence | None,
        engines_place: Callable[[Evidence, str], Place | None],
        streams: Streams,
        machine: Machine,
        notices: Notices,
    ) -> None:
        self.name = ""
        self._evidence = evidence
        self._engines_place = engines_place
        self._streams, self._machine, self._notices = streams, machine, notices
        self._done = evidence is None
        self._shown: dict[str, Any] = {}
        self._batches: deque[tuple[int, Any]] = deque(maxlen=_BATCHES)
        every = None if evidence is None else evidence.checkpoint_every_steps
        self._checkpoints = Checkpoints(every)

    def note(self, step: int, given: Given) -> None:
        """Take notice of what an optimizer step was given. Never raises."""
        if self._done:
            return
        for name in ("model", *_STATEFUL):
            part = getattr(given, name)
            if part is not None:
                self._shown[name] = part
        if given.batch is not None:
            self._batches.append((step, given.batch))
        if self._checkpoints.is_due(step):
            try:
                self._checkpoints.take(step, self._shown)
            except Exception as error:  # noqa: BLE001 - nothing may raise into a training
                self._trouble("copy of the training's state", error)

    def keep(
        self, record: StopRecord, *, step: int, more: tuple[Part, ...] = ()
    ) -> str:
        """Write the bundle of a trial that is about to be cut, once. Never raises.

        Args:
            record: Why it is cut.

            step: The newest optimizer step.

            more: Further parts.

        Returns:
            How a record calls the bundle; empty where none was written.
        """
        if self._done or self._evidence is None:
            return self.name
        self._done = True
        try:
            self.name = self._written(record, self._evidence, step, more)
        except Exception as error:  # noqa: BLE001 - the cut stands without it
            self._trouble("bundle of evidence", error)
        return self.name

    def keep_stacks(self, record: StopRecord, verdict: Verdict, text: str) -> str:
        """Write down a training that is silent: it may be ended, or go on after all.

        Nothing is asked of the model or of the GPU: they may be what hangs.

        Args:
            record: Of the verdict.

            verdict: That it is silent.

            text: Every thread's stack.

        Returns:
            How a record calls the bundle; empty where none was written.
        """
        if self._evidence is None:
            return ""
        try:
            streams = self._streams.by_name
            parts = trial_parts(record, verdict, streams, _OUTSIDE)
            parts.append(_text_part("stacks", "stacks.txt", text))
            return self._write(record, self._evidence, parts)
        except Exception as error:  # noqa: BLE001 - it may go on after all
            self._trouble("bundle of evidence", error)
            return ""

    def _written(
        self, record: StopRecord, evidence: Evidence, step: int, more: tuple[Part, ...]
    ) -> str:
        streams = self._streams
        parts = [
            *trial_parts(record, streams.verdict, streams.by_name, streams.deciding),
            *self._parts(record, step),
            *more,
        ]
        return self._write(record, evidence, parts)

    def _write(self, record: StopRecord, evidence: Evidence, parts: list[Part]) -> str:
        place = self._place(record, evidence)
        if place is None:
            return ""
        bundle = write_wanted(place, parts, record, evidence)
        if not bundle.name:
            self._trouble("bundle of evidence", OSError(bundle.refusal))
        return bundle.name

    def _place(self, record: StopRecord, evidence: Evidence) -> Place | None:
        """Return the place that evidence names, or else the engine's own."""
        if evidence.folder is not None and evidence.artifact_store is None:
            name = bundle_name(record, record.trial or str(os.getpid()))
            return Folder(Path(evidence.folder) / name)
        return self._engines_place(evidence, bundle_name(record))

    def _parts(self, record: StopRecord, step: int) -> list[Part]:
        states = {n: self._shown[n] for n in _STATEFUL if n in self._shown}
        bad = record.step if self._streams.deciding == "steps" else None
        model = self._shown.get("model")
        return [
            json_part("batches", "batches.json", self._batches_as_json),
            json_part("gpu", "gpu.json", self._gpu),
            json_part("modules", "modules.json", lambda: _modules(model, step)),
            json_part("rng", "rng.json", rng_states),
            Part(
                "training",
                "training.pt",
                lambda to: _save(_states(states), to),
                lambda: size_bytes(_states(states)),
            ),
            Part(
                "checkpoint",
                "checkpoint.pt",
                lambda to: _save(self._checkpoint(bad), to),
                lambda: size_bytes(self._checkpoint(bad)),
            ),
        ]

    def _batches_as_json(self) -> list[dict[str, Any]]:
        if not self._batches:
            msg = "the loop gave no `batch`"
            raise LeftOut(msg)
        return [{"step": step, **batch_as_json(b)} for step, b in self._batches]

    def _gpu(self) -> dict[str, Any]:
        used = memory.gpu_memory()
        found = plain(self._machine.now())
        if used is not None:
            found["memory"] = dataclasses.asdict(used)
        if not found:
            msg = "no GPU is watched"
            raise LeftOut(msg)
        return dict(found)

    def _checkpoint(self, bad_step: int | None) -> dict[str, Any]:
        found = self._checkpoints.before(bad_step)
        if found is None:
            msg = "no copy was taken: set `checkpoint_every_steps`"
            raise LeftOut(msg)
        return found

    def _trouble(self, what: str, error: Exception) -> None:
        self._notices.once(
            f"evidence:{what}:{type(error).__name__}",
            f"The {what} could not be written ({error!r}); the trial ends as it"
            " should, with its record.",
        )

    def close(self) -> None:
        """Let go of the model, the batches and the copies."""
        self._shown = {}
        self._batches.clear()
        self._checkpoints.forget()


def _text_part(kind: str, file: str, text: str) -> Part:
    def write_text(stream: Stream) -> None:
        stream.write(text.encode(errors="replace"))

    return Part(kind, file, write_text)


def _states(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the states of optimizer, scheduler and scaler, where they have one.

    Raises:
        LeftOut: If there is none.
    """
    found = {n: p.state_dict() for n, p in parts.items() if hasattr(p, "state_dict")}
    if not found:
        msg = "the guard was shown no optimizer, scheduler or scaler"
        raise LeftOut(msg)
    return found


def _save(state: Any, stream: Stream) -> None:
    import torch

    torch.save(plain_state(state), cast("IO[bytes]", stream))


def _modules(model: nn.Module | None, step: int) -> dict[str, Any]:
    """Return gradient and parameter norms by module, and the first bad module.

    The gradients are those that the model holds now, after clipping.
    """
    if model is None:
        msg = "the guard was shown no model"
        raise LeftOut(msg)
    found: dict[str, dict[str, Any]] = {}
    named = list(model.named_parameters())
    _add_norms(found, "parameter_norm", [(n, p.detach()) for n, p in named])
    grads = [(n, p.grad) for n, p in named if p.grad is not None]
    _add_norms(found, "gradient_norm", grads)
    first = by_gradients(model)
    return {"step": step, "first_bad": first, "modules": plain(found)}


def _add_norms(
    found: dict[str, dict[str, Any]], what: str, tensors: list[tuple[str, Tensor]]
) -> None:
    """Add the norm over all tensors of each module."""
    if not tensors:
        return
    norms: list[float] = norms_of([tensor for _, tensor in tensors]).tolist()
    for (name, _), norm in zip(tensors, norms, strict=True):
        entry = found.setdefault(module_of(name), {})
        entry[what] = math.hypot(entry.get(what, 0.0), norm)
