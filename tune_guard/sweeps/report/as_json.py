"""A comparison as strict JSON values, for programs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tune_guard.record import plain

if TYPE_CHECKING:
    from tune_guard.sweeps.compare import Comparison

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
    values["problems"] = [dataclasses.asdict(p) for p in comparison.problems]
    values["blames"] = {
        str(blame or "none"): {"trials": trials, "compute_share": share}
        for blame, (trials, share) in comparison.blames.items()
    }
    strict: dict[str, Any] = plain(values)
    return {"schema": SCHEMA, "findings": comparison.findings, **strict}
