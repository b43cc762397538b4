"""Valid documents made hostile: a value replaced, a piece cut, doubled or torn."""

from __future__ import annotations

import re

from hypothesis import strategies as st

_SCALAR = re.compile(
    rb"""-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|"[^"\\]*"|null|true|false|\w+"""
)

HOSTILE: list[bytes] = [
    *(b"null", b"true", b"0", b"-1", b"1.5", b'""', b"[]", b"{}", b"[[]]", b"NaN"),
    *(b"1e400", b"1e300", b"-1e300", b"9223372036854775808", b"Infinity", b"-0.0"),
    *(b"1" * 400, b"9" * 5000, b"0x" + b"f" * 5000, b"1:" * 200 + b"1"),
    *(b'"NaN"', b'"\\u0000"', b'"\\ud800"', b"\x00", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"[" * 3000, b"[" * 900 + b"]" * 900, b'{"a":' * 900 + b"1" + b"}" * 900),
    b'{"a": [1, {"b": "c"}]}',
    b'"' + b"x" * 200_000 + b'"',
    b"x/" * 3000,
    b"../../../etc/passwd",
    b"/dev/zero",
    *(b"*name", b"&name", b"<<: *name", b"!!python/object/apply:os._exit [7]"),
    *(b"!!timestamp x", b"!!int ''", b"!!bool x", b"!!map x", b"!!set {a}"),
    *(b"!!binary x", b"!!omap [a]", b"2001-99-99", b"? {}", b"? [a]\n: 1"),
    b"{[]: 1}",
    b"0001-01-01",
    b"\n",
    b",",
    b'"',
]


@st.composite
def documents(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """Draw a document: a seed with a few changes, or any bytes at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 3))):
        data = draw(st.sampled_from(_CHANGES))(draw, data)
    return data


def _replaced(draw: st.DrawFn, data: bytes) -> bytes:
    """Put a hostile value in the place of one of the document's own."""
    found = list(_SCALAR.finditer(data))
    if not found:
        return data
    place = found[draw(st.integers(0, len(found) - 1))]
    return data[: place.start()] + draw(st.sampled_from(HOSTILE)) + data[place.end() :]


def _inserted(draw: st.DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(0, len(data)))
    piece = draw(st.sampled_from(HOSTILE) | st.binary(max_size=8))
    return data[:at] + piece + data[at:]


def _torn(draw: st.DrawFn, data: bytes) -> bytes:
    return data[: draw(st.integers(0, len(data)))]


def _doubled(draw: st.DrawFn, data: bytes) -> bytes:
    start, end = sorted(draw(st.integers(0, len(data))) for _ in range(2))
    return data[:end] + data[start:]


def _flipped(draw: st.DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(0, max(0, len(data) - 1)))
    return data[:at] + draw(st.binary(min_size=1, max_size=4)) + data[at + 1 :]


# A replaced value leaves the rest whole, and so gets furthest.
_CHANGES = [_replaced, _replaced, _replaced, _inserted, _torn, _doubled, _flipped]
