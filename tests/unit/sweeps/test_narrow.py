"""A narrower space: what kills is left out, the best region never."""

from __future__ import annotations

import dataclasses
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sweeps.sweeps_made import deadly, trial_of
from tune_guard.cli import main
from tune_guard.record import Outcome
from tune_guard.space import Categorical, Constant, Float, Int, Space
from tune_guard.sweeps import Sweep, Trial
from tune_guard.sweeps.cut_space import without
from tune_guard.sweeps.drawn_space import drawn_space
from tune_guard.sweeps.first_looks import ranked
from tune_guard.sweeps.narrow import narrow
from tune_guard.sweeps.regions import Condition
from tune_guard.sweeps.report.narrowed import lines
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from pathlib import Path

SPACE = Space(
    {
        "lr": Float(low=1e-4, high=1.0, log=True),
        "opt": Categorical(choices=("sgd", "adam")),
        "momentum": Float(low=0.0, high=0.9, when={"opt": "sgd"}),
    }
)


def ranked_sweep(
    count: int = 100,
    *,
    best_at: float = 0.01,
    dies_from: float = 0.1,
    seed: int = 1,
    below: bool = False,
) -> Sweep:
    """Return a sweep in which a rate above (or below) ``dies_from`` kills."""
    rng = random.Random(seed)
    trials = []
    for number in range(count):
        params = SPACE.sample(rng)
        lr = float(str(params["lr"]))
        reason = "non_finite" if (lr < dies_from if below else lr > dies_from) else ""
        value = abs(lr - best_at)
        trial = trial_of(number, lr, reason, params=params, finals={"loss": value})
        trials.append(trial)
    sweep = Sweep(source="x", engine="ray", trials=tuple(trials))
    return sweep.with_objective("loss", "min")


def test_the_deadly_end_of_a_range_is_left_out() -> None:
    """Above 0.1 all die: the new range ends there, whatever else it holds."""
    found = narrow(ranked_sweep(), SPACE)
    lr = found.space.parameters["lr"]
    assert isinstance(lr, Float)
    assert [cut.name for cut in found.cuts] == ["lr"]
    assert 0.07 < lr.high < 0.14
    assert (lr.low, lr.log) == (1e-4, True)
    assert found.avoided.ratio > 0.9
    assert found.kept.ratio == 1.0
    assert found.others_kept.ratio > 0.95


def test_a_deadly_choice_is_left_out_with_what_depends_on_it() -> None:
    """Without sgd there is no momentum."""
    sweep = ranked_sweep(dies_from=2.0)
    trials = [
        dataclasses.replace(t, outcome=Outcome.GUARD, reason="divergence", finals={})
        if t.params["opt"] == "sgd"
        else t
        for t in sweep.trials
    ]
    sweep = dataclasses.replace(sweep, trials=tuple(trials))
    found = narrow(sweep.with_objective("loss", "min"), SPACE)
    assert found.space.parameters == {
        "lr": SPACE.parameters["lr"],
        "opt": Categorical(choices=("adam",)),
    }


@given(
    st.integers(0, 10_000), st.floats(1e-4, 1.0), st.floats(0.001, 0.9), st.booleans()
)
def test_the_best_tenth_always_stays(
    seed: int, best: float, dies: float, below: bool
) -> None:
    """Also where the best region lies beside, or in, what kills."""
    sweep = ranked_sweep(60, best_at=best, dies_from=dies, seed=seed, below=below)
    space = narrow(sweep, SPACE).space
    for trial in ranked(sweep)[:6]:
        params = {k: v for k, v in trial.params.items() if k in SPACE.parameters}
        assert space.contains(params)


@pytest.mark.parametrize("below", [False, True])
def test_a_margin_stays_around_the_best(below: bool) -> None:
    """A twentieth of the range, by its logarithm: the best lies beside the deadly."""
    best = 0.011 if below else 0.099
    sweep = ranked_sweep(
        300, best_at=best, dies_from=0.01 if below else 0.1, below=below
    )
    lr = narrow(sweep, SPACE).space.parameters["lr"]
    top = [float(str(trial.params["lr"])) for trial in ranked(sweep)[:30]]
    assert isinstance(lr, Float)
    assert lr.low <= min(top) / 1e4**0.05
    assert lr.high >= max(top) * 1e4**0.05
    assert (lr.low > 1e-4) if below else (lr.high < 1.0)


def test_a_choice_that_one_of_the_best_took_stays() -> None:
    """Though most of its trials die."""
    sweep = ranked_sweep(200, dies_from=2.0)
    best = ranked(sweep)[0]
    trials = [
        dataclasses.replace(t, outcome=Outcome.GUARD, reason="divergence", finals={})
        if t.params["opt"] == best.params["opt"] and t is not best
        else t
        for t in sweep.trials
    ]
    sweep = dataclasses.replace(sweep, trials=tuple(trials))
    found = narrow(sweep.with_objective("loss", "min"), SPACE)
    assert found.space.parameters["opt"] == SPACE.parameters["opt"]


def test_deaths_by_chance_cut_nothing() -> None:
    """Of 50 sweeps in which nothing kills, all but a few stay as they are."""
    cut = 0
    for seed in range(50):
        rng = random.Random(seed)
        sweep = ranked_sweep(80, dies_from=2.0, seed=seed)
        trials = [
            dataclasses.replace(t, outcome=Outcome.GUARD, reason="plateau")
            if rng.random() < 0.4
            else t
            for t in sweep.trials
        ]
        sweep = dataclasses.replace(sweep, trials=tuple(trials))
        cut += bool(narrow(sweep, SPACE).cuts)
    assert cut <= 2


def _with(fields: dict[str, object]) -> Sweep:
    sweep = ranked_sweep()
    trials = [dataclasses.replace(t, **fields) if t.reason else t for t in sweep.trials]
    return dataclasses.replace(sweep, trials=tuple(trials))


@pytest.mark.parametrize(
    "fields",
    [
        {"blame": Blame.INFRASTRUCTURE},
        {"outcome": Outcome.PRUNER},
        {"outcome": Outcome.INTERRUPTED},
        {"outcome": None},
    ],
)
def test_only_sick_trials_narrow_a_space(fields: dict[str, object]) -> None:
    """Not those whose machine failed, whom others outran, or that never ended."""
    found = narrow(_with(fields), SPACE)
    assert (found.cuts, found.space) == ((), SPACE)
    assert found.why == "0 trials died: too few to say where not to look"


def test_without_an_objective_nothing_is_cut() -> None:
    """Nobody knows which region is the best."""
    found = narrow(Sweep(source="x", engine="ray", trials=ranked_sweep().trials), SPACE)
    assert found.why.startswith("too few trials have a value of the objective")


@pytest.mark.parametrize(
    ("parameter", "kind", "cut", "expected"),
    [
        (Int(low=0, high=10), "above", 4, Int(low=0, high=4)),
        (Int(low=0, high=10), "at_most", 4, Int(low=5, high=10)),
        (Int(low=16, high=128, step=16), "above", 70, Int(low=16, high=64, step=16)),
        (Int(low=16, high=128, step=16), "at_most", 64, Int(low=80, high=128, step=16)),
        (
            Float(low=0.0, high=0.6, step=0.1),
            "above",
            0.3,
            Float(low=0.0, high=0.3, step=0.1),
        ),
        (
            Float(low=0.0, high=0.6, step=0.1),
            "at_most",
            0.3,
            Float(low=0.4, high=0.6, step=0.1),
        ),
    ],
)
def test_a_cut_moves_a_bound_on_its_grid(
    parameter: Int | Float, kind: str, cut: float, expected: Int | Float
) -> None:
    """Whole numbers stay whole, and steps stay reachable."""
    condition = Condition(name="x", kind=kind, cut=cut)  # type: ignore[arg-type]
    assert without(Space({"x": parameter}), [condition]) == Space({"x": expected})


def test_the_space_of_a_sweep_is_read_from_its_values() -> None:
    """Ranges, logarithms, choices, constants; unset values and nested names."""
    rng = random.Random(1)
    trials = [
        Trial(
            id=str(i),
            params={
                "lr": 10 ** rng.uniform(-4, 0),
                "dropout": rng.random(),
                "epochs": 20,
                "units": rng.randint(1, 90),
                "batch": rng.choice([16, 32]),
                "opt": rng.choice(["sgd", "adam", None]),
                "nested/lr": 0.1,
            },
        )
        for i in range(60)
    ]
    space, left_out = drawn_space(trials)
    kinds = {name: type(p) for name, p in space.parameters.items()}
    assert kinds == {
        "lr": Float,
        "dropout": Float,
        "epochs": Constant,
        "units": Int,
        "batch": Categorical,
        "opt": Categorical,
    }
    assert getattr(space.parameters["lr"], "log", None) is True
    assert getattr(space.parameters["dropout"], "log", None) is False
    assert left_out == ["`nested/lr`: nested, which a space file cannot hold"]


def test_what_a_range_cannot_leave_out_is_said() -> None:
    """A large rate kills only with a short warm-up: a range of either would cost."""
    space, _ = drawn_space(deadly(400).trials)
    said = lines(narrow(deadly(400), space))
    assert any(line.startswith("No range can leave this out: ") for line in said)


def _table(folder: Path) -> Path:
    """Write the sweep as a long table beside its trials."""
    import csv
    import json

    rows, trials = [], []
    for trial in ranked_sweep().trials:
        for step in range(1, 4):
            value = "NaN" if trial.reason else trial.finals["loss"] + 1 / step
            rows.append(["s", trial.id, step, "loss", value])
        status = "failed" if trial.reason else "completed"
        params = {k: v for k, v in trial.params.items() if k in SPACE.parameters}
        trials.append(["s", trial.id, json.dumps(params), status, "loss", "min"])
    for name, header, written in (
        ("curves", ["sweep_id", "trial_id", "step", "metric_name", "value"], rows),
        (
            "trials",
            ["sweep_id", "trial_id", "config", "status", "objective", "objective_mode"],
            trials,
        ),
    ):
        (folder / name).mkdir()
        with (folder / name / "s.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *written])
    return folder / "curves" / "s.csv"


def test_the_command_writes_a_space_that_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the given one, with what was left out and why in its head."""
    given_space = tmp_path / "space.yaml"
    given_space.write_text(SPACE.to_yaml())
    status = main(["narrow", str(_table(tmp_path)), "--space", str(given_space)])
    written = tmp_path / "space.narrowed.yaml"
    assert status == 1
    assert "Dead trials avoided: " in capsys.readouterr().out
    assert written.read_text().startswith("# Narrowed after ")
    assert Space.from_yaml(written).parameters["lr"] != SPACE.parameters["lr"]


def test_check_only_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of a space that is read from the sweep itself."""
    before = {path.name for path in tmp_path.iterdir()}
    table = _table(tmp_path)
    assert main(["narrow", str(table), "--check"]) == 1
    assert "Leave out lr > 0." in capsys.readouterr().out
    assert {p.name for p in tmp_path.iterdir()} == before | {"curves", "trials"}
