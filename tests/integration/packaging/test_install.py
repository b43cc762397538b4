"""An empty environment takes what is published, and it works there."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from tests.integration.packaging.conftest import Environment

HERE = Path(__file__).parent
ENGINES = ("ray", "optuna", "torch", "numpy", "pandas", "jinja2", "scipy")


def test_the_library_works_with_its_bare_needs(bare: Environment) -> None:
    """It imports, judges, and a policy survives its file; no engine is there."""
    printed = bare.run("python", "-I", HERE / "smoke_bare.py", *ENGINES)
    assert printed.splitlines() == ["no engine", "same policy", "non_finite at 3"]


def test_the_command_line_works_with_its_bare_needs(bare: Environment) -> None:
    """Help, and the version that is published."""
    assert "calibrate" in bare.run("tune-guard", "--help")
    assert bare.run("tune-guard", "--version").strip() == version("tune-guard")


def test_an_optuna_study_is_cut_and_reported(with_optuna: Environment) -> None:
    """One extra is all it takes, from the first trial to the report."""
    printed = with_optuna.run("python", "-I", HERE / "smoke_optuna.py")
    assert printed.splitlines() == ["PRUNED non_finite 2", "COMPLETE None None"]
    report = with_optuna.run("tune-guard", "report", "sqlite:///study.db", status=1)
    assert "non_finite" in report


def test_the_sdist_installs_too(sdist: Path, tmp_path: Path) -> None:
    """The build backend comes from the index."""
    made = Environment(tmp_path)
    made.install(sdist)
    assert "calibrate" in made.run("tune-guard", "--help")
