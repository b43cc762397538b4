"""The batch script runs a sweep on two nodes, with stand-ins for Slurm's commands."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cluster.conftest import PATIENCE_S, ROOT
from tune_guard import load_sweep

SRUN = """#!/bin/bash
echo "$*" >> "$STEPS"
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""
SCONTROL = f"""#!/bin/bash
[[ "$*" == "show hostnames a[1-2]" ]] && printf '%s\\n' {socket.gethostname()}{{,}}
"""


@pytest.fixture(scope="module")
def folder(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What a job of two nodes, both on this machine, has left."""
    folder = tmp_path_factory.mktemp("slurm")
    for name, text in {"srun": SRUN, "scontrol": SCONTROL}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    paths = [str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]
    job = {
        **environment,
        "PATH": os.pathsep.join(paths),
        "STEPS": str(folder / "steps"),
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_SUBMIT_DIR": str(ROOT),
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_JOB_NODELIST": "a[1-2]",
    }
    script = ROOT / "examples" / "cluster" / "sweep.sbatch"
    done = subprocess.run(
        ["/bin/bash", script, folder / "results", "--trials", "2", "--seed", "3"],
        env=job,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_the_script_runs_a_guarded_sweep(folder: Path) -> None:
    """Every trial has its record, and the report is written.

    With the seed one of the two is cut, which is no failure of the job.
    """
    trials = load_sweep(str(folder / "results" / "guarded_sweep")).trials
    assert sorted(trial.outcome for trial in trials) == ["completed", "guard"]
    assert all(trial.reason for trial in trials if trial.outcome == "guard")
    assert (folder / "results" / "report.html").exists()


def test_head_workers_and_driver_are_steps_of_the_job(folder: Path) -> None:
    """One `ray start` a node; the driver runs beside the head."""
    steps = (folder / "steps").read_text().splitlines()
    assert sum("ray start --block --head" in step for step in steps) == 1
    assert sum("ray start --block --address" in step for step in steps) == 1
    assert sum("python -m examples.cluster.sweep" in step for step in steps) == 1
    assert all("--nodes=1 --ntasks=1 --overlap" in step for step in steps)
