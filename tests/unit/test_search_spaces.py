"""The spaces that ship: every one serves both engines and is listed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tune_guard.space import Space

FOLDER = Path(__file__).parents[2] / "search_spaces"
FILES = sorted(FOLDER.glob("*.yaml"))


def test_the_three_models_have_a_space() -> None:
    """An image classifier, a small transformer and a tabular MLP are there."""
    names = {file.stem for file in FILES}
    assert {"image_classifier", "tiny_transformer", "tabular_mlp"} <= names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_samples_lie_in_the_space(file: Path) -> None:
    """Points of each space lie in it, and it reads back equal from its own YAML."""
    space = Space.from_yaml(file)
    rng = random.Random(1)
    assert all(space.contains(space.sample(rng)) for _ in range(100))
    assert Space.from_yaml(space.to_yaml()) == space


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_both_engines_take_the_space(file: Path) -> None:
    """Optuna suggests a point of it, Ray resolves one."""
    import optuna
    from ray.tune.search.variant_generator import generate_variants

    space = Space.from_yaml(file)
    trial = optuna.create_study().ask()
    assert space.contains(space.suggest(trial))
    for _, config in generate_variants(space.to_ray()):
        assert space.contains(config)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_readme_lists_the_space(file: Path) -> None:
    """A reader of the folder's page finds every file."""
    assert f"({file.name})" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_image_classifier_reaches_where_training_breaks() -> None:
    """The demo needs a learning rate range whose upper end is sick."""
    lr = Space.from_yaml(FOLDER / "image_classifier.yaml").parameters["lr"]
    assert lr.holds(1e-3)
    assert lr.holds(20.0)
