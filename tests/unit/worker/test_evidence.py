"""What a guard in the training loop keeps of a trial that is cut."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tune_guard import Evidence, Policy, TrialGuard
from tune_guard.evidence.again import judge_again
from tune_guard.evidence.reader import StoredBundle, find_bundle
from tune_guard.evidence.rng import restore_rng, rng_states
from tune_guard.rules import Plateau
from tune_guard.worker.batches import batch_as_json
from tune_guard.worker.checkpoints import Checkpoints
from tune_guard.worker.states import plain_state, size_bytes

POLICY = Policy.default("val_loss", "min")


class Training:
    """A small regression, in which one batch may hold a NaN."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=0.1, total_steps=500
        )

    def run(
        self, guard: TrialGuard | None, first: int, steps: int, nan_at: int = -1
    ) -> None:
        """Train from step ``first`` on, until the guard says stop."""
        for step in range(first, first + steps):
            batch = torch.randn(16, 4)
            if step == nan_at:
                batch[3, 2] = math.nan
            loss = (self.model(batch) - batch.sum(1, keepdim=True)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            if guard is not None and self.stops(guard, loss, batch):
                return
            self.optimizer.step()
            self.scheduler.step()

    def stops(self, guard: TrialGuard, loss: Any, batch: Any) -> bool:
        """Ask the guard, with everything that a loop may show it."""
        return guard.check_step(
            loss,
            self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            batch=batch,
        ).stop


def cut(tmp_path: Path, nan_at: int = 130, **evidence: Any) -> StoredBundle:
    """Return the bundle of a training that met a NaN."""
    guard = TrialGuard(POLICY, evidence=Evidence(folder=tmp_path, **evidence))
    Training().run(guard, 0, 500, nan_at)
    assert guard.verdict.step == nan_at
    bundle = find_bundle(guard.record().evidence)
    assert bundle.problems() == []
    return bundle


def load(bundle: StoredBundle, file: str) -> Any:
    """Return a file of tensors, read without unpickling anything else."""
    return torch.load(Path(bundle.name) / file, weights_only=True)


def test_the_verdict_of_a_step_is_judged_again(tmp_path: Path) -> None:
    """The stream of the steps decided, and its observations are there."""
    bundle = cut(tmp_path)
    again = judge_again(bundle)
    assert again.same
    assert (again.verdict.reason, again.verdict.step) == ("non_finite", 130)
    assert bundle.rules()["decided_by"] == "steps"
    assert [o.step for o in bundle.observations("steps")] == list(range(131))


def test_every_part_is_there_in_its_order(tmp_path: Path) -> None:
    """The cheapest first; without a GPU its part says so."""
    bundle = cut(tmp_path, checkpoint_every_steps=50)
    assert [f["file"] for f in bundle.manifest["files"]] == [
        "record.json",
        "observations.jsonl",
        "rules.json",
        "batches.json",
        "environment.json",
        "modules.json",
        "rng.json",
        "training.pt",
        "checkpoint.pt",
    ]
    assert bundle.manifest["left_out"] == {"gpu.json": "no GPU is watched"}


def test_the_states_need_no_unpickling(tmp_path: Path) -> None:
    """Optimizer and scheduler load into fresh ones."""
    states = load(cut(tmp_path), "training.pt")
    fresh = Training()
    fresh.optimizer.load_state_dict(states["optimizer"])
    fresh.scheduler.load_state_dict(states["scheduler"])
    assert fresh.scheduler.last_epoch == 130


@pytest.mark.parametrize(("nan_at", "copied"), [(99, 50), (100, 50), (101, 100)])
def test_the_checkpoint_is_from_before_the_bad_step(
    tmp_path: Path, nan_at: int, copied: int
) -> None:
    """Also where a copy was taken at the very step that turned out bad."""
    found = load(cut(tmp_path, nan_at, checkpoint_every_steps=50), "checkpoint.pt")
    assert found["step"] == copied
    assert all(torch.isfinite(w).all() for w in found["model"].values())


def test_the_checkpoint_holds_the_training_as_it_was(tmp_path: Path) -> None:
    """Weights, moments, schedule and generators of before step 100's update."""
    found = load(cut(tmp_path, checkpoint_every_steps=50), "checkpoint.pt")
    then = Training()
    then.run(None, 0, 100)
    torch.randn(16, 4)  # the batch of step 100 had been drawn
    for name, weight in then.model.state_dict().items():
        assert torch.equal(found["model"][name], weight)
    moments = found["optimizer"]["state"][0]["exp_avg"]
    assert torch.equal(moments, then.optimizer.state_dict()["state"][0]["exp_avg"])
    assert found["scheduler"]["last_epoch"] == 100
    drawn = torch.randn(5)
    restore_rng(found["rng"])
    assert torch.equal(torch.randn(5), drawn)


def test_the_generators_are_restored_to_the_moment_of_the_cut(tmp_path: Path) -> None:
    """What is drawn next is what would have been drawn then."""
    bundle = cut(tmp_path)
    drawn = torch.randn(5)
    restore_rng(bundle.json("rng.json"))
    assert torch.equal(torch.randn(5), drawn)


def test_the_batch_and_the_one_before_are_named(tmp_path: Path) -> None:
    """By hash, for the loop gave data and no ids."""
    batches = cut(tmp_path).json("batches.json")
    assert [batch["step"] for batch in batches] == [129, 130]
    assert batches[0]["sha256"] != batches[1]["sha256"]
    assert batches[0]["shapes"] == [["float32", 16, 4]]


def test_norms_are_kept_by_module(tmp_path: Path) -> None:
    """Of the gradients and of the parameters, NaN as text."""
    found = cut(tmp_path).json("modules.json")
    assert sorted(found["modules"]) == ["0", "2"]
    assert found["modules"]["2"]["gradient_norm"] == "NaN"
    assert found["modules"]["2"]["parameter_norm"] > 0
    assert found["first_bad"].startswith("All gradients are bad")


def test_what_is_too_large_is_left_out(tmp_path: Path) -> None:
    """The parts before it are there, and the manifest gives the sizes."""
    bundle = cut(tmp_path, most_bytes=120_000, checkpoint_every_steps=1)
    tight = cut(tmp_path / "tight", most_bytes=bundle_size(bundle) - 1)
    assert "were left" in str(tight.manifest["left_out"])


def bundle_size(bundle: StoredBundle) -> int:
    """Return the bytes up to and with the generators' state."""
    files = bundle.manifest["files"]
    names = [f["file"] for f in files]
    end = names.index("rng.json") + 1
    return int(sum(f["bytes"] for f in files[:end]))


def test_without_a_place_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop without an engine does not litter its working directory."""
    monkeypatch.chdir(tmp_path)
    guard = TrialGuard(POLICY)
    Training().run(guard, 0, 10, 5)
    assert (guard.verdict.stop, guard.record().evidence) == (True, "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_refuses_costs_a_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The verdict is the same; a file lies where the folder should be."""
    (tmp_path / "file").touch()
    guard = TrialGuard(POLICY, evidence=Evidence(folder=tmp_path / "file"))
    Training().run(guard, 0, 10, 5)
    assert (guard.verdict.reason, guard.record().evidence) == ("non_finite", "")
    said = [m for m in caplog.messages if "bundle of evidence" in m]
    assert len(said) == 1


def test_it_is_written_once(tmp_path: Path) -> None:
    """However often a loop asks after the stop."""
    guard = TrialGuard(POLICY, evidence=Evidence(folder=tmp_path))
    for _ in range(3):
        guard.check_step(math.nan)
        guard.check_epoch(math.nan)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_verdict_of_the_reports_is_judged_again(tmp_path: Path) -> None:
    """With what it was reported beside: the epochs decided."""
    policy = Policy("val_loss", "min", rules=(Plateau(patience=3, holds=()),))
    guard = TrialGuard(policy, evidence=Evidence(folder=tmp_path))
    for _ in range(5):
        guard.check_epoch(1.0)
    again = judge_again(find_bundle(guard.record().evidence))
    assert (again.same, again.verdict.reason, again.verdict.step) == (
        True,
        "plateau",
        3,
    )


def test_a_closed_guard_holds_nothing() -> None:
    """Neither the model nor a batch, nor copies of them."""
    guard = TrialGuard(POLICY, evidence=Evidence(checkpoint_every_steps=1))
    Training().run(guard, 0, 3)
    guard.close()
    keeper = guard._trial.keeper
    assert (keeper._shown, list(keeper._batches)) == ({}, [])
    assert keeper._checkpoints.before(None) is None


@pytest.mark.parametrize(
    ("batch", "ids"),
    [
        ([1, 2], [1, 2]),
        (torch.tensor([3, 4]), [3, 4]),
        (("a", "b"), ["a", "b"]),
        (7, [7]),
        (torch.tensor(7), [7]),
    ],
    ids=["list", "tensor", "texts", "number", "scalar"],
)
def test_ids_are_kept_as_they_are(batch: Any, ids: list[Any]) -> None:
    """Whole numbers and texts."""
    assert batch_as_json(batch) == {"ids": ids}


@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(3),
        {"x": torch.zeros(2, dtype=torch.bfloat16), "y": [torch.ones(1)]},
        (torch.zeros(2, 2).T, torch.zeros(1, requires_grad=True)),
        [object()],
        list(range(5000)),
    ],
    ids=["floats", "dict", "views", "object", "long"],
)
def test_data_is_kept_as_a_hash(batch: Any) -> None:
    """Whatever it holds."""
    assert len(batch_as_json(batch)["sha256"]) == 64


def test_a_hash_tells_values_shapes_and_kinds_apart() -> None:
    """The same batch gives the same; any change another."""
    batches = [
        torch.zeros(4),
        torch.zeros(2, 2),
        torch.zeros(4, dtype=torch.float64),
        torch.tensor([0.0, 0.0, 0.0, 1.0]),
        {"x": torch.zeros(4)},
        {"y": torch.zeros(4)},
    ]
    hashes = {batch_as_json(batch)["sha256"] for batch in batches}
    assert len(hashes) == len(batches)
    assert batch_as_json(torch.zeros(4)) == batch_as_json(torch.zeros(4))


def test_a_state_keeps_plain_parts_only(tmp_path: Path) -> None:
    """What could not be read back without unpickling is named instead."""
    state = {"a": torch.ones(2), 3: (1, 2.5), "hook": print, "deep": {"n": None}}
    torch.save(plain_state(state), tmp_path / "state.pt")
    found = torch.load(tmp_path / "state.pt", weights_only=True)
    assert found[3] == [1, 2.5]
    assert found["hook"].startswith("<left out: builtins.")
    assert size_bytes(state) == 8


def test_copies_do_not_follow_the_model() -> None:
    """A copy holds the values of its step."""
    model = nn.Linear(2, 1)
    copies = Checkpoints(1)
    copies.take(0, {"model": model})
    before = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.add_(1.0)
    found = copies.before(None)
    assert found is not None
    assert torch.equal(found["model"]["weight"], before)


def test_a_rewind_drops_later_copies() -> None:
    """A retry that repeats a step does not keep the copy of the first attempt."""
    copies = Checkpoints(10)
    for step in (0, 10, 20, 10):
        copies.take(step, {})
    assert copies.before(None) is not None
    assert copies.before(10) is None or copies.before(10)["step"] < 10  # type: ignore[index]
    assert not copies.is_due(15)
    assert copies.is_due(30)


def test_generators_of_all_kinds_are_restored() -> None:
    """Python's, NumPy's and torch's."""
    import random

    import numpy as np

    states = rng_states()
    drawn = random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002
    restore_rng(states)
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == drawn  # noqa: NPY002
