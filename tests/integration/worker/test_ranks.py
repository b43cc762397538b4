"""One decision for all ranks: real processes in a gloo group."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.integration.worker.ranks import on_ranks

run = partial(on_ranks, module="tests.integration.worker.rank_programs")


def same(found: list[Any], *names: str) -> Any:
    """Return what all ranks said alike."""
    first = {name: found[0][name] for name in names}
    for other in found:
        assert {name: other[name] for name in names} == first
    return tuple(first.values())


def test_the_deciding_ranks_plateau_stops_all() -> None:
    """At step 3 on all four ranks, with the same collectives also on rank 3."""
    found = run(4, name="plateau")
    stops, reason, step, collectives = same(
        found, "stops", "reason", "step", "collectives"
    )
    assert (reason, step) == ("plateau", 3)
    assert stops == [False, False, False, True]
    assert collectives == 4 + 1


def test_a_nan_on_any_rank_stops_all() -> None:
    """At its own step, and the record names the rank."""
    found = run(3, name="nan_on_one")
    stops, reason, message = same(found, "stops", "reason", "message")
    assert stops == [False, False, False, True]
    assert reason == "non_finite"
    assert message.endswith("(rank 1)")


def test_of_two_bad_ranks_the_lower_is_named() -> None:
    """Everywhere the same one."""
    (message,) = same(run(3, name="nan_on_two"), "message")
    assert message.endswith("(rank 1)")


def test_a_rank_without_a_loss_takes_part() -> None:
    """It has nothing to judge, and stops with the others."""
    stops, reason, collectives = same(
        run(2, name="without_a_loss"), "stops", "reason", "collectives"
    )
    assert stops == [False, False, True, True]
    assert reason == "non_finite"
    assert collectives == 3 + 1


def test_a_matter_of_judgement_is_the_deciding_ranks() -> None:
    """Rank 1's explosion stops nobody; its NaN afterwards does."""
    stops, reason, step = same(
        run(2, name="judged_by_another"), "stops", "reason", "step"
    )
    assert stops == [False] * 7 + [True]
    assert (reason, step) == ("non_finite", 7)


def test_another_rank_may_decide() -> None:
    """With ``deciding_rank=1`` its explosion stops all."""
    stops, reason = same(run(2, name="judged_by_rank_one"), "stops", "reason")
    assert stops == [False, False, False, False, True]
    assert reason == "gradient_explosion"


def test_accumulated_batches_cost_one_collective() -> None:
    """One check per optimizer step."""
    (collectives,) = same(run(2, name="accumulated"), "collectives")
    assert collectives == 3


def test_a_rank_goes_on_alone_when_its_peers_died() -> None:
    """One notice, and its own verdict is right."""
    found, lost = run(2, name="peer_dies", expect=1)
    assert lost is None
    assert found["stops"] == [False] * 5 + [True]
    assert found["reason"] == "non_finite"
    assert found["notices"].count("ranks") == 1


def test_the_norm_of_sharded_parameters_is_the_whole_norm() -> None:
    """Measured by the guard, or given by ``clip_grad_norm_``, on every rank."""
    for found in run(2, name="sharded"):
        assert found["mine"] == pytest.approx(found["expected"], rel=1e-5)
        assert found["given"] == pytest.approx(found["expected"], rel=1e-5)


def test_a_replicated_training_stops_before_its_weights_die() -> None:
    """Bad data of one rank: all stop at that step, with finite weights."""
    found = run(2, name="replicated")
    stops, finite, message = same(found, "stops", "finite", "message")
    assert stops == [False, False, False, True]
    assert finite
    assert message.endswith("(rank 1)")
