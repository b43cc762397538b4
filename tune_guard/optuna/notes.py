"""The reason of a cut as a trial's note in optuna-dashboard.

The dashboard keeps notes in system attributes of the study: a version, which tells
it that somebody else has edited the note, and the text in pieces. Its own
``save_note`` takes running trials only, which a pruner does not have.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tune_guard.evidence.artifacts import PREFIX
from tune_guard.optuna import _engine
from tune_guard.strict_json import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from tune_guard.record import StopRecord

PIECE_CHARS = 2045
"""Length of a piece: what every database takes as a value."""

_MARKUP = re.compile(r"([^\w\s.,;:%'=/+-]|_)")


def write_note(study: Study, trial: FrozenTrial, record: StopRecord) -> None:
    """Add the reason to the trial's note, below what stands there already.

    Costs one read of the study's attributes and two writes.

    Raises:
        Exception: What the storage raises.
    """
    trial_id = _engine.trial_id_of(trial)
    attributes = _engine.study_attributes(study)
    version_key = f"dashboard:{trial_id}:note_ver"
    text, more = _body(attributes, trial_id), as_note(record)
    if not text.endswith(more):  # as after a write that failed half-way
        text = f"{text}\n\n{more}" if text else more
    for number, begin in enumerate(range(0, len(text), PIECE_CHARS)):
        piece = text[begin : begin + PIECE_CHARS]
        _engine.write_study_attribute(study, _piece_key(trial_id, number), piece)
    # The dashboard shows no note without a version: last, it shows a whole one.
    version = attributes.get(version_key, 0) + 1
    _engine.write_study_attribute(study, version_key, version)


def as_note(record: StopRecord) -> str:
    r"""Return a record as Markdown, its own texts made harmless.

    Example:
        >>> from tune_guard.record import StopRecord
        >>> print(as_note(StopRecord(reason="non_finite", step=3, message="a <b>")))
        **non\_finite** at step 3
        <BLANKLINE>
        a \<b\>
    """
    blame = f", blame: {record.blame}" if record.blame else ""
    head = f"**{_literal(record.reason)}** at step {record.step}{blame}"
    facts: Mapping[str, Any] = {
        record.metric or "value": record.value,
        "threshold": record.threshold,
        "best value": record.best_value,
        "host": record.host,
        "GPU": record.gpu_uuid,
        "evidence": _evidence(record.evidence),
    }
    rows = [
        f"- {_literal(name)}: {_literal(plain(value))}"
        for name, value in facts.items()
        if value not in (None, "")
    ]
    return "\n\n".join(filter(None, (head, _literal(record.message), "\n".join(rows))))


def _evidence(name: str) -> str:
    """Say where the bundle lies; an artifact is listed below the note."""
    if name.startswith(PREFIX):
        return f"among the artifacts, {name.removeprefix(PREFIX)}"
    return name


def _literal(text: object) -> str:
    """Return a text that Markdown shows as it is, in one line."""
    return _MARKUP.sub(r"\\\1", " ".join(str(text).split()))


def _body(attributes: Mapping[str, Any], trial_id: int) -> str:
    """Return what stands in the note."""
    pieces: list[str] = []
    while (key := _piece_key(trial_id, len(pieces))) in attributes:
        pieces.append(str(attributes[key]))
    return "".join(pieces).rstrip()


def _piece_key(trial_id: int, number: int) -> str:
    return f"dashboard:{trial_id}:note_str:{number}"
