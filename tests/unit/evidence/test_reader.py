"""Bundles are found, read, and every damage is named."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.unit.evidence.support import only, store, watched
from tune_guard import Policy, SourceError
from tune_guard.evidence.bundle import MANIFEST
from tune_guard.evidence.parts import OBSERVATIONS, RECORD
from tune_guard.evidence.reader import StoredBundle, as_json, find_bundle, find_bundles
from tune_guard.evidence.settings import FOLDER

NAN = [{"loss": 1.0}, {"loss": math.nan}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A trial's directory with one bundle."""
    path = tmp_path / "trial" / FOLDER / "20260101T000000-non_finite"
    store(watched(Policy.default("loss", "min"), NAN), path)
    return path


def bundle_at(path: Path) -> StoredBundle:
    """Return the bundle at a path."""
    return find_bundle(str(path))


def test_a_bundle_says_what_it_is(folder: Path) -> None:
    """Record, observations and verified files."""
    bundle = bundle_at(folder)
    record = bundle.record()
    assert record is not None
    assert (record.reason, record.step, record.metric) == ("non_finite", 1, "loss")
    assert record.value is not None
    assert math.isnan(record.value)
    assert [o.step for o in bundle.observations()] == [0, 1]
    assert bundle.problems() == []
    assert as_json(bundle)["problems"] == []


def test_the_record_is_not_cut_short(tmp_path: Path) -> None:
    """In metadata a long message is shortened to 1 kB; in evidence it is whole."""
    monitor = watched(only("plateau"), [{"score": 1.0}] * 40)
    monitor.trial_id = "t" * 2000
    store(monitor, tmp_path)
    record = bundle_at(tmp_path).record()
    assert record is not None
    assert record.trial == "t" * 2000


@pytest.mark.parametrize("up", [0, 1, 2, 3])
def test_it_is_found_from_above(folder: Path, up: int) -> None:
    """By itself, in the trial's directory, or anywhere above."""
    path = [folder, *folder.parents][up]
    assert find_bundles(str(path))[0].name == str(folder)


def test_it_is_found_by_url(folder: Path) -> None:
    """Any file system that fsspec reads."""
    assert find_bundles(f"file://{folder.parent.parent}")[0].record() is not None


def test_the_newest_of_several_is_the_last(folder: Path) -> None:
    """A trial that was retried has one for each attempt."""
    shutil.copytree(folder, folder.with_name("20270101T000000-plateau"))
    found = [Path(bundle.name).name for bundle in find_bundles(str(folder.parent))]
    assert found == ["20260101T000000-non_finite", "20270101T000000-plateau"]


def test_a_zip_file_is_a_bundle(folder: Path, tmp_path: Path) -> None:
    """As Optuna's dashboard hands it out."""
    path = tmp_path / "evidence.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    bundle = bundle_at(path)
    assert bundle.problems() == []
    assert len(list(bundle.observations())) == 2


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda f: (f / RECORD).write_bytes(b"{}"), "record.json: damaged"),
        (lambda f: (f / RECORD).unlink(), "record.json: cannot be read"),
        (lambda f: (f / "new.txt").touch(), "new.txt: the manifest does not know it"),
        (lambda f: (f / MANIFEST).unlink(), "No manifest can be read."),
        (lambda f: (f / MANIFEST).write_text("["), "No manifest can be read."),
        (lambda f: (f / MANIFEST).write_text('{"schema": 9}'), "has schema 9, not 1"),
    ],
    ids=["changed", "missing", "unknown", "no manifest", "no json", "newer"],
)
def test_every_damage_is_named(folder: Path, damage: object, problem: str) -> None:
    """A changed byte, a missing or unknown file, a manifest that is none."""
    assert callable(damage)
    damage(folder)
    problems = bundle_at(folder).problems()
    assert len(problems) == 1
    assert problem in problems[0]


def test_a_manifest_cannot_point_outside(folder: Path) -> None:
    """A name with a path in it is no file of the bundle."""
    outside = folder.parent / "secret.json"
    outside.write_text("{}")
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"].append({"file": "../secret.json", "bytes": 2, "sha256": ""})
    (folder / MANIFEST).write_text(json.dumps(manifest))
    (problem,) = bundle_at(folder).problems()
    assert "is no file of a bundle" in problem


def test_damaged_lines_are_left_out(folder: Path) -> None:
    """The others are read."""
    with (folder / OBSERVATIONS).open("a") as file:
        file.write('{"stream": "reports"}\nbroken\n{"stream": "reports", "step": 9}\n')
    assert [o.step for o in bundle_at(folder).observations()] == [0, 1, 9]


@pytest.mark.parametrize(
    ("place", "said"), [("", "holds no evidence"), ("nothing", "does not exist")]
)
def test_a_place_without_evidence_says_so(
    tmp_path: Path, place: str, said: str
) -> None:
    """And says what to give; a mistyped path is told from an empty folder."""
    with pytest.raises(SourceError, match=said):
        find_bundles(str(tmp_path / place))


def test_a_file_that_is_no_archive_says_so(tmp_path: Path) -> None:
    """Not a traceback of zipfile."""
    path = tmp_path / "result.json"
    path.write_text("{}")
    with pytest.raises(SourceError, match="neither a folder nor a zip file"):
        find_bundles(str(path))
