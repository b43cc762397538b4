"""Where a trial ran: versions, commit, machine. No secrets: a fixed list only."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tune_guard.record import version

_PACKAGES = (
    "torch",
    "numpy",
    "ray",
    "optuna",
    "lightning",
    "pytorch-lightning",
    "transformers",
    "accelerate",
    "deepspeed",
)

_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTHONHASHSEED",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "SLURM_JOB_ID",
    "SLURM_NODELIST",
)
"""What changes a training's numbers, or says where it ran; none holds a secret."""

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_MOST_REFS_BYTES = 2**22


def environment() -> dict[str, Any]:
    """Return the environment of this process, as plain values."""
    found = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "packages": {"tune-guard": version(), **_packages()},
        "git_commit": git_commit(_home_of_program()),
        "variables": variables(os.environ),
        **_cuda(),
    }
    return {name: value for name, value in found.items() if value not in (None, "", {})}


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are on the list.

    Example:
        >>> variables({"API_KEY": "secret", "RANK": "0"})
        {'RANK': '0'}
    """
    return {name: environ[name] for name in _VARIABLES if name in environ}


def _packages() -> dict[str, str]:
    """Return the versions of those packages that are loaded."""
    found = {}
    for name in _PACKAGES:
        if name.replace("-", "_") in sys.modules:
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def _cuda() -> dict[str, Any]:
    """Return versions of CUDA and names of the visible GPUs; asks no device anew."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return {}
        return {
            "cuda": str(torch.version.cuda),
            "cudnn": torch.backends.cudnn.version(),
            "gpus": [
                torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())
            ],
        }
    except Exception:  # noqa: BLE001 - a device that failed answers nothing
        return {}


def _home_of_program() -> Path:
    """Return the folder of the program, which an engine may have left."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(main).resolve().parent if main else Path.cwd()


def git_commit(folder: Path) -> str:
    """Return the commit that a folder is at, read from its repository's files.

    Empty without a repository. No process is started: the trial is about to end.
    """
    try:
        for above in (folder, *folder.parents):
            git = above / ".git"
            if git.exists():
                return _head(_git_dir(git))
    except (OSError, ValueError):
        pass
    return ""


def _git_dir(git: Path) -> Path:
    """Return the repository's folder; in a work tree, .git is a file that names it."""
    if git.is_dir():
        return git
    named = git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
    return (git.parent / named).resolve()


def _head(git: Path) -> str:
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    ref = head.removeprefix("ref: ")
    if ref == head:
        return head if _COMMIT.fullmatch(head) else ""
    common = git / "commondir"
    shared = (
        git / common.read_text(encoding="utf-8").strip() if common.exists() else git
    )
    for home in (git, shared):
        if (home / ref).is_file():
            return (home / ref).read_text(encoding="utf-8").strip()
    return _packed(shared / "packed-refs", ref)


def _packed(file: Path, ref: str) -> str:
    if not file.is_file() or file.stat().st_size > _MOST_REFS_BYTES:
        return ""
    for line in file.read_text(encoding="utf-8").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _COMMIT.fullmatch(commit):
            return commit
    return ""
