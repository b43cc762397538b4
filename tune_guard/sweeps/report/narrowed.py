"""A narrowed space in words, and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tune_guard.sweeps.claims import Share
    from tune_guard.sweeps.narrow import Narrowed


def lines(found: Narrowed) -> list[str]:
    """Return what is left out, and what that would have done, a line each.

    Args:
        found: What :func:`tune_guard.sweeps.narrow.narrow` returned.
    """
    beyond = [f"No range can leave this out: {claim}." for claim in found.beyond]
    if not found.cuts:
        return [f"The space is best left as it is: {found.why}.", *beyond]
    return [
        *(f"Leave out {cut}." for cut in found.cuts),
        f"Dead trials avoided: {_share(found.avoided)}.",
        f"Of the best tenth kept: {_share(found.kept)}.",
        f"Of all that did not die kept: {_share(found.others_kept)}.",
        "All measured on trials that had no part in choosing the regions.",
        *beyond,
    ]


def _share(share: Share) -> str:
    low, high = share.interval
    counts = f"{share.hits} of {share.of}, 95% interval {low:.0%} to {high:.0%}"
    return f"{share.ratio:.0%} ({counts})"


def as_json(found: Narrowed) -> dict[str, Any]:
    """Return the same as plain values."""
    shares = {
        name: {"hits": share.hits, "of": share.of, "interval": list(share.interval)}
        for name in ("avoided", "kept", "others_kept")
        for share in [getattr(found, name)]
    }
    cuts = [
        {"name": c.name, "kind": c.kind, "cut": c.cut, "choices": list(c.choices)}
        for c in found.cuts
    ]
    beyond = [str(claim) for claim in found.beyond]
    said = {"why": found.why, "beyond": beyond, "space": found.space.to_yaml()}
    return {"cuts": cuts, **shares, **said}
