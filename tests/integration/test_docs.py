"""The guides are true: their examples run, and the pages build without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.examples_in_text import ROOT, blocks, run_console, run_python

DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
WITH_EXAMPLES = [
    name
    for name in PAGES
    if {"python", "console"} & {block.language for block in blocks(DOCS / name)}
]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_page_run_in_their_order(name: str, tmp_path: Path) -> None:
    """In one folder, each program in a process of its own."""
    for block in blocks(DOCS / name):
        if block.language == "python":
            run_python(block.text, tmp_path)
        elif block.language == "console":
            run_console(block.text, tmp_path)


def test_there_are_guides_with_examples() -> None:
    """None has lost its examples to another name of their language."""
    assert {"start.md", "policies.md", "reading.md"} <= set(WITH_EXAMPLES)
    assert {block.language for name in PAGES for block in blocks(DOCS / name)} <= {
        "console",
        "json",
        "python",
        "sh",
        "yaml",
    }


@pytest.mark.slow
def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    """API reference and guides, with every link among them."""
    strict = ("-W", "--keep-going", "-q", "-d", str(tmp_path / "read"))
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *strict, str(DOCS), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "html" / "api" / "rules.html").exists()
