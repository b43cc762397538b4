"""What is published holds all of the package and nothing else."""

from __future__ import annotations

import hashlib
import sys
import tarfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

from tests.integration.packaging.conftest import ROOT, build, run


def _hashes(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: hashlib.sha256(archive.read(name)).hexdigest()
            for name in archive.namelist()
        }


def test_the_sdist_builds_the_wheel_that_the_checkout_builds(
    wheel: Path, tmp_path: Path
) -> None:
    """Byte for byte in every file."""
    build(ROOT, tmp_path, "--wheel")
    (direct,) = tmp_path.glob("*.whl")
    assert _hashes(direct) == _hashes(wheel)


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Templates and the mark of typed code among them; tests are not."""
    package = ROOT / "tune_guard"
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    held = {name for name in _hashes(wheel) if ".dist-info/" not in name}
    assert held == expected
    assert "tune_guard/py.typed" in held
    assert any(name.endswith("page.html.j2") for name in held)


def test_the_sdist_holds_what_its_tests_read(sdist: Path) -> None:
    """And the licence."""
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    top = {name.split("/")[0] for name in names}
    assert {"docs", "examples", "optunahub", "search_spaces", "tests"} <= top
    assert {"LICENSE", "README.md", "constraints.txt", "pyproject.toml"} <= names


def test_the_metadata_is_valid(wheel: Path) -> None:
    """As the package index reads it, licence and description with it."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(archive.read(name), validate=True)
        licences = [n for n in archive.namelist() if n.endswith("licenses/LICENSE")]
    assert (metadata.name, metadata.license_expression) == ("tune-guard", "Apache-2.0")
    assert metadata.description_content_type == "text/markdown"
    assert str(metadata.requires_python) == ">=3.11"
    assert licences


def test_the_index_will_show_the_description(wheel: Path, sdist: Path) -> None:
    """As its own tool has it."""
    said = run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    assert said.count("PASSED") == 2
