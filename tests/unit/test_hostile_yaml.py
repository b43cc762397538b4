"""YAML that stands for more than it is, or for something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tune_guard import ConfigError, Policy, Space
from tune_guard.space import SpaceError
from tune_guard.sweeps import load_sweep
from tune_guard.yaml_limits import MOST_CHARACTERS

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)
MERGES = "m0: &m0 {k: 1}\n" + "".join(
    f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}\n" for n in range(1, 9)
)

HOSTILE = {
    "aliases of aliases": (LAUGHS, "more than 100000 values, aliases followed"),
    "merges of merges": (MERGES, "more than 100000 values, aliases followed"),
    "an alias in itself": ("a: &a [*a]\n", "an alias holds itself"),
    "nesting": ("a: " + "[" * 150 + "]" * 150 + "\n", "nested deeper than 100 levels"),
    "a number of 5,000 digits": (f"a: 0x{'f' * 5000}\n", "5002 characters is no text"),
    "length": ("a: " + "x" * MOST_CHARACTERS + "\n", "characters are too many"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_policy_of_any_size_is_refused(name: str) -> None:
    """By its line, before anything is made of it."""
    text, words = HOSTILE[name]
    with pytest.raises(ConfigError, match=words):
        Policy.from_yaml(text)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_space_of_any_size_is_refused(name: str) -> None:
    """The same."""
    text, words = HOSTILE[name]
    if name == "a number of 5,000 digits":
        text, words = f"a: {'9' * 5000}\n", "5000 characters is no text"
    with pytest.raises(SpaceError, match=words):
        Space.from_yaml(text)


@pytest.mark.parametrize("name", HOSTILE)
def test_hyperparameters_of_any_size_are_left_out(name: str, tmp_path: Path) -> None:
    """They are a gap, and the trial's curve is read."""
    text, words = HOSTILE[name]
    (tmp_path / "hparams.yaml").write_text(text)
    (tmp_path / "metrics.csv").write_text("step,loss\n1,0.5\n")
    sweep = load_sweep(tmp_path)
    assert (sweep.trials[0].params, sweep.trials[0].steps_run) == ({}, 1)
    assert words in sweep.problems[0].what


ODD = [
    *("!!int ''", "!!bool x", "!!timestamp x", "!!float x", "2001-99-99", "!!map x"),
    *("!!python/object/apply:os._exit [7]", "!!python/name:os.system", "? [a]\n: 1"),
]


@pytest.mark.parametrize("value", ODD)
def test_a_value_that_is_not_what_its_tag_says_is_refused(value: str) -> None:
    """PyYAML has an error of its own for each: none comes out, and nothing runs."""
    with pytest.raises(ConfigError, match="policy text:1: it is no YAML"):
        Policy.from_yaml(f"metric: {value}\n" if value[0] != "?" else f"{value}\n")


@pytest.mark.parametrize("value", ODD)
def test_such_hyperparameters_are_left_out(value: str, tmp_path: Path) -> None:
    """The same, in a file of Lightning's."""
    text = f"metric: {value}\n" if value[0] != "?" else f"{value}\n"
    (tmp_path / "hparams.yaml").write_text(text)
    (tmp_path / "metrics.csv").write_text("step,loss\n1,0.5\n")
    sweep = load_sweep(tmp_path)
    assert sweep.trials[0].params == {}
    assert "left out" in sweep.problems[0].what


def test_a_space_file_with_a_nul_in_its_name_cannot_be_read() -> None:
    """The system's own refusal is a ValueError."""
    with pytest.raises(SpaceError, match="cannot be read"):
        Space.from_yaml("a\0b")


def test_a_whole_number_beyond_floats_is_infinite_in_a_rule() -> None:
    """And is refused by the rule as infinity is."""
    rules = f"rules: [gradient_explosion: {{factor: {'9' * 400}}}]\n"
    with pytest.raises(ConfigError, match="factor"):
        Policy.from_yaml(f"metric: a\nmode: min\n{rules}")


def test_very_many_choices_are_compared_in_one_pass() -> None:
    """Thirty thousand choices, each against all before it, would be 4.5e8 steps."""
    choices = ", ".join(map(str, range(30_000)))
    space = Space.from_yaml(f"a: {{type: categorical, choices: [{choices}]}}\n")
    assert len(space.parameters["a"].choices) == 30_000
