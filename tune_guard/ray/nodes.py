"""A node whose machine broke a trial is avoided when the trial runs again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ray

from tune_guard.ray import _engine

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

_LABEL = "ray.io/node-id"
"""The label that Ray gives every node."""

_NODE_ID = re.compile(r"[0-9a-f]{40,}")


def avoid_node(trial: Trial) -> bool:
    """See to it that a trial's next attempt runs on another node.

    The nodes that it was kept from before are still avoided. Nothing is changed
    where no other node has the resources: better a doubtful node than none.

    Args:
        trial: A trial whose attempt has just failed.

    Returns:
        Whether another node can be had.
    """
    address = _engine.newest_row(trial).get("node_ip")
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    request: Any = trial.placement_group_factory
    known = _engine.label_selectors(request)
    bad = {node["NodeID"] for node in nodes if node["NodeManagerAddress"] == address}
    for selector in known:
        bad |= set(_NODE_ID.findall(selector.get(_LABEL, "")))
    others = [n["Resources"] for n in nodes if n["Alive"] and n["NodeID"] not in bad]
    bundles = request.bundles
    if not bad or not all(any(_fits(b, node) for node in others) for b in bundles):
        return False
    known += [{}] * (len(bundles) - len(known))
    avoiding = {_LABEL: f"!in({','.join(sorted(bad))})"}
    selectors = [{**selector, **avoiding} for selector in known]
    trial.update_resources(_engine.with_label_selectors(request, selectors))
    return True


def _fits(bundle: dict[str, float], resources: dict[str, float]) -> bool:
    return all(resources.get(name, 0.0) >= count for name, count in bundle.items())
