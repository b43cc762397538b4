"""A sweep on several nodes ends as it does on one, however it was started."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster.cluster_process import WORKERS
from tests.integration.cluster.sweep import SEEDS
from tune_guard import load_sweep
from tune_guard.evidence.reader import find_bundles

WAYS = ["spread", "through_client", "as_job"]
OWN = {"trial", "host", "time", "evidence", "attempt"}
"""What a record says of this very run."""

ENDS = {
    0: ("plateau", 22),
    1: ("plateau", 17),
    2: ("non_finite", 14),
    3: ("divergence", 11),
    4: ("", -1),
    5: ("plateau", 20),
    6: ("plateau", 22),
    7: ("non_finite", 10),
}


def records(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the stored record of every trial, by seed; a second one fails."""
    found: dict[int, dict[str, Any]] = {}
    for path in folder.glob("*/tune_guard.json"):
        seed = json.loads((path.parent / "params.json").read_text())["seed"]
        assert seed not in found
        found[seed] = json.loads(path.read_text())
    return found


def judged(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the records without what every run has of its own."""
    found = {}
    for seed, record in records(folder).items():
        detail = record.pop("tune_guard/detail")
        kept = {key: value for key, value in detail.items() if key not in OWN}
        evidence = str(detail.get("evidence", "")).partition("-")[2]
        del record["trial_id"], record["path"]
        found[seed] = {**record, "detail": kept, "evidence": evidence}
    return found


def test_every_seed_has_its_end(single_node: Path) -> None:
    """The sweep that the others are held against has ends of every kind."""
    ends = {
        seed: (record["tune_guard/reason"], record["tune_guard/step"])
        for seed, record in records(single_node).items()
    }
    assert ends == ENDS


@pytest.mark.parametrize("way", WAYS)
def test_the_records_are_those_of_one_node(
    way: str, single_node: Path, request: pytest.FixtureRequest
) -> None:
    """Verdict, step, numbers and sentence of every trial, and none is missing."""
    assert judged(request.getfixturevalue(way)) == judged(single_node)


@pytest.mark.parametrize("way", WAYS)
def test_the_sweep_is_read_back_whole(
    way: str, single_node: Path, request: pytest.FixtureRequest
) -> None:
    """Curves and ends, as the report reads them; nothing is found wrong."""
    loaded, expected = map(
        load_sweep, map(str, (request.getfixturevalue(way), single_node))
    )
    assert loaded.problems == expected.problems == []
    ends = [
        {t.params["seed"]: (t.outcome, t.reason, t.step, t.steps_run) for t in s.trials}
        for s in (loaded, expected)
    ]
    assert ends[0] == ends[1]
    assert len(loaded.trials) == len(SEEDS)


@pytest.mark.parametrize("way", WAYS)
def test_the_evidence_of_every_cut_is_whole(
    way: str, request: pytest.FixtureRequest
) -> None:
    """It lies in the storage that the cluster shares."""
    bundles = find_bundles(str(request.getfixturevalue(way)))
    assert [bundle.problems() for bundle in bundles] == [[]] * len(bundles)
    told = Counter(bundle.manifest["reason"] for bundle in bundles)
    assert told == Counter(reason for reason, _ in ENDS.values() if reason)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives nodes their own names")
@pytest.mark.parametrize("way", WAYS)
def test_a_record_names_the_machine_of_its_trial(
    way: str, request: pytest.FixtureRequest
) -> None:
    """Trials ran on both nodes that have a GPU, and none where the driver is."""
    found = records(request.getfixturevalue(way)).values()
    hosts = {record["tune_guard/detail"]["host"] for record in found}
    assert hosts == set(WORKERS.values())


def test_a_killed_node_changes_no_verdict(
    node_killed: tuple[Path, dict[int, str], str], single_node: Path
) -> None:
    """Its trial runs again elsewhere and ends as if nothing had been."""
    assert judged(node_killed[0]) == judged(single_node)


def test_a_killed_node_costs_its_trial_an_attempt(
    node_killed: tuple[Path, dict[int, str], str],
) -> None:
    """One trial ran on each node: one has two attempts, the other one."""
    folder, nodes, killed = node_killed
    attempts = {
        seed: records(folder)[seed]["tune_guard/detail"]["attempt"] for seed in nodes
    }
    assert attempts == {seed: 1 + (node == killed) for seed, node in nodes.items()}
    assert sorted(attempts.values()) == [1, 2]
