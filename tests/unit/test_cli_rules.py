"""The commands that say which rules there are and check what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tune_guard.cli import main
from tune_guard.policy import DEFAULT
from tune_guard.rules.registry import known_rules

ROOT = Path(__file__).parents[2]
SPACES = ("image_classifier", "tabular_mlp", "tiny_transformer")


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the rules that a command lists, by id."""
    assert main(["rules", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rules"]
    return {facts["id"]: facts for facts in found}


def test_every_rule_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the default policy are marked."""
    found = listed(capsys)
    assert found.keys() == known_rules()
    armed = {rule_id for rule_id, facts in found.items() if facts["default"]}
    assert armed == {rule.id for rule in DEFAULT}


def test_a_rule_says_what_it_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Trigger, parameters with defaults, holds, blame, and what arms it."""
    found = listed(capsys, "plateau")["plateau"]
    assert found["trigger"].startswith("Stop after `patience` evaluations")
    assert found["parameters"]["patience"] == 20
    assert "not_learned" in found["holds"]
    assert (found["tier"], found["blame"]) == ("progress", "config")
    assert found["armed_by"] == "`patience=`"


def test_the_list_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 columns, as everywhere."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["rules"]) == 0
    out = capsys.readouterr().out
    assert "slow_step  fatal, blame infrastructure, armed by the default policy" in out
    assert max(map(len, out.splitlines())) <= 80


def test_an_unknown_rule_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    """And the nearest is named."""
    assert main(["rules", "plateu"]) == 2
    assert "Did you mean `plateau`?" in capsys.readouterr().err


@pytest.mark.parametrize("name", SPACES)
def test_the_shipped_spaces_are_valid(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And taken for spaces."""
    assert main(["validate", str(ROOT / "search_spaces" / f"{name}.yaml")]) == 0
    assert ": a space of " in capsys.readouterr().out


def test_a_policy_says_what_it_cuts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rules that the file names take the place of the default ones: that is said."""
    path = tmp_path / "policy.yaml"
    path.write_text(
        "metric: loss\nmode: min\nrules: [non_finite, plateau]\n"
        "actions: {plateau: warn}\n"
    )
    assert main(["validate", str(path)]) == 0
    out = capsys.readouterr().out
    assert "a policy on loss, min; cuts: non_finite; warns: plateau;" in out
    assert "without these of the default policy: amp_scale_collapse, " in out


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("metric: loss\npatiense: 3\n", "policy", ":2: `patiense` is no field"),
        ("lr: {type: float, low: 1, hihg: 2}\n", "space", ":1: `lr`: `hihg` is no key"),
        ("metric: [\n", "policy", ":2: it is no YAML"),
    ],
)
def test_a_mistake_exits_1_with_its_line(
    tmp_path: Path,
    text: str,
    kind: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever the file is."""
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert main(["validate", str(path), "--json"]) == 1
    (facts,) = json.loads(capsys.readouterr().out)["files"]
    assert (facts["kind"], facts["means"]) == (kind, "")
    assert facts["error"].startswith(f"{path}{said}")


def test_the_kind_can_be_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a space whose parameters all lack their type."""
    path = tmp_path / "file.yaml"
    path.write_text("lr: {low: 1}\n")
    assert main(["validate", str(path), "--kind", "space"]) == 1
    assert f"{path}:1: `lr`: `type` is missing" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["/no/such.yaml"]])
def test_no_file_exits_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """That is no finding about a file."""
    assert main(["validate", *words]) == 2
    assert capsys.readouterr().err
