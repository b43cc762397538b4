"""What the layout promises: light imports, a trunk of standard library, one version."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import tune_guard

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tune_guard"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

HEAVY = {"ray", "optuna", "torch", "pandas", "numpy", "sklearn", "pyarrow"}
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
LAYERS = CONTRACTS[0]["layers"]
TRUNK = {
    name.strip(" ()")
    for layer in LAYERS[LAYERS.index("monitor") :]
    for name in re.split("[|:]", layer)
}


HELP = """
import sys
from tune_guard.cli import main
sys.argv = ["tune-guard", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
"""


def modules_after(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after ``code``."""
    report = "import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        capture_output=True,
        check=True,
        text=True,
    )
    names = json.loads(done.stdout.splitlines()[-1])
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize(
    "code",
    [
        "import tune_guard",
        "from tune_guard import Policy, Monitor, StopRecord, Space",
        "from tune_guard import Policy; Policy.default('loss', 'min')",
        "import tune_guard.cli",
        HELP,
    ],
    ids=["package", "names", "policy", "cli", "help"],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str) -> None:
    """The package, its plain names and the CLI's help load no engine."""
    assert not modules_after(code) & HEAVY


def test_importing_the_package_loads_nothing_of_third_parties() -> None:
    """``import tune_guard`` costs what the standard library costs."""
    new = modules_after("import tune_guard") - modules_after("")
    assert new - sys.stdlib_module_names == {"tune_guard"}


def trunk_files() -> list[Path]:
    """Return every file of the trunk."""
    files = [file for file in PACKAGE.glob("*.py") if file.stem in TRUNK]
    return sorted(files) + sorted((PACKAGE / "rules").glob("*.py"))


@pytest.mark.parametrize("file", trunk_files(), ids=lambda file: file.stem)
def test_the_trunk_imports_the_standard_library_only(file: Path) -> None:
    """A trunk module imports itself and Python; YAML is for the policy's file."""
    allowed = sys.stdlib_module_names | {"tune_guard"}
    if file.stem == "policy_file":
        allowed |= {"yaml"}
    imported = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            imported.add(str(node.module).partition(".")[0])
    assert imported <= allowed


def test_the_contracts_speak_of_one_trunk() -> None:
    """The modules below the wings are those that may hold no third party."""
    trunk = next(c for c in CONTRACTS if c["name"].startswith("The trunk"))
    assert set(trunk["source_modules"]) == {f"tune_guard.{name}" for name in TRUNK}


def test_the_version_stands_in_one_place() -> None:
    """``__version__`` is what pyproject.toml says, by the installed metadata."""
    assert tune_guard.__version__ == PROJECT["project"]["version"]
    assert version("tune-guard") == PROJECT["project"]["version"]


def test_every_public_name_loads() -> None:
    """``__all__`` is sorted, complete and holds nothing that does not exist."""
    assert sorted(tune_guard.__all__) == tune_guard.__all__
    for name in tune_guard.__all__:
        assert getattr(tune_guard, name) is not None
    assert set(tune_guard.__all__) <= set(dir(tune_guard))


def test_no_module_is_long() -> None:
    """A module that needs more than 500 lines is two modules."""
    long = {
        str(file.relative_to(ROOT)): lines
        for file in PACKAGE.rglob("*.py")
        if (lines := len(file.read_text(encoding="utf-8").splitlines())) > 500
    }
    assert not long


def test_the_pins_are_portable() -> None:
    """Constraints name versions only: no address, no path, no local build."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    wrong = [
        line
        for line in lines
        if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*|#.*|", line)
    ]
    assert not wrong


def test_every_dependency_is_pinned() -> None:
    """Each requirement of pyproject.toml has a version in the constraints."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
    pinned = {line.partition("==")[0].replace("_", "-") for line in text.splitlines()}
    project = PROJECT["project"]
    wanted = [
        requirement
        for group in (
            project["dependencies"],
            *project["optional-dependencies"].values(),
        )
        for requirement in group
    ]
    names = {re.split(r"[\[<>=!~; ]", line)[0].lower() for line in wanted}
    assert names - pinned == {"tune-guard"}
