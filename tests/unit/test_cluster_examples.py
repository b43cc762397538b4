"""The manifest and the batch script of ``examples/cluster``, without their systems."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ray.scripts import scripts

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "examples" / "cluster" / "raycluster.yaml"
SCRIPT = ROOT / "examples" / "cluster" / "sweep.sbatch"
SCHEMA = json.loads(Path(__file__).with_name("raycluster.schema.json").read_text())
RAY_START = {name for option in scripts.start.params for name in option.opts}
SBATCH = {
    *("job-name", "nodes", "ntasks-per-node", "cpus-per-task"),
    *("mem", "time", "output"),
}


@pytest.fixture(name="claim")
def _claim() -> Any:
    return next(yaml.safe_load_all(MANIFEST.read_text()))


@pytest.fixture(name="cluster")
def _cluster() -> Any:
    _, cluster = yaml.safe_load_all(MANIFEST.read_text())
    return cluster


def groups(cluster: Any) -> list[Any]:
    """Return the group of the head and those of the workers."""
    return [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]


def test_the_manifest_is_of_the_form_that_the_operator_takes(cluster: Any) -> None:
    """No field is missing, of another type, or misspelt."""
    jsonschema.Draft202012Validator(SCHEMA).validate(cluster)


def test_a_misspelt_field_is_found(cluster: Any) -> None:
    """The operator would leave it out without a word."""
    group = cluster["spec"]["workerGroupSpecs"][0]
    group["minReplica"] = group.pop("minReplicas")
    with pytest.raises(jsonschema.ValidationError, match="minReplica"):
        jsonschema.Draft202012Validator(SCHEMA).validate(cluster)


def test_the_replicas_lie_within_their_bounds(cluster: Any) -> None:
    """At least one worker: the head runs no trials."""
    for group in cluster["spec"]["workerGroupSpecs"]:
        assert 1 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    assert cluster["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"


def test_every_parameter_is_an_option_of_ray_start(cluster: Any) -> None:
    """As the installed Ray has them."""
    for group in groups(cluster):
        assert {f"--{name}" for name in group["rayStartParams"]} <= RAY_START


def test_every_mount_has_its_volume_and_every_volume_its_claim(
    cluster: Any, claim: Any
) -> None:
    """All pods share the volume, which many nodes may write to."""
    for group in groups(cluster):
        pod = group["template"]["spec"]
        volumes = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["volumes"]
        }
        mounted = {m["name"] for c in pod["containers"] for m in c["volumeMounts"]}
        assert mounted == set(volumes)
        assert set(volumes.values()) == {claim["metadata"]["name"]}
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_no_pod_asks_for_more_than_it_may_have(cluster: Any) -> None:
    """Requests equal limits: what Ray counts is what there is."""
    for group in groups(cluster):
        for container in group["template"]["spec"]["containers"]:
            assert (
                container["resources"]["requests"] == container["resources"]["limits"]
            )


def test_the_images_are_of_the_ray_that_is_tested(cluster: Any) -> None:
    """The version of constraints.txt, in all places."""
    pinned = re.search(
        r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
    assert pinned is not None
    assert cluster["spec"]["rayVersion"] == pinned[1]
    for group in groups(cluster):
        for container in group["template"]["spec"]["containers"]:
            assert container["image"].startswith(f"rayproject/ray:{pinned[1]}-")


def test_the_batch_script_parses() -> None:
    """As bash reads it."""
    subprocess.run(["/bin/bash", "-n", str(SCRIPT)], check=True)


def test_shellcheck_finds_nothing_in_the_batch_script() -> None:
    """Neither in CI's own script."""
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        assert "CI" not in os.environ, "CI must have shellcheck"
        pytest.skip("shellcheck is not installed")
    command = [shellcheck, "--exclude=SC1091", str(SCRIPT), str(ROOT / ".ci" / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_batch_script_asks_slurm_for_what_it_uses() -> None:
    """One task a node; options that sbatch knows; `ray start` takes the others."""
    text = SCRIPT.read_text()
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", text, re.MULTILINE))
    assert set(asked) == SBATCH
    assert asked["ntasks-per-node"] == "1"
    lines = text.replace("\\\n", " ").splitlines()
    starts = [line.split("ray start")[1] for line in lines if "ray start" in line]
    assert len(starts) == 2
    for line in starts:
        assert set(re.findall(r"(--[\w-]+)", line)) <= RAY_START
