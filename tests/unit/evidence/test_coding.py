"""Observations and states as strict JSON, and back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.streams import eventful
from tests.unit.evidence.support import RULES, watched
from tune_guard import Observation, Policy
from tune_guard.evidence.coding import (
    line,
    observation_as_json,
    observation_of,
    state_as_json,
    state_of,
)

floats = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(metric=floats, loss=floats | st.none(), flag=st.booleans(), other=floats)
def test_an_observation_survives(
    metric: float, loss: float | None, flag: bool, other: float
) -> None:
    """Every number bit for bit, also where it is not finite."""
    seen = Observation(
        step=3,
        metric=metric,
        loss=loss,
        step_skipped=flag,
        losses=[("kl_loss", other), ("nll", None)],
        values={"eval/score": other},
        warming=flag,
    )
    stored = json.loads(line(observation_as_json(seen)), parse_constant=pytest.fail)
    assert repr(observation_of(stored)) == repr(seen)


@pytest.mark.parametrize("stored", [{}, {"step": None}, {"step": True}, {"step": "1"}])
def test_what_has_no_step_is_no_observation(stored: dict[str, Any]) -> None:
    """It is refused, so that a damaged line can be left out."""
    with pytest.raises(TypeError, match="needs a step"):
        observation_of(stored)


@pytest.mark.parametrize("seed", range(3))
def test_a_monitors_state_survives(seed: int) -> None:
    """After everything that any rule looks for."""
    policy = Policy("score", "min", rules=RULES, actions={"*": "warn"})
    state = watched(policy, eventful(seed)).state()
    text = json.dumps(state_as_json(state), allow_nan=False)
    assert repr(state_of(json.loads(text))) == repr(state)


def test_a_state_tells_a_number_from_a_text() -> None:
    """The text NaN stays a text."""
    back = state_of(state_as_json(["NaN", math.nan, -math.inf]))
    assert back[0] == "NaN"
    assert math.isnan(back[1])
    assert back[2] == -math.inf


def test_what_is_no_plain_value_is_refused() -> None:
    """A foreign rule's state that cannot be stored is named, not guessed."""
    with pytest.raises(TypeError, match="cannot hold a object"):
        state_as_json({"rule": [object()]})
