from __future__ import annotations

from typing import Any

import pytest

from tune_guard.exceptions import ConfigError
from tune_guard.observation import Keys, check_keys


@pytest.mark.parametrize(
    "value", [5, None, "", "  ", ("loss", ""), ("loss", 3), {"a": 1}]
)
def test_a_key_that_is_no_text_is_refused(value: Any) -> None:
    """A wrong key is named when it is configured, not when it is read."""
    with pytest.raises(ConfigError, match="`loss`"):
        Keys(loss=value)


def test_a_list_of_keys_is_kept_as_a_tuple() -> None:
    """Keys can be compared and hashed."""
    keys: Any = ["a", "b"]
    assert Keys(loss=keys) == Keys(loss=("a", "b"))
    assert hash(Keys(loss=keys))


def test_an_unknown_signal_is_refused_with_the_nearest() -> None:
    """A typo in a file's `keys` names the signal that was meant."""
    with pytest.raises(ConfigError, match="Did you mean `grad_norm`"):
        check_keys({"gradnorm": "g"})


@pytest.mark.parametrize("keys", [["loss"], "loss", 5])
def test_keys_that_are_no_mapping_are_refused(keys: Any) -> None:
    """`keys` must say which signal lies where."""
    with pytest.raises(ConfigError, match="`keys`"):
        check_keys(keys)


def test_the_step_is_no_signal() -> None:
    """The engine says which step a report is of; no key of the report does."""
    with pytest.raises(ConfigError, match="`step` is no signal"):
        check_keys({"step": "global_step"})
