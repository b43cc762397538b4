"""A comparison as strict JSON values, for programs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tune_guard.strict_json import plain

if TYPE_CHECKING:
    from tune_guard.sweeps.claims import Claim, Explained
    from tune_guard.sweeps.compare import Comparison
    from tune_guard.sweeps.first_looks import FirstLook
    from tune_guard.sweeps.spared import Spared

SCHEMA = 1
"""Raised when a field changes its meaning or goes; new fields leave it alone."""


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values; non-finite numbers are texts.

    Args:
        comparison: What :func:`tune_guard.sweeps.compare.compare` returned.
    """
    values = {
        field.name: getattr(comparison, field.name)
        for field in dataclasses.fields(comparison)
    }
    values["groups"] = [dataclasses.asdict(group) for group in comparison.groups]
    values["best"] = comparison.best and dataclasses.asdict(comparison.best)
    values["saved"] = comparison.saved and dataclasses.asdict(comparison.saved)
    values["spared"] = comparison.spared and _spared(comparison.spared)
    values["top"] = [dataclasses.asdict(trial) for trial in comparison.top]
    values["first_looks"] = [_look(look) for look in comparison.first_looks]
    values["faults"] = [dataclasses.asdict(found) for found in comparison.faults]
    values["explained"] = _explained(comparison.explained)
    values["problems"] = [dataclasses.asdict(p) for p in comparison.problems]
    values["blames"] = {
        str(blame or "none"): {"trials": trials, "compute_share": share}
        for blame, (trials, share) in comparison.blames.items()
    }
    strict: dict[str, Any] = plain(values)
    return {"schema": SCHEMA, "findings": comparison.findings, **strict}


def _spared(spared: Spared) -> dict[str, Any]:
    ratio = spared.false_kill_ratio
    return {**dataclasses.asdict(spared), "false_kill_ratio": ratio}


def _look(look: FirstLook) -> dict[str, Any]:
    detail = look.record.detail() if look.record else None
    return {"trial": look.trial.id, "why": look.why, "detail": detail}


def _explained(explained: Explained | None) -> dict[str, Any] | None:
    if explained is None:
        return None
    claims = [
        {**dataclasses.asdict(claim), "where": claim.where} | _shares(claim)
        for claim in explained.claims
    ]
    silent = dict(explained.silent)
    return {"claims": claims, "tests": explained.tests, "silent": silent}


def _shares(claim: Claim) -> dict[str, Any]:
    return {
        name: {"hits": share.hits, "of": share.of, "interval": share.interval}
        for name, share in (("inside", claim.inside), ("outside", claim.outside))
    }
