"""A bundle is written part by part: whole parts only, within bytes and seconds."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tune_guard.exceptions import brief
from tune_guard.record import now_utc, version
from tune_guard.strict_json import plain

MANIFEST = "manifest.json"
SCHEMA = 1


class Stream(Protocol):
    """What a part is written to."""

    def write(self, data: Any, /) -> int:
        """Write bytes."""

    def flush(self) -> None:
        """Write out what is buffered."""


class Place(Protocol):
    """Where a bundle goes."""

    name: str
    """How a record calls it."""

    rewrites: bool
    """Whether to replace a file is cheap: then the manifest follows each part."""

    def put(self, file: str, write: Callable[[Stream], None]) -> None:
        """Store a file whole or not at all, replacing what was there.

        Raises:
            OSError: Or whatever else the place refuses it with.
        """

    def finish(self) -> None:
        """Take notice that all files are there. Must not raise."""


class LeftOut(Exception):  # noqa: N818 - it says what happened
    """There is nothing to write, or too much; the text says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a bundle.

    Args:
        kind: Which part of the evidence it is.

        file: Its name.

        write: Writes its content to a stream; may raise ``LeftOut``.

        size_bytes: Says how large it will be at least, where that is known.
    """

    kind: str
    file: str
    write: Callable[[Stream], None]
    size_bytes: Callable[[], int] = int


@dataclass(slots=True)
class Bundle:
    """What became of a bundle.

    Args:
        name: How a record calls it; empty when nothing could be written.

        files: The files that were written, in order, with size and SHA-256.

        left_out: The files that were not, and why.
    """

    name: str = ""
    files: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Bytes written so far, the manifest apart."""
        return sum(file["bytes"] for file in self.files)

    @property
    def refusal(self) -> str:
        """Why nothing could be written, where that is so."""
        return next(iter(self.left_out.values()), "the time was up")


class _Refused(Exception):  # noqa: N818 - it says what happened
    """The place did not take a file."""


class _Metered:
    """A stream that counts and sums what is written through it, and stops it.

    Serializers turn an error of their stream into one of their own, so that it
    remembers why it stopped.
    """

    def __init__(self, stream: Stream, left_bytes: int, end_s: float) -> None:
        self._stream, self._left, self._end_s = stream, left_bytes, end_s
        self.size_bytes = 0
        self.sum = hashlib.sha256()
        self.stopped: Exception | None = None

    def write(self, data: Any, /) -> int:
        """Write within the limits."""
        piece = memoryview(data).cast("B")
        self.size_bytes += piece.nbytes
        try:
            self._check()
            self._stream.write(piece)
        except LeftOut as error:
            self.stopped = error
            raise
        except Exception as error:
            self.stopped = _Refused(brief(error))
            raise
        self.sum.update(piece)
        return piece.nbytes

    def _check(self) -> None:
        if self.size_bytes > self._left:
            msg = f"larger than the {self._left} bytes that were left"
            raise LeftOut(msg)
        if time.monotonic() > self._end_s:
            msg = "the time was up"
            raise LeftOut(msg)

    def flush(self) -> None:
        """Write out what is buffered."""
        self._stream.flush()


def write(
    place: Place,
    parts: Sequence[Part],
    about: Mapping[str, Any],
    *,
    most_bytes: int,
    most_s: float,
) -> Bundle:
    """Write a bundle, and return when it is written or the time is up.

    Args:
        place: Where it goes.

        parts: Its parts, in the order in which they are written.

        about: What the manifest is to say of the trial.

        most_bytes: Bytes of all parts together.

        most_s: Seconds after which the caller goes on. A part that is being
            written then is given up at its next write.

    Returns:
        What was written. Never raises.
    """
    writer = _Writer(place, about, most_bytes, time.monotonic() + most_s)
    thread = threading.Thread(
        target=writer.run, args=(parts,), name="tune_guard-evidence", daemon=True
    )
    thread.start()
    thread.join(most_s)
    return writer.bundle


class _Writer:
    def __init__(
        self, place: Place, about: Mapping[str, Any], most_bytes: int, end_s: float
    ) -> None:
        self._place, self._about = place, about
        self._most_bytes, self._end_s = most_bytes, end_s
        self.bundle = Bundle()

    def run(self, parts: Sequence[Part]) -> None:
        """Write the parts, and the manifest after each. Never raises."""
        refused = ""
        for part in parts:
            if refused:
                self.bundle.left_out[part.file] = refused
                continue
            try:
                self._add(part)
                if self._place.rewrites:
                    self._put_manifest()
            except LeftOut as why:
                self.bundle.left_out[part.file] = str(why)
            except Exception as error:  # noqa: BLE001 - a place may raise anything
                refused = f"the place had refused {part.file}"
                self.bundle.left_out.setdefault(part.file, brief(error))
        if self.bundle.name:
            if self.bundle.left_out or not self._place.rewrites:
                self._put_manifest_anyway()
            self._place.finish()
            self.bundle.name = self._place.name

    def _add(self, part: Part) -> None:
        """Write one part.

        Raises:
            LeftOut: If it is too large, too late, or there is nothing to write.
            Exception: If the place refuses it.
        """
        left = self._most_bytes - self.bundle.size_bytes
        size_bytes = _size_of(part)
        if size_bytes > left:
            msg = f"{size_bytes} bytes, and {left} were left"
            raise LeftOut(msg)
        meter: _Metered | None = None

        def write_metered(stream: Stream) -> None:
            nonlocal meter
            meter = _Metered(stream, left, self._end_s)
            _write_part(part, meter)

        self._place.put(part.file, write_metered)
        if meter is not None:
            summed = {"bytes": meter.size_bytes, "sha256": meter.sum.hexdigest()}
            self.bundle.files.append({"file": part.file, **summed})
            self.bundle.name = self._place.name

    def _put_manifest(self) -> None:
        bundle = self.bundle
        content = {
            "schema": SCHEMA,
            "version": version(),
            "time": now_utc(),
            **self._about,
            "files": bundle.files,
            "left_out": bundle.left_out,
        }
        text = json.dumps(plain(content), allow_nan=False, indent=1) + "\n"
        self._place.put(MANIFEST, lambda stream: _write_all(stream, text.encode()))

    def _put_manifest_anyway(self) -> None:
        """Say the last word, also on what was left out, if the place takes it."""
        with contextlib.suppress(Exception):  # the last manifest is whole, and true
            self._put_manifest()


def _size_of(part: Part) -> int:
    try:
        return part.size_bytes()
    except LeftOut:
        raise
    except Exception as error:
        raise LeftOut(brief(error)) from error


def _write_part(part: Part, meter: _Metered) -> None:
    """Write a part's content.

    Raises:
        LeftOut: If there is nothing to write, or too much, or it cannot be made.
        _Refused: If the place does not take it.
    """
    try:
        part.write(meter)
    except LeftOut:
        raise
    except Exception as error:
        raise (meter.stopped or LeftOut(brief(error))) from error


def _write_all(stream: Stream, data: bytes) -> None:
    stream.write(data)
