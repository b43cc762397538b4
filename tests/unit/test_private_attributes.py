"""What tune_guard touches of others' private parts: where, and that it is there.

A new release of an engine that moves one of them fails here, by name. The names of
a module are in one table; a module that is not in it touches none.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest

from tune_guard.optuna import GuardPruner
from tune_guard.optuna import _engine as optuna_engine
from tune_guard.ray import _engine as ray_engine
from tune_guard.worker import amp, ray_session

PACKAGE = Path(__file__).parents[2] / "tune_guard"

_TUNE = "ray.tune.execution.tune_controller:TuneController"
_SCHEDULERS = "ray.tune.schedulers.async_hyperband:AsyncHyperBandScheduler"
_HYPERBAND = "ray.tune.schedulers.hyperband:HyperBandScheduler"
_GROUP = "ray.air.execution.resources.request:ResourceRequest"
_JOURNAL = "optuna.storages.journal"

TOUCHED: dict[str, dict[str, str]] = {
    "optuna/_engine.py": {
        "_backend": "optuna.storages:JournalStorage",
        "_cached_frozen_trial": "optuna:Trial",
        "_delegate": "",  # of optuna-integration, which is not installed here
        "_file_path": f"{_JOURNAL}:JournalFileBackend",
        "_get_latest_trial": "optuna:Trial",
        "_storage": "optuna:Study",
        "_study_id": "optuna:Study",
        "_thread_local": "optuna:Study",
        "_trial_id": "optuna.trial:FrozenTrial",
        "_url": f"{_JOURNAL}:JournalRedisBackend",
    },
    "ray/_engine.py": {
        "_actor_id": "ray.actor:ActorHandle",
        "_actor_manager": _TUNE,
        "_actor_task_failed": "ray.air.execution._internal:RayActorManager",
        "_args": _GROUP,
        "_default_result_or_future": "ray.tune.experiment:Trial",
        "_fail_fast": _TUNE,
        "_has_errored": _TUNE,
        "_kwargs": _GROUP,
        "_mark_trial_to_checkpoint": _TUNE,
        "_max_t": _SCHEDULERS,
        "_max_t_attr": _HYPERBAND,
        "_mode": _SCHEDULERS,
        "_ot_trials": "ray.tune.search.optuna:OptunaSearch",
        "_scheduler_alg": _TUNE,
        "_stopper": _TUNE,
        "_stoppers": "ray.tune.stopper:CombinedStopper",
        "_time_attr": _SCHEDULERS,
    },
    "transformers.py": {"_trial": "transformers:Trainer"},
    "worker/amp.py": {
        "_per_optimizer_states": "torch.amp:GradScaler",
        "_scale": "torch.amp:GradScaler",
    },
    "worker/gradients.py": {"_foreach_norm": "torch"},
    "worker/ray_session.py": {
        "_in_tune_session": "ray.tune.trainable.trainable_fn_utils"
    },
}

_KNOWN = {
    "_asdict",  # documented, of named tuples
    "_current_frames",  # documented, of sys
    "_event",  # of the ring's own transfers
    "_getframe",  # documented, of sys
    "_replace",  # documented, of named tuples
}

_ASKED = ("getattr", "hasattr", "setattr")


def _is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and name[:2] != "__"


def _own(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that a module gives to its own classes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _of_others(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that a module reads of what is not its own."""
    own = set(_own(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if _is_private(name) and name not in own:
                yield name
            case ast.Call(func=ast.Name(id=asked), args=[_, ast.Constant(name), *_]):
                if asked in _ASKED and _is_private(name):
                    yield str(name)
            case ast.ImportFrom(module=module, names=names):
                if module and not module.startswith("tune_guard"):
                    yield from (a.name for a in names if _is_private(a.name))


def test_each_module_touches_what_its_table_names() -> None:
    """One module an engine, and one each for torch's scaler and its norms."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        names = set(_of_others(ast.parse(path.read_text(encoding="utf-8")))) - _KNOWN
        if names:
            found[path.relative_to(PACKAGE).as_posix()] = names
    assert found == {module: set(names) for module, names in TOUCHED.items()}


PLACES = [
    pytest.param(name, place, id=f"{module}:{name}")
    for module, names in TOUCHED.items()
    for name, place in names.items()
    if place
]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_it_is_there(name: str, place: str) -> None:
    """As an attribute, or set by the class on itself."""
    module, _, kind = place.partition(":")
    owner: Any = importlib.import_module(module)
    if kind:
        owner = getattr(owner, kind)
    assert hasattr(owner, name) or f"self.{name}" in inspect.getsource(owner)


# ------------------------------------------------------------------ when it is gone


class Gone:
    """An engine's object of a release that has moved everything."""


def test_without_optunas_own_views_a_trial_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of its storage."""
    monkeypatch.delattr(optuna.Trial, "_get_latest_trial")
    study = optuna.create_study(pruner=GuardPruner())
    trial = study.ask()
    trial.report(1.0, 0)
    del trial._cached_frozen_trial
    assert optuna_engine.current(trial).intermediate_values == {0: 1.0}


def test_without_optunas_mark_a_thread_is_taken_for_one_that_asks() -> None:
    """Nothing is assumed of the trials before."""
    gone: Any = Gone()
    assert optuna_engine.in_optimize(gone) is False


def test_without_its_private_parts_rays_controller_tells_nothing() -> None:
    """Each question has an answer that costs a name."""
    gone: Any = Gone()
    assert ray_engine.scheduler_of(gone) is None
    assert ray_engine.stoppers_of(gone) == []
    assert ray_engine.modes_of(gone, "loss") == set()
    assert ray_engine.failed_fast(gone) is False
    assert ray_engine.reached_budget(gone, {"training_iteration": 9}) is False
    assert ray_engine.trial_of(gone, "a") is None
    assert ray_engine.optuna_trial(gone, "a") is None
    assert ray_engine.label_selectors(gone) == []
    ray_engine.survive_memory_kills(gone)


def test_without_its_private_parts_rays_trial_keeps_its_row() -> None:
    """And a process that cannot be told from others is none."""
    row = {"trial_id": "a"}
    kept = []
    metadata = SimpleNamespace(
        last_result=row, invalidate_cache=lambda: kept.append(metadata.last_result)
    )
    actor = SimpleNamespace(ray_actor=Gone())
    gone: Any = SimpleNamespace(run_metadata=metadata, temporary_state=actor)
    assert ray_engine.newest_row(gone) is row
    ray_engine.keep(gone, {"trial_id": "b"}, None)
    assert kept == [{"trial_id": "b"}]
    assert ray_engine.process_of(gone) is None


def test_without_rays_private_question_the_public_one_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A trial of Tune is known by its id."""
    monkeypatch.delattr("ray.tune.trainable.trainable_fn_utils._in_tune_session")
    context = SimpleNamespace(get_trial_id=lambda: "a")
    monkeypatch.setattr("ray.tune.get_context", lambda: context)
    assert ray_session._in_tune() is True


def test_without_its_private_parts_a_scaler_is_asked_in_public() -> None:
    """It waits for the device then; what cannot be asked counts as scaled."""
    scaler = SimpleNamespace(get_scale=lambda: 1024.0)
    assert amp.scale_of(scaler) == 1024.0
    assert amp.is_unscaled(scaler) is False


def test_without_the_fused_norm_each_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one."""
    import torch

    from tune_guard.worker import gradients

    monkeypatch.delattr(torch, "_foreach_norm")
    norms = gradients._fused([torch.tensor([3.0, 4.0]), torch.tensor([1.0])])
    assert [float(norm) for norm in norms] == [5.0, 1.0]
