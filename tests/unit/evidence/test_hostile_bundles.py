"""Bundles that were damaged or made up: verified as bad, never a crash."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import seeds, sources
from tune_guard import SourceError
from tune_guard.evidence.again import judge_again
from tune_guard.evidence.reader import find_bundle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a whole bundle."""
    path = tmp_path / "bundle"
    path.mkdir()
    for name, data in seeds.bundle_files().items():
        (path / name).write_bytes(data)
    return path


def edit(path: Path, **fields: Any) -> None:
    """Change fields of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_the_bundle_itself_is_sound(folder: Path) -> None:
    """What the damage below is measured against."""
    bundle = find_bundle(str(folder))
    assert bundle.problems() == []
    assert judge_again(bundle).same


@pytest.mark.parametrize("files", [5, "x", {"a": 1}, [5, None, []], None])
def test_a_manifest_that_lists_no_files_verifies_none(folder: Path, files: Any) -> None:
    """Each file is one that it does not know."""
    edit(folder / "manifest.json", files=files)
    problems = find_bundle(str(folder)).problems()
    assert any("the manifest does not know it" in problem for problem in problems)


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "a\0b", "", ".", "link", "pipe", ".hidden"]
)
def test_a_manifest_names_no_file_outside(folder: Path, name: str) -> None:
    """No way out, no link, no pipe that would be waited for."""
    (folder.parent / "secret").write_text("x")
    (folder / ".hidden").write_text("x")
    (folder / "link").symlink_to(folder.parent / "secret")
    os.mkfifo(folder / "pipe")
    edit(folder / "manifest.json", files=[{"file": name, "bytes": 1, "sha256": ""}])
    check = find_bundle(str(folder)).checks()[0]
    assert (check.file, check.size_bytes) == (name, None)
    assert check.problem.startswith("cannot be read")


def test_a_file_that_is_listed_often_is_read_once(folder: Path) -> None:
    """Else a small manifest costs hours."""
    entry = {"file": "record.json", "bytes": 1, "sha256": "0"}
    edit(folder / "manifest.json", files=[entry] * 1000)
    checks = find_bundle(str(folder)).checks()
    assert [check.file for check in checks].count("record.json") == 1


def _flagged(data: bytes) -> bytes:
    """Say of every file of an archive that it is encrypted."""
    whole = bytearray(data)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = whole.find(magic)
        while at >= 0:
            whole[at + offset] |= 0x41
            at = whole.find(magic, at + 4)
    return bytes(whole)


def _bent(data: bytes) -> bytes:
    """Damage the compressed bytes of the first file."""
    return data[:60] + b"\xff" * 40 + data[100:]


@pytest.mark.parametrize("damage", [_flagged, _bent])
def test_a_damaged_archive_is_verified_as_bad(tmp_path: Path, damage: Any) -> None:
    """Whatever zipfile and zlib raise."""
    path = tmp_path / "bundle.zip"
    path.write_bytes(damage(sources.archive()))
    bundle = find_bundle(str(path))
    assert bundle.problems()
    judge_again(bundle)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    """Also where zipfile says so with another error than its own."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as into:
        into.writestr("manifest.json", "{}")
    data = bytearray(whole.getvalue())
    at = data.find(b"PK\x01\x02")
    data[at + 6] = 0xFF  # made by a version that is not there yet
    path = tmp_path / "bundle.zip"
    path.write_bytes(data)
    with pytest.raises(SourceError, match="neither a folder nor a zip file"):
        find_bundle(str(path))


@pytest.mark.parametrize(
    "stream",
    [
        {"before": [[[[]]]] * 3},
        {"before": json.loads("[" * 300 + "]" * 300)},
        {"peers": {"leaders": [[]], "finished": 1e999, "ids": 5}},
        {"peers": 5},
        {"policy": "a: &a [*a]\n"},
        {"names": {"loss": [1]}},
    ],
)
def test_rules_that_were_made_up_cannot_run(folder: Path, stream: Any) -> None:
    """It is said, and nothing is raised."""
    path = folder / "rules.json"
    rules = json.loads(path.read_text())
    rules["streams"]["reports"] |= stream
    path.write_text(json.dumps(rules))
    judge_again(find_bundle(str(folder)))
