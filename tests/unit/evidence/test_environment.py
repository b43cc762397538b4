"""Where a trial ran, without secrets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tune_guard.evidence.environment import environment, git_commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_secrets_are_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only variables of a fixed list are, whatever the others are called."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    for name in ("WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "HOME_GROWN"):
        monkeypatch.setenv(name, "hunter2")
    found = environment()
    assert found["variables"]["CUDA_VISIBLE_DEVICES"] == "3"
    assert "hunter2" not in json.dumps(found)


def test_it_names_versions_and_host() -> None:
    """Of the package itself, of Python, and of what is loaded."""
    found = environment()
    assert found["packages"]["tune-guard"]
    assert found["host"]
    assert found["python"]


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and return what it printed."""
    someone = ["-c", "user.name=n", "-c", "user.email=e"]
    command = ["git", "-C", str(folder), *someone, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, as git makes it."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    (tmp_path / "expected").write_text(git(tmp_path, "rev-parse", "HEAD"))
    return tmp_path


@pytest.mark.parametrize("how", ["loose", "packed", "detached", "below", "worktree"])
def test_the_commit_is_read_from_the_repository(repository: Path, how: str) -> None:
    """As a loose or packed branch, detached, from a folder below, in a work tree."""
    expected, folder = (repository / "expected").read_text(), repository
    command = {
        "packed": ["pack-refs", "--all"],
        "detached": ["checkout", "-q", "--detach"],
        "worktree": ["worktree", "add", "-q", str(repository / "tree"), "-b", "other"],
    }.get(how)
    if command:
        git(repository, *command)
    if how == "below":
        folder = repository / "a" / "b"
        folder.mkdir(parents=True)
    if how == "worktree":
        folder = repository / "tree"
    assert git_commit(folder) == expected


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "garbage", "\xff"])
def test_a_repository_that_says_nothing_costs_nothing(
    tmp_path: Path, head: str
) -> None:
    """No commit is no reason to fail."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(head.encode("latin-1"))
    assert git_commit(tmp_path) == ""
