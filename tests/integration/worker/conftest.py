"""What the tests of the worker in real engines share."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.clusters import local_cluster

NVML = Path(__file__).parent / "nvml"

os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S", "600")


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """Start Ray.

    Its slots are no real cores: those of a training that Tune ended are given
    back late, because Ray's cleaner asks the dashboard.
    """
    with local_cluster(num_cpus=12):
        yield


@pytest.fixture(scope="session")
def nvml_builds(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return what compiles the stub of NVML; gives the folder of the library."""
    compiler = shutil.which("gcc")
    if compiler is None and os.environ.get("CI") == "true":
        pytest.fail("gcc must be installed in CI: it compiles the stub of NVML")
    if compiler is None:
        pytest.skip("gcc is needed to compile the stub of NVML")

    def build(*options: str) -> Path:
        folder = tmp_path_factory.mktemp("nvml")
        target = folder / "libnvidia-ml.so.1"
        strict = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run(
            [
                *(str(compiler), *strict, *options, f"-Wl,-soname,{target.name}"),
                *("-o", str(target), str(NVML / "stub.c")),
            ],
            check=True,
        )
        return folder

    return build


@pytest.fixture(scope="session")
def _nvml_loaded(nvml_builds: Callable[..., Path]) -> None:
    """Load the stub, so that pynvml finds it under the library's usual name."""
    library = nvml_builds() / "libnvidia-ml.so.1"
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


@pytest.fixture
def nvml(_nvml_loaded: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what puts a recording into the stub, and goes to one of its samples."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)

    def play(recording: str | None = None, *, tick: int = 0) -> None:
        if recording is not None:
            path = NVML / "recordings" / f"{recording}.txt"
            assert path.exists()
            monkeypatch.setenv("NVML_STUB", str(path))
        monkeypatch.setenv("NVML_STUB_TICK", str(tick))

    return play
