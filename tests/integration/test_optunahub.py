"""The package for Optuna's registry loads from there, and keeps the registry's rules.

What the registry asks of a package is stated here once more, so that it is seen
before a pull request is.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml

os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # git need not be there
import optunahub
from tune_guard.optuna import GuardPruner

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = ROOT / "optunahub" / "package"
NAME = "pruners/tune_guard"
FOLDER = REGISTRY / NAME
README = (FOLDER / "README.md").read_text(encoding="utf-8")
_, HEADER, BODY = README.split("---\n", 2)


def local(package: str) -> Any:
    """Load from the checkout what would come from the registry."""
    return optunahub.load_local_module(package, registry_root=str(REGISTRY))


@pytest.fixture
def local_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let examples find the registry in the checkout, and say nothing."""
    monkeypatch.setattr(optunahub, "load_module", local)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def test_it_is_the_librarys_own_pruner() -> None:
    """No second implementation."""
    assert local(NAME).GuardPruner is GuardPruner


def test_the_header_is_complete() -> None:
    """No key is missing or empty, and the pruner's tag is there."""
    header = yaml.safe_load(HEADER)
    needed = ("author", "title", "description", "tags", "optuna_versions", "license")
    assert [key for key in needed if not header.get(key)] == []
    assert "pruner" in header["tags"]
    assert header["license"] == "MIT License"
    assert all(isinstance(version, str) for version in header["optuna_versions"])


def test_the_sections_are_those_of_the_template() -> None:
    """In its order, without HTML, which the registry's page removes."""
    sections = re.findall(r"^## (.+)$", BODY, re.MULTILINE)
    expected = ["Abstract", "APIs", "Installation", "Example", "Others"]
    assert sections == expected
    prose = re.sub(r"```.*?```", "", BODY, flags=re.DOTALL)
    assert not re.search(r"</?[a-z!]", prose)


def test_the_files_are_those_of_a_package() -> None:
    """Text alone; the licence is the one that the header names."""
    tracked = [p for p in FOLDER.rglob("*") if "cache" not in str(p) and p.is_file()]
    names = {path.relative_to(FOLDER).as_posix() for path in tracked}
    assert names == {
        "LICENSE",
        "README.md",
        "__init__.py",
        "_pruner.py",
        "example.py",
        "requirements.txt",
        "tests/test_pruner.py",
    }
    assert (FOLDER / "LICENSE").read_text().startswith("MIT License")


@pytest.mark.usefixtures("local_registry")
def test_the_example_gives_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    """The rates that diverge are cut, the others are not."""
    runpy.run_path(str(FOLDER / "example.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "PRUNED divergence" in printed
    assert "COMPLETE healthy" in printed


@pytest.mark.usefixtures("local_registry")
def test_the_readmes_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands."""
    (code,) = re.findall(r"```python\n(.*?)```", BODY, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - the checkout's own
    assert "PRUNED" in capsys.readouterr().out


def test_its_own_tests_pass(tmp_path: Path) -> None:
    """As they would run in the registry."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, FOLDER / "tests"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "5 passed" in done.stdout
