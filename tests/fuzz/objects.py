"""Reports of any Python values, made from bytes."""

from __future__ import annotations

import decimal
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

_KEYS = (
    *("score", "loss", "grad_norm", "lr", "amp_scale", "step_skipped", "a/b"),
    *("step_time_s", "gpu_reasons", "gpu_lost", "gpu_xid", "kl_loss", " loss"),
)
_DEEPEST = 6


class _Rude:
    """Raises from whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __float__(self) -> float:
        raise KeyError

    def __str__(self) -> str:
        raise MemoryError

    def __repr__(self) -> str:
        raise ValueError

    def __eq__(self, other: object) -> bool:
        raise TypeError

    def __gt__(self, other: object) -> bool:
        raise OSError

    __hash__ = object.__hash__


def _deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def _loop() -> dict[str, Any]:
    found: dict[str, Any] = {"loss": 1.0}
    found["again"] = found
    return found


_ODD: tuple[Any, ...] = (
    None,
    True,
    float("nan"),
    float("-inf"),
    10**400,
    -(10**5000),
    "NaN",
    "1" * 5000,
    "\x00",
    "\ud800",
    b"1.0",
    1j,
    decimal.Decimal("sNaN"),
    decimal.Decimal("1e999999"),
    np.float32(1.5),
    np.array([1.0]),
    np.array([]),
    np.array(["2026-01-01"], dtype="datetime64[s]"),
    np.ma.masked,
    range(10**12),
    _Rude(),
    _Rude,
    _deep(5000),
    _loop(),
)


class _Bytes:
    """Hands out bytes; zeros after the last."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int = 1) -> bytes:
        piece = self._data[self._at : self._at + count]
        self._at += count
        return piece.ljust(count, b"\0")

    def byte(self) -> int:
        return self.take()[0]


def report_of(data: bytes) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Yield steps and reports."""
    source, step = _Bytes(data), 0
    while source.left:
        step += 1
        odd = source.byte()
        report = {_key(source): _value(source, 0) for _ in range(odd % 6)}
        yield (_value(source, 0) if odd > 240 else step), report


def _key(source: _Bytes) -> Any:
    choice = source.byte()
    if choice < 220:
        return _KEYS[choice % len(_KEYS)]
    return (choice, None, "x/" * choice, "\ud800", b"loss")[choice % 5]


def _value(source: _Bytes, depth: int) -> Any:
    kind = source.byte()
    if kind < 80:
        return _ODD[kind % len(_ODD)]
    if kind < 160 or depth >= _DEEPEST:
        return struct.unpack("d", source.take(8))[0]
    if kind < 180:
        return int.from_bytes(source.take(9), signed=True)
    if kind < 200:
        return source.take(kind % 7).decode(errors="replace")
    if kind < 230:
        return [_value(source, depth + 1) for _ in range(kind % 4)]
    return {_key(source): _value(source, depth + 1) for _ in range(kind % 4)}
