"""A bundle is written part by part, within bytes and seconds, or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from tune_guard.evidence.bundle import MANIFEST, Bundle, LeftOut, Part, Stream, write
from tune_guard.evidence.places import Folder, Storage


def part(name: str, data: bytes, size: int = 0) -> Part:
    """Return a part of these bytes."""
    return Part("record", name, lambda to: to.write(data) and None, lambda: size)


def put(place: Any, *parts: Part, most_bytes: int = 1000, most_s: float = 60) -> Bundle:
    """Write a bundle."""
    return write(place, parts, {"step": 7}, most_bytes=most_bytes, most_s=most_s)


def manifest_of(path: Path) -> dict[str, Any]:
    """Return a bundle's manifest."""
    content: dict[str, Any] = json.loads((path / MANIFEST).read_text())
    return content


class Refusing(Folder):
    """A folder that takes no more than so many files, as a full disk does."""

    def __init__(self, path: Path, takes: int) -> None:
        super().__init__(path)
        self.takes = takes

    def put(self, file: str, write: Callable[[Stream], None]) -> None:
        """Store a file, or refuse it halfway."""

        def halfway(stream: Stream) -> None:
            write(stream)
            raise OSError(errno.ENOSPC, "No space left on device")

        if self.takes <= 0:
            super().put(file, halfway)
        self.takes -= 1
        super().put(file, write)


def test_the_manifest_says_what_was_written(tmp_path: Path) -> None:
    """Sizes and SHA-256 of every file, and what the bundle is about."""
    bundle = put(Folder(tmp_path), part("a", b"one"), part("b", b"three"))
    manifest = manifest_of(tmp_path)
    assert (manifest["schema"], manifest["step"]) == (1, 7)
    assert [f["bytes"] for f in manifest["files"]] == [3, 5]
    assert manifest["files"][0]["sha256"] == hashlib.sha256(b"one").hexdigest()
    assert bundle.name == str(tmp_path)
    assert bundle.size_bytes == 8


def test_what_does_not_fit_is_left_out_and_named(tmp_path: Path) -> None:
    """A later, smaller part is still written."""
    put(Folder(tmp_path), part("big", b"x" * 11), part("small", b"x"), most_bytes=10)
    manifest = manifest_of(tmp_path)
    assert [f["file"] for f in manifest["files"]] == ["small"]
    assert manifest["left_out"] == {"big": "larger than the 10 bytes that were left"}
    assert sorted(p.name for p in tmp_path.iterdir()) == [MANIFEST, "small"]


def test_a_size_that_is_known_saves_the_writing(tmp_path: Path) -> None:
    """A part that says it is too large is not begun."""

    def fail(_: Stream) -> None:
        pytest.fail("it was begun")

    bundle = put(Folder(tmp_path), Part("record", "big", fail, lambda: 2000))
    assert bundle.left_out == {"big": "2000 bytes, and 1000 were left"}


def test_a_full_disk_loses_the_last_parts(tmp_path: Path) -> None:
    """Part a and its manifest fit; b does not, and c is not tried."""
    place = Refusing(tmp_path, takes=2)
    bundle = put(place, part("a", b"1"), part("b", b"2"), part("c", b"3"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", MANIFEST]
    assert [f["file"] for f in manifest_of(tmp_path)["files"]] == ["a"]
    assert "No space left" in bundle.left_out["b"]
    assert bundle.left_out["c"] == "the place had refused b"


def test_a_place_that_takes_nothing_has_no_bundle(tmp_path: Path) -> None:
    """Its name is empty, so that no record points to it."""
    bundle = put(Refusing(tmp_path, takes=0), part("a", b"1"))
    assert (bundle.name, list(tmp_path.iterdir())) == ("", [])


def test_a_part_that_fails_costs_itself_only(tmp_path: Path) -> None:
    """A model's state may raise anything."""

    def fail(_: Stream) -> None:
        msg = "no such device"
        raise RuntimeError(msg)

    bundle = put(Folder(tmp_path), Part("record", "a", fail), part("b", b"2"))
    assert [f["file"] for f in manifest_of(tmp_path)["files"]] == ["b"]
    assert "no such device" in bundle.left_out["a"]


def test_a_part_with_nothing_to_say_is_left_out(tmp_path: Path) -> None:
    """Its reason is in the manifest."""

    def nothing(_: Stream) -> None:
        msg = "no GPU"
        raise LeftOut(msg)

    put(Folder(tmp_path), part("b", b"2"), Part("gpu", "gpu.json", nothing))
    assert manifest_of(tmp_path)["left_out"] == {"gpu.json": "no GPU"}


def test_the_caller_goes_on_when_the_time_is_up(tmp_path: Path) -> None:
    """A part that hangs does not hold the trial; what was written before stays."""
    release, ended = threading.Event(), threading.Event()

    def hang(stream: Stream) -> None:
        release.wait()
        try:
            stream.write(b"late")
        finally:
            ended.set()

    parts = part("a", b"1"), Part("rng", "b", hang), part("c", b"3")
    bundle = put(Folder(tmp_path), *parts, most_s=0.2)
    assert [f["file"] for f in bundle.files] == ["a"]
    release.set()
    assert ended.wait(30)
    for thread in threading.enumerate():
        if thread.name == "tune_guard-evidence":
            thread.join()
    assert bundle.left_out["b"] == "the time was up"
    assert not (tmp_path / "c").exists()


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    """A write that fails halfway leaves the old file as it was."""
    (tmp_path / "a").write_bytes(b"old")
    put(Refusing(tmp_path, takes=0), part("a", b"new"))
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("kind", ["local", "bucket"])
def test_any_file_system_of_pyarrow_takes_it(tmp_path: Path, kind: str) -> None:
    """A local one by renaming; one like a bucket by publishing whole objects."""
    import fsspec

    filesystem: Any = fs.LocalFileSystem()
    path = f"{tmp_path}/bundle"
    if kind == "bucket":
        memory = fsspec.filesystem("memory")
        filesystem, path = fs.PyFileSystem(fs.FSSpecHandler(memory)), "/bundle"
    put(Storage(filesystem, path, "it"), part("a", b"one"), part("b", b"x" * 2000))
    selector = fs.FileSelector(path)
    names = sorted(i.base_name for i in filesystem.get_file_info(selector))
    assert names == ["a", MANIFEST]
    with filesystem.open_input_stream(f"{path}/a") as stream:
        assert stream.read() == b"one"


def test_a_bucket_never_sees_half_an_object(tmp_path: Path) -> None:
    """An object is published even after an error, so it is made in memory first."""
    import fsspec

    memory = fsspec.filesystem("memory")
    filesystem: Any = fs.PyFileSystem(fs.FSSpecHandler(memory))

    def halfway(stream: Stream) -> None:
        stream.write(b"half")
        msg = "broken"
        raise RuntimeError(msg)

    name = f"/{tmp_path.name}"
    put(Storage(filesystem, name, "it"), Part("record", "a", halfway))
    assert not memory.exists(f"{name}/a")
