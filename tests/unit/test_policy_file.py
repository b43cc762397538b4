from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tune_guard import ConfigError, Keys, Policy
from tune_guard.policy import DEFAULT
from tune_guard.rules import (
    AmpScaleCollapse,
    Divergence,
    NonFinite,
    Plateau,
    Relapse,
    SlowStep,
)
from tune_guard.rules.holds import Hold
from tune_guard.rules.registry import find_hold

if TYPE_CHECKING:
    from pathlib import Path

GAIN_KEPT = find_hold("gain_kept")()
HEAD = "metric: loss\nmode: min\n"


def read(text: str) -> Policy:
    """Read a policy of a loss that is minimised."""
    return Policy.from_yaml(HEAD + text)


# ----------------------------------------------------------------------- reading


def test_a_metric_and_a_mode_are_enough() -> None:
    """Everything else has its default."""
    assert read("") == Policy.default("loss", "min")


def test_a_file_is_read(tmp_path: Path) -> None:
    """By its path, as text or as a Path."""
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "warmup_steps: 5\n", encoding="utf-8")
    assert Policy.from_yaml(path) == Policy.from_yaml(str(path))
    assert Policy.from_yaml(path).warmup_steps == 5


@pytest.mark.parametrize(
    "number", ["1e-3", "1E-3", "1.0e-3", "0.001", "'1e-3'", "+1e-3"]
)
def test_a_number_with_an_exponent_is_a_number(number: str) -> None:
    """YAML 1.1 takes 1e-3 for text; nobody means that."""
    made = read(f"rules:\n- plateau: {{min_delta: {number}}}\n")
    assert made.rule("plateau").min_delta == 0.001


@pytest.mark.parametrize("steps", ["1000", "1e3", "1_000", "1000.0"])
def test_a_whole_number_in_any_notation_is_a_count(steps: str) -> None:
    """Where a count is asked for."""
    made = read(f"warmup_steps: {steps}\nrules: [{{plateau: {{patience: {steps}}}}}]\n")
    assert (made.warmup_steps, made.rule("plateau").patience) == (1000, 1000)
    assert type(made.rule("plateau").patience) is int


def test_a_whole_number_where_a_real_one_is_asked_for_becomes_one() -> None:
    """Messages and comparisons see one type."""
    made = read("rules: [{slow_step: {factor: 3}}]\n")
    assert type(made.rule("slow_step").factor) is float


def test_patience_and_target_are_one_word_each() -> None:
    """As in `Policy.default`."""
    assert read("patience: 7\ntarget: 1e-1\n") == Policy.default(
        "loss", "min", patience=7, target=0.1
    )


@pytest.mark.parametrize(
    "rules",
    [
        "- non_finite\n- plateau: {patience: 3}\n",
        "- non_finite:\n- plateau:\n    patience: 3\n",
        "  non_finite:\n  plateau: {patience: 3}\n",
        "[non_finite, {plateau: {patience: 3}}]\n",
    ],
)
def test_rules_are_a_list_or_a_mapping(rules: str) -> None:
    """Ids alone, or with parameters."""
    expected = (NonFinite(), Plateau(patience=3))
    text = f"rules: {rules}" if rules.startswith("[") else f"rules:\n{rules}"
    assert read(text).rules == expected


def test_a_bare_off_is_the_word() -> None:
    """YAML 1.1 reads it as False."""
    assert read("actions: {plateau: off, '*': warn}\n").actions == {
        "plateau": "off",
        "*": "warn",
    }


def test_holds_are_named_by_id_with_parameters() -> None:
    """None at all, by id alone, or with parameters."""
    made = read(
        "rules:\n- plateau: {holds: []}\n"
        "- divergence: {holds: [gain_kept]}\n"
        "- relapse: {holds: [{too_early: {budget_ratio: 5e-1}}, rising]}\n"
    )
    assert made.rule("plateau").holds == ()
    assert made.rule("divergence").holds == (GAIN_KEPT,)
    assert made.rule("relapse").holds[0] == find_hold("too_early")(budget_ratio=0.5)


def test_keys_are_read() -> None:
    """One key, several, or none."""
    made = read("keys: {loss: nll, lr: [a/lr, lr], grad_norm: []}\n")
    assert made.keys == Keys(loss="nll", lr=("a/lr", "lr"), grad_norm=())


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("patiense: 3\n", "`patiense` is no field.*`patience`"),
        ("5: 3\n", "`5` is no field"),
        ("rules: [{plateau: {patiense: 3}}]\n", "plateau: `patiense`.*`patience`"),
        ("rules: [plateu]\n", "'plateu'.*`plateau`"),
        ("rules: [5]\n", "rule must be an id"),
        ("rules: [{plateau: 5}]\n", "plateau: parameters must be a mapping"),
        ("rules: [{plateau: [5]}]\n", "plateau: parameters must be a mapping"),
        ("rules: [{plateau: 3, non_finite: 1}]\n", "rule must be an id"),
        ("rules: plateau\n", "`rules` must be a list"),
        ("rules: 5\n", "`rules` must be a list"),
        ("rules:\n", "`rules` must be a list"),
        ("rules: [plateau, plateau]\n", "different rules"),
        ("rules: [{plateau: {patience: many}}]\n", "`patience`.*'many'"),
        ("rules: [{plateau: {patience: 2.5}}]\n", "`patience`.*2.5"),
        ("rules: [{plateau: {patience: yes}}]\n", "`patience`.*True"),
        ("rules: [{plateau: {patience: }}]\n", "`patience`.*None"),
        ("rules: [{plateau: {min_delta: .nan}}]\n", "`min_delta`.*nan"),
        ("rules: [{plateau: {holds: [not_learnt]}}]\n", "'not_learnt'.*`not_learned`"),
        ("rules: [{plateau: {holds: not_learned}}]\n", "`holds` must be a list"),
        (
            "rules: [{relapse: {holds: [{too_early: {budget: 1}}]}}]\n",
            "too_early: `budget`.*`budget_ratio`",
        ),
        ("actions: {plateau: kill}\n", "stop, warn or off.*'kill'"),
        ("actions: {plateu: warn}\n", "'plateu'.*`plateau`"),
        ("actions: {5: warn}\n", "5"),
        ("actions: off\n", "`actions`"),
        ("actions: [plateau]\n", "`actions`"),
        ("ignore_where: sanity\n", "`ignore_where`"),
        ("keys: {losss: nll}\n", "`losss` is no signal.*`loss`"),
        ("keys: {loss: 5}\n", "`loss`.*5"),
        ("keys: [loss]\n", "`keys`"),
        ("warmup_steps: few\n", "`warmup_steps`.*'few'"),
        ("warmup_steps: 1.5\n", "`warmup_steps`.*1.5"),
        ("holdout: 2\n", "`holdout`"),
        ("fresh_key: [a]\n", "`fresh_key`"),
        ("version: 2\n", "`version`"),
        ("mode: up\n", "twice|duplicate"),
        ("rules: [{plateau: {patience: 3, patience: 5}}]\n", "`patience` .*twice"),
    ],
)
def test_a_mistake_is_named(text: str, message: str) -> None:
    """As a ConfigError that says where, and what was probably meant."""
    with pytest.raises(ConfigError, match=rf"(?s)^The policy text:\d+: .*{message}"):
        read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode: min\n", "`metric` is missing"),
        ("metric: loss\nmode: up\n", "`mode`.*'up'"),
        ("metric: yes\nmode: min\n", "`metric`.*True"),
        ("metric: 5\n", "`metric`"),
        ("- metric\n- mode\n", "must be a mapping"),
        ("just text\n", "must be a mapping"),
        ("\n", "must be a mapping"),
        ("metric: [\n", "is no YAML"),
        ("metric: loss\n\tmode: min\n", "is no YAML"),
        ("metric: !!python/object/apply:os.getcwd []\n", "is no YAML"),
        ("metric: loss\n---\nmode: min\n", "is no YAML"),
        ("{[a]: b}\n", "is no YAML"),
        ("metric: \x07\n", "is no YAML"),
        ("a: &a [*a]\n", ":1: an alias holds itself"),
    ],
)
def test_a_text_that_is_no_policy_is_refused(text: str, message: str) -> None:
    """Always as a ConfigError, and nothing in it is run."""
    with pytest.raises(ConfigError, match=f"(?s)^The policy text.*{message}"):
        Policy.from_yaml(text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With the reason."""
    with pytest.raises(ConfigError, match=r"missing\.yaml.*No such file"):
        Policy.from_yaml(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        Policy.from_yaml(tmp_path)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """A pickle, say."""
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"\x80\x04\xff\xfe\n")
    with pytest.raises(ConfigError, match=r"policy\.yaml.*UTF-8"):
        Policy.from_yaml(path)


def test_a_name_that_can_be_no_path_is_named() -> None:
    """A text without a line break is a path."""
    with pytest.raises(ConfigError, match="cannot be read"):
        Policy.from_yaml("metric: \0")


def test_a_mistake_in_a_file_names_the_file(tmp_path: Path) -> None:
    """Of several, the right one."""
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "patiense: 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"policy\.yaml:3: `patiense`"):
        Policy.from_yaml(path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("warmup_steps: -1\n", 3),
        ("rules:\n- non_finite\n- plateau:\n    patience: 0\n", 6),
        ("rules:\n  non_finite:\n  plateau:\n    patiense: 3\n", 6),
        ("rules:\n- relapse\n- plateu\n", 5),
        ("actions:\n  relapse: warn\n  plateau: warn\n", 5),
        ("keys:\n  loss: nll\n  losss: nll\n", 5),
        ("holdout: 0\nholdout: 1\n", 4),
        ("patience: 3\nrules: [plateau]\n", 4),
        ("rules: [\n", 4),
        ("a: &a [*a]\n", 3),
    ],
)
def test_a_mistake_names_its_line(text: str, line: int) -> None:
    """Of the key or the rule that is wrong."""
    with pytest.raises(ConfigError, match=f"^The policy text:{line}: "):
        read(text)


# ----------------------------------------------------------------------- writing

POLICIES: list[dict[str, Any]] = [
    {},
    {"mode": None},
    {"metric": "off", "mode": "max"},
    {"metric": "eval/acc: top-1 #1", "mode": "max"},
    {"metric": "1e-3", "fresh_key": "5E3"},
    {"rules": ()},
    {"rules": (NonFinite(),)},
    {"rules": (*DEFAULT, Plateau(patience=3, min_delta=1e-7))},
    {"rules": (Plateau(holds=()),)},
    {
        "rules": (
            Plateau(holds=(find_hold("not_learned")(),)),
            Divergence(holds=(GAIN_KEPT,)),
        )
    },
    {"rules": (Relapse(holds=(find_hold("too_early")(budget_ratio=0.5),)),)},
    {"rules": (NonFinite(metrics=("loss", "a/b"), consecutive=3),)},
    {"rules": (AmpScaleCollapse(min_scale=0.0), SlowStep(factor=3.0))},
    {"warmup_steps": 5, "budget_steps": 10**12, "holdout": 0.05},
    {"keys": Keys(loss="nll", lr=("a/lr", "lr"), grad_norm=())},
    {"actions": {"plateau": "off", "*": "warn"}, "fresh_key": "eval epoch"},
    {"ignore_where": {"phase": "sanity", "a/b": True, "n": 1, "x": None}},
]


@pytest.mark.parametrize("fields", POLICIES, ids=range(len(POLICIES)))
def test_a_policy_reads_back_equal(fields: dict[str, Any]) -> None:
    """Whatever it holds."""
    policy = Policy(**{"metric": "loss", "mode": "min", **fields})
    back = Policy.from_yaml(policy.to_yaml())
    assert back == policy
    assert repr(back) == repr(policy)


def test_only_what_differs_is_written() -> None:
    """So that better defaults reach old files."""
    assert Policy.default("loss", "min", warmup_steps=5).to_yaml() == (
        "version: 1\nmetric: loss\nmode: min\nwarmup_steps: 5\n"
    )


class HomeMade(Hold):
    """A hold that no file can name."""

    id = "home_made"


@pytest.mark.parametrize(
    "fields",
    [{"ignore_where": {"a": object()}}, {"rules": (Plateau(holds=(HomeMade(),)),)}],
    ids=["value", "hold"],
)
def test_what_yaml_cannot_hold_is_refused(fields: dict[str, Any]) -> None:
    """With a ConfigError, and not a file that reads back otherwise."""
    policy = Policy(metric="loss", mode="min", **fields)
    with pytest.raises(ConfigError, match="cannot be written"):
        policy.to_yaml()
