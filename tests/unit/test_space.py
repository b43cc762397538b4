"""Spaces: reading, the way to each engine, and every mistake with its line."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tune_guard.exceptions import ConfigError
from tune_guard.space import Categorical, Constant, Float, Int, Space, SpaceError

if TYPE_CHECKING:
    from pathlib import Path

ALL_KINDS = """\
lr: {type: float, low: 1e-4, high: 30, log: true}
dropout: {type: float, low: 0.1, high: 0.7, step: 0.1}
offset: {type: float, low: 0.05, high: 0.45, step: 0.1}
optimizer: {type: categorical, choices: [sgd, adam, rmsprop]}
momentum: {type: float, low: 0.0, high: 0.99, when: {optimizer: [sgd, rmsprop]}}
nesterov: {type: categorical, choices: [true, false], when: {optimizer: sgd}}
damping: {type: constant, value: 0.5, when: {nesterov: false}}
layers: {type: int, low: 1, high: 3}
third: {type: int, low: 8, high: 64, step: 8, when: {layers: 3, optimizer: adam}}
kernel: {type: int, low: 1, high: 9, step: 2}
width: {type: int, low: 1, high: 9, log: true}
norm: {type: categorical, choices: [off, 1, 2.5, null]}
epochs: {type: constant, value: 20}
"""
SPACE = Space.from_yaml(ALL_KINDS)


def one(spec: str) -> Space:
    """Return the space with the single parameter ``x``."""
    return Space.from_yaml(f"x: {spec}\n")


def error_of(text: str) -> str:
    """Return the message of the error that a definition raises."""
    with pytest.raises(SpaceError) as caught:
        Space.from_yaml(text + "\n")
    return str(caught.value)


# --------------------------------------------------------------------- reading


def test_every_kind_is_read_with_its_range() -> None:
    """A definition becomes the parameters that it names, in its order."""
    assert SPACE.parameters["lr"] == Float(low=1e-4, high=30.0, log=True)
    assert SPACE.parameters["kernel"] == Int(low=1, high=9, step=2)
    assert SPACE.parameters["epochs"] == Constant(value=20)
    assert SPACE.parameters["nesterov"] == Categorical(
        choices=(True, False), when={"optimizer": "sgd"}
    )
    assert list(SPACE.parameters)[:3] == ["lr", "dropout", "offset"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e-3", 1e-3), ("1E+2", 100.0), (".5", 0.5), ("2.", 2.0), ("+3", 3.0)],
)
def test_numbers_may_be_written_as_people_write_them(text: str, number: float) -> None:
    """Numbers that PyYAML takes for texts are numbers."""
    space = one(f"{{type: float, low: {text}, high: 200}}")
    assert space.parameters["x"].low == number  # type: ignore[union-attr]


def test_choices_stay_what_the_user_wrote() -> None:
    """``no``, ``off`` and ``12:30`` are texts; true, null and 1e-3 are not."""
    space = one('{type: categorical, choices: [no, off, 12:30, true, ~, 1e-3, "1"]}')
    expected = ("no", "off", "12:30", True, None, 1e-3, "1")
    assert space.parameters["x"] == Categorical(choices=expected)


def test_whole_floats_are_whole_numbers() -> None:
    """An int bound may be written 1e3."""
    assert one("{type: int, low: 1, high: 1e3}").parameters["x"] == Int(
        low=1, high=1000
    )


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    """A path is read whether it is a Path or a text."""
    file = tmp_path / "space.yaml"
    file.write_text(ALL_KINDS, encoding="utf-8")
    assert Space.from_yaml(file) == Space.from_yaml(str(file)) == SPACE


def test_yaml_reads_back_equal() -> None:
    """What ``to_yaml`` writes is the same space again."""
    assert Space.from_yaml(SPACE.to_yaml()) == SPACE


@given(st.lists(st.text() | st.integers() | st.floats(allow_nan=False), min_size=1))
@example(["a\x85b", "\u2028", "a\nb", " a ", "1e-3", "=", "<<", "", "#"])
def test_any_choice_survives_yaml(choices: list[Any]) -> None:
    """Texts that look like numbers, null or true stay texts."""
    finite = [c for c in choices if not isinstance(c, float) or math.isfinite(c)]
    different = tuple(dict.fromkeys(finite)) or ("null",)
    space = Space({"x": Categorical(choices=different)})
    assert Space.from_yaml(space.to_yaml()) == space


# -------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            "{type: float, lo: 1, high: 2}",
            "`lo` is no key of a float. Did you mean `low`",
        ),
        ("{type: flot, low: 1}", "`type` 'flot' is not known. Did you mean `float`?"),
        ("{low: 1, high: 2}", "`type` is missing. Known: `categorical`, `constant`"),
        ("{type: [1]}", "`type` [1] is not known"),
        ("{type: float, low: 1}", "`high` is missing: a float needs it"),
        (
            "{type: float, low: 2, high: 1}",
            "`low` must be <= `high`, but got 2.0 > 1.0",
        ),
        ("{type: float, low: 0, high: 1, log: true}", "`low` must be > 0 with"),
        ("{type: int, low: -2, high: 1, log: true}", "`low` must be > 0 with"),
        ("{type: float, low: '1e-3', high: 1}", "but got '1e-3'. Remove the quotes."),
        (
            "{type: float, low: tiny, high: 1}",
            "`low` must be a number, but got 'tiny'.",
        ),
        ("{type: float, low: true, high: 1}", "`low` must be a number, but got True"),
        ("{type: float, low: .nan, high: 1}", "`low` must be finite, but got nan"),
        ("{type: float, low: 1, high: 1e999}", "`high` must be finite, but got inf"),
        ("{type: int, low: 1, high: 1" + "0" * 400 + "}", "must fit into 64 bits"),
        (
            "{type: int, low: 1, high: 1" + "0" * 5000 + "}",
            "5001 characters is no text",
        ),
        ("{type: float, low: 1, high: 1" + "0" * 400 + "}", "`high` must be finite"),
        ("{type: float, low: -1e308, high: 1e308}", "`high` - `low` must be finite"),
        ("{type: int, low: 1.5, high: 2}", "`low` must be a whole number, but got 1.5"),
        ("{type: float, low: 1, high: 2, log: yes}", "`log` must be true or false"),
        ("{type: float, low: 1, high: 2, log: true, step: 1}", "exclude each other"),
        ("{type: int, low: 1, high: 9, log: true, step: 2}", "exclude each other"),
        ("{type: float, low: 1, high: 2, step: 0}", "`step` must be > 0, but got 0.0"),
        ("{type: float, low: 0, high: 1, step: 0.3}", "The nearest below is 0.9."),
        ("{type: int, low: 1, high: 8, step: 2}", "The nearest below is 7."),
        ("{type: categorical, choices: []}", "`choices` must be a list"),
        ("{type: categorical, choices: sgd}", "but got 'sgd'"),
        ("{type: categorical, choices: [a, b, a]}", "'a' equals an earlier one"),
        ("{type: categorical, choices: [1, true]}", "True equals an earlier one"),
        (
            "{type: categorical, choices: [[64, 64]]}",
            "Name it by a text",
        ),
        ("{type: categorical, choices: [.nan]}", "`choices` must be finite"),
        ("{type: constant, value: {a: 1}}", "`value` takes texts, numbers"),
        ("{type: constant, value: !!set {a}}", "tag:yaml.org,2002:set"),
        ("!!python/object:os.system {}", "`x` must be a mapping with a `type`"),
        ("{type: constant, value: !!int one}", "'one' is no int"),
        ("0.1", "`x` must be a mapping with a `type`, such as {type: constant"),
        ("{type: int, low: 1, high: 2, 3: 4}", "A key must be a text, but got 3"),
        ("{type: int, low: 1, low: 2, high: 3}", "`low` stands twice, first on line 4"),
        ("{type: int, low: 1, high: 2, when: [sgd]}", "`when` must map a parent"),
        ("{type: int, low: 1, high: 2, when: {o: []}}", "at least one value of `o`"),
        ("{type: int, low: 1, high: 2, when: {opy: sgd}}", "Did you mean `opt`?"),
        ("{type: int, low: 1, high: 2, when: {opt: sdg}}", "Did you mean `sgd`?"),
        ("{type: int, low: 1, high: 2, when: {opt: true}}", "which it never is"),
        ("{type: int, low: 1, high: 2, when: {lr: 1}}", "Depend on a categorical"),
        ("{type: int, low: 1, high: 2, when: {x: 1}}", "no parameter before it has"),
        ("{type: categorical, choices: [~], when: {opt: sgd}}", "must not hold null"),
        ("{type: constant, value: ~, when: {opt: sgd}}", "must not hold null"),
        ("{type: int, low: 1, high: ]", "not valid YAML"),
    ],
)
def test_a_mistake_is_named_with_its_line(spec: str, words: str) -> None:
    """The message holds the line, the key, what is wrong and what to write."""
    before = (
        "# learning rate\n"
        "lr: {type: float, low: 1, high: 2}\n"
        "opt: {type: categorical, choices: [sgd, adam, 1]}\n"
    )
    message = error_of(f"{before}x: {spec}")
    assert message.startswith("<text>:4: ")
    assert words in message


def test_the_line_is_that_of_the_key() -> None:
    """In a parameter over several lines, the line of the wrong key is named."""
    text = "lr:\n  type: float\n  low: 0\n  high: 1\n  log: true"
    assert error_of(text).startswith("<text>:3: `lr`: `low` must be > 0")


def test_the_file_is_named(tmp_path: Path) -> None:
    """A mistake in a file is named with the file's path."""
    file = tmp_path / "space.yaml"
    file.write_text("lr: {type: float, low: 1, hihg: 2}", encoding="utf-8")
    with pytest.raises(SpaceError, match=r"space\.yaml:1: `lr`: `hihg` is no key"):
        Space.from_yaml(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "1: The space has no parameters"),
        ("# only a comment", "1: The space has no parameters"),
        ("{}", "1: The space has no parameters"),
        ("just words", "1: A space must map names to parameters"),
        ("- lr\n- momentum", "1: A space must map names to parameters"),
        ("a: &a {when: *a}", "1: an alias holds itself"),
        ("a/b: {type: constant, value: 1}", "1: `a/b` must not hold a `/`"),
        ("'': {type: constant, value: 1}", "1: A parameter's name must be a text"),
        ("? [a]\n: 1", "1: A key must be a text"),
        ("a: 1\n---\nb: 2", "2: not valid YAML: but found another document"),
        ("a: \x00", "1: not valid YAML"),
        ("a: {}\nb: {}\na: {}", "3: `a` stands twice, first on line 1"),
    ],
)
def test_a_text_that_is_no_space_is_named(text: str, words: str) -> None:
    """Empty, unreadable and misshapen definitions say so."""
    assert words in error_of(text)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 give the file's name, not a codec's error."""
    file = tmp_path / "space.yaml"
    file.write_bytes(b"\xff\xfe\x00lr")
    with pytest.raises(SpaceError, match=r"space\.yaml:1: not a text file in UTF-8"):
        Space.from_yaml(file)


def test_a_missing_file_is_named() -> None:
    """A path that is not there is a wrong configuration like any other."""
    with pytest.raises(ConfigError, match=r"'absent\.yaml' cannot be read: No such"):
        Space.from_yaml("absent.yaml")


def test_parameters_built_in_python_are_checked_alike() -> None:
    """The checks belong to the parameters, not to the reader."""
    with pytest.raises(SpaceError, match="`low` must be <= `high`"):
        Float(low=2.0, high=1.0)
    with pytest.raises(SpaceError, match="no parameter before it"):
        Space({"momentum": Float(low=0.0, high=1.0, when={"optimizer": "sgd"})})


# ------------------------------------------------------------------ membership


SGD = {
    "lr": 0.1,
    "dropout": 0.3,
    "offset": 0.15,
    "optimizer": "sgd",
    "momentum": 0.9,
    "nesterov": False,
    "damping": 0.5,
    "layers": 2,
    "kernel": 3,
    "width": 9,
    "norm": None,
    "epochs": 20,
}


def test_a_point_with_its_active_parameters_lies_in_the_space() -> None:
    """An inactive parameter may be absent, or None as in a Ray config."""
    assert SPACE.contains(SGD)
    assert SPACE.contains({**SGD, "third": None})


@pytest.mark.parametrize(
    "change",
    [
        {"lr": 31.0},
        {"lr": math.nan},
        {"lr": "0.1"},
        {"lr": True},
        {"dropout": 0.35},
        {"dropout": 0.8},
        {"offset": 0.2},
        {"optimizer": "lion"},
        {"momentum": None},
        {"nesterov": 0},
        {"nesterov": True},  # then damping is not active
        {"damping": 0.4},
        {"layers": 2.0},
        {"layers": True},
        {"third": 8},
        {"kernel": 4},
        {"width": 10},
        {"norm": "on"},
        {"epochs": 21},
        {"unknown": 1},
    ],
)
def test_a_point_beside_the_space_is_told_apart(change: dict[str, Any]) -> None:
    """A wrong value, kind, name or activity lies outside."""
    assert not SPACE.contains({**SGD, **change})


def test_a_missing_active_parameter_lies_outside() -> None:
    """A point must name every active parameter."""
    assert not SPACE.contains({k: v for k, v in SGD.items() if k != "momentum"})


# --------------------------------------------------------------------- engines

EDGES = [
    Float(low=5e-324, high=1.0, log=True),
    Float(low=1.0, high=1.0),
    Float(low=-0.3, high=0.6, step=0.3),
    Int(low=1, high=1),
    Int(low=3, high=3, step=5),
    Int(low=-10, high=-4, step=3),
    Int(low=0, high=2**63 - 2),
    Int(low=1, high=2**63 - 2, log=True),
    Categorical(choices=[None]),
    Constant(value=None),
]


@pytest.mark.parametrize("parameter", EDGES, ids=repr)
def test_every_engine_stays_inside_at_the_edges(parameter: Any) -> None:
    """Single values, tiny and huge bounds and negative grids give points inside."""
    import optuna

    space = Space({"x": parameter})
    rng = random.Random(1)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    assert all(space.contains(space.sample(rng)) for _ in range(20))
    assert all(space.contains(space.suggest(study.ask())) for _ in range(20))
    assert all(space.contains(c) for c in ray_variants(space.to_ray(), 20))


def ray_variants(space: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return configs as Ray's own generator resolves them."""
    import numpy as np
    from ray.tune.search.variant_generator import generate_variants

    np.random.seed(1)  # noqa: NPY002 - the generator that Ray draws from
    return [config for _ in range(count) for _, config in generate_variants(space)]


def active_names(params: dict[str, Any]) -> set[str]:
    """Return which conditional parameters these values must have, by hand."""
    names = set()
    if params["optimizer"] in {"sgd", "rmsprop"}:
        names.add("momentum")
    if params["optimizer"] == "sgd":
        names.add("nesterov")
        if params["nesterov"] is False:
            names.add("damping")
    if params["optimizer"] == "adam" and params["layers"] == 3:
        names.add("third")
    return names


CONDITIONAL = {name for name, p in SPACE.parameters.items() if p.when}


@given(st.randoms(use_true_random=False))
def test_plain_samples_lie_in_the_space(rng: random.Random) -> None:
    """Every sample lies in the space; a conditional exists iff its parents match."""
    params = SPACE.sample(rng)
    assert SPACE.contains(params)
    assert CONDITIONAL & params.keys() == active_names(params)


def test_optuna_trials_lie_in_the_space() -> None:
    """Real trials of a random sampler give points with active parameters only."""
    import optuna

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(200):
        trial = study.ask()
        params = SPACE.suggest(trial)
        assert trial.params == params
        assert SPACE.contains(params)
        assert CONDITIONAL & params.keys() == active_names(params)


def test_optuna_distributions_hold_the_suggested_values() -> None:
    """Distributions and suggest calls describe the same space to Optuna."""
    import optuna

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(20):
        suggested, asked = study.ask(), study.ask(fixed_distributions=SPACE.to_optuna())
        params = SPACE.suggest(suggested)
        assert suggested.distributions == {
            name: asked.distributions[name] for name in params
        }


def test_an_enqueued_point_is_suggested_again() -> None:
    """``enqueue_trial`` and ``suggest`` agree about names and values."""
    import optuna

    study = optuna.create_study()
    study.enqueue_trial(SGD)
    assert SPACE.suggest(study.ask()) == SGD
    assert SPACE.suggest(optuna.trial.FixedTrial(SGD)) == SGD


def test_ray_configs_lie_in_the_space() -> None:
    """Real Ray domains give points in which an inactive parameter is None."""
    for config in ray_variants(SPACE.to_ray(), 200):
        assert config.keys() == SPACE.parameters.keys()
        assert SPACE.contains(config)
        active = {name for name in CONDITIONAL if config[name] is not None}
        assert active == active_names(config)


def test_ray_and_optuna_reach_both_ends_of_every_int() -> None:
    """The upper bound belongs to the range, also where Ray's own leaves it out."""
    configs = ray_variants(SPACE.to_ray(), 300)
    for name in ("layers", "kernel", "width"):
        parameter = SPACE.parameters[name]
        assert isinstance(parameter, Int)
        drawn = {config[name] for config in configs}
        assert {parameter.low, parameter.high} <= drawn


def test_ray_conditions_hold_below_another_key() -> None:
    """A space under ``train_loop_config`` resolves like one at the top."""
    nested = {"train_loop_config": SPACE.to_ray(), "values": {"a": 2}, "get": 1}
    for config in ray_variants(nested, 50):
        assert SPACE.contains(config["train_loop_config"])


def test_ray_grid_search_over_a_parent_keeps_the_conditions() -> None:
    """A parent that Ray resolves later is waited for, not compared unresolved."""
    from ray import tune

    space = {**SPACE.to_ray(), "optimizer": tune.grid_search(["sgd", "adam"])}
    configs = ray_variants(space, 20)
    assert len(configs) == 40
    assert all(SPACE.contains(config) for config in configs)


def test_ray_conditions_hold_when_the_child_is_resolved_first() -> None:
    """Reordering the dict does not make a condition look at an unresolved parent."""
    reversed_space = dict(reversed(SPACE.to_ray().items()))
    for config in ray_variants(reversed_space, 50):
        assert SPACE.contains(config)


def test_a_space_reaches_ray_workers() -> None:
    """The domains can be pickled, as Ray does with every param_space."""
    import cloudpickle

    space = cloudpickle.loads(cloudpickle.dumps(SPACE.to_ray()))
    assert all(SPACE.contains(config) for config in ray_variants(space, 20))


def test_rays_optuna_searcher_takes_the_suggest_method() -> None:
    """OptunaSearch gives conditional points and every constant."""
    from ray.tune.search.optuna import OptunaSearch

    searcher = OptunaSearch(space=SPACE.suggest, metric="loss", mode="min", seed=1)
    for index in range(30):
        config = searcher.suggest(f"trial_{index}")
        assert config is not None
        assert SPACE.contains(config)
