"""Calibration: bounds, the sequence of levels, refusals, and what is written."""

from __future__ import annotations

import math
import random
from array import array
from pathlib import Path

import pytest

from tune_guard.cli import main
from tune_guard.exceptions import ConfigError
from tune_guard.policy import DEFAULT, Policy
from tune_guard.record import Outcome
from tune_guard.sweeps.calibrate import (
    Goal,
    Judged,
    Past,
    TooFewSweepsError,
    chosen_from,
    fixed_sequence,
    judge,
)
from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.levels import LEVELS
from tune_guard.sweeps.report.calibrated import as_yaml
from tune_guard.sweeps.risk import binomial_tail, fewest, p_value
from tune_guard.sweeps.sweep import Sweep, Trial

# ------------------------------------------------------------------------ bounds


def test_the_binomial_tail_is_that_of_the_tables() -> None:
    """At most 2 of 10 at one in four: 0.5256."""
    assert binomial_tail(2, 10, 0.25) == pytest.approx(0.5256, abs=1e-4)


def test_losses_of_zero_and_one_use_the_exact_tail() -> None:
    """One kill in 100 sweeps, against a rate of 5%."""
    losses = [1.0] + [0.0] * 99
    assert p_value(losses, 0.05) == pytest.approx(binomial_tail(1, 100, 0.05))


def test_losses_between_use_the_smaller_bound() -> None:
    """Half a kill in 100 sweeps: Hoeffding's tight form, not Bentkus's e times."""
    losses = [0.5] + [0.0] * 99
    mean, limit = 0.005, 0.05
    entropy = mean * math.log(mean / limit)
    entropy += (1 - mean) * math.log((1 - mean) / (1 - limit))
    assert p_value(losses, limit) == pytest.approx(math.exp(-100 * entropy))


def test_a_mean_at_the_limit_or_above_refutes_nothing() -> None:
    """The p-value is 1, or close to it."""
    assert p_value([0.1] * 50, 0.1) == 1.0
    assert p_value([0.5] * 50, 0.1) == 1.0
    assert p_value([], 0.1) == 1.0


@pytest.mark.parametrize(("limit", "confidence"), [(0.01, 0.9), (0.05, 0.95)])
def test_the_fewest_sweeps_are_just_enough(limit: float, confidence: float) -> None:
    """One fewer without a single kill refutes nothing."""
    count = fewest(limit, confidence)
    assert p_value([0.0] * count, limit) <= 1 - confidence
    assert p_value([0.0] * (count - 1), limit) > 1 - confidence


# ---------------------------------------------------------------------- sequence


def test_the_first_level_that_fails_ends_the_sequence() -> None:
    """A bolder one that looks safe is not taken: it was not to be tested."""
    rows = fixed_sequence([(0.0, 0.5, 0.0)] * 100, limit=0.05, error=0.1)
    assert [kept for _, _, kept in rows] == [True, False, False]


def test_the_promise_holds_as_often_as_it_says() -> None:
    """True rates 0, 3, 6 and 9 in 100 with a limit of 5: wrong in at most 10%.

    500 draws of 80 sweeps; a tenth of wrong ones may scatter up to 13%.
    """
    rng, rates = random.Random(1), (0.0, 0.03, 0.06, 0.09)
    wrong = 0
    for _ in range(500):
        losses = [[float(rng.random() < rate) for rate in rates] for _ in range(80)]
        kept = [kept for _, _, kept in fixed_sequence(losses, 0.05, 0.1)]
        wrong += kept[2] or kept[3]
    assert wrong <= 65


def judged(*losses: float, budget: int = 20) -> Judged:
    """Return a judged sweep with these losses, the rest of the levels bad."""
    rest = (1.0,) * (len(LEVELS) - len(losses))
    saved = tuple(number / 10 for number in range(len(LEVELS)))
    return Judged((*losses, *rest), saved, 10, 0, ("loss", "min"), budget)


def test_the_boldest_level_that_passes_is_chosen() -> None:
    """The fourth is the default policy."""
    found = chosen_from(Past(judged=[judged(0, 0, 0, 0)] * 45), Goal(false_kill=0.05))

    assert found.chosen.level.name == "default"
    assert found.policy.rules == DEFAULT
    assert (found.policy.metric, found.policy.budget_steps) == ("loss", 20)
    assert found.chosen.saved == pytest.approx(0.3)


def test_too_few_sweeps_are_refused_with_the_number_needed() -> None:
    """44 are one too few for 5% at 90%; they could carry 5.1%."""
    with pytest.raises(TooFewSweepsError, match=r"needs 45\. .*--false-kill 0\.051"):
        chosen_from(Past(judged=[judged(0, 0)] * 44), Goal(false_kill=0.05))


def test_no_sweeps_at_all_are_refused() -> None:
    """Without a promise that they could carry."""
    with pytest.raises(TooFewSweepsError, match=r"^0 sweeps") as refused:
        chosen_from(Past(), Goal())
    assert "could carry" not in str(refused.value)


def test_sweeps_that_even_the_most_lenient_level_harms_are_refused() -> None:
    """It says how many it killed."""
    with pytest.raises(TooFewSweepsError, match=r"killed 50\.00% of the best"):
        chosen_from(Past(judged=[judged(0.5)] * 300), Goal(false_kill=0.05))


@pytest.mark.parametrize(
    "wrong",
    [{"false_kill": 0.0}, {"false_kill": 1.0}, {"confidence": 0.3}, {"top": 0.0}],
)
def test_a_goal_that_cannot_be_meant_is_refused(wrong: dict[str, float]) -> None:
    """At construction."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Goal(**wrong)


# ------------------------------------------------------------------------ sweeps


def sweep(*outcomes: Outcome | None, state: str = "") -> Sweep:
    """Return a sweep whose trials are stuck from the start, and one that learns."""
    names = [f"t{number}" for number in range(len(outcomes))]
    flat = Curve(array("q", range(40)), array("d", [1.0] * 40))
    good = Curve(array("q", range(40)), array("d", [1 / (1 + i) for i in range(40)]))
    return Sweep(
        source="here",
        engine="table",
        modes={"loss": "min"},
        metric="loss",
        trials=tuple(
            Trial(id=name, outcome=outcome, state=state, steps_run=39)
            for name, outcome in zip(names, outcomes, strict=True)
        ),
        curves=Curves({n: {"loss": good if n == "t0" else flat} for n in names}),
    )


def test_every_level_judges_the_trials_that_nothing_had_cut() -> None:
    """Two were pruned: they are left out, and nine stuck ones are cut."""
    done, pruned = [Outcome.COMPLETED] * 10, [Outcome.PRUNER, Outcome.GUARD]
    found = judge(sweep(*done, *pruned), ("", ""), 0.1)

    assert (found.trials, found.censored) == (10, 2)
    assert found.losses == (0.0,) * len(LEVELS)
    assert found.saved[0] == 0.0
    assert found.saved[1] > 0.5


def test_a_table_that_says_nothing_of_ends_counts() -> None:
    """But a trial whose engine called it something unknown does not."""
    assert judge(sweep(*[None] * 10), ("", ""), 0.1).trials == 10
    assert judge(sweep(*[None] * 10, state="RUNNING"), ("", ""), 0.1).trials == 0


def test_levels_only_get_bolder() -> None:
    """Each cuts the stuck and fallen at least as the one before; the ids differ."""
    assert LEVELS[3].rules == DEFAULT
    assert len({level.name for level in LEVELS}) == len(LEVELS)
    found = judge(sweep(*[Outcome.COMPLETED] * 10), ("", ""), 0.1)
    assert list(found.saved) == sorted(found.saved)


def test_the_policy_that_is_written_can_be_read_and_says_its_promise() -> None:
    """YAML with a comment on what it rests on."""
    past = Past(judged=[judged(0, 0, 0, 0, 0)] * 50, small=3)
    found = chosen_from(past, Goal(false_kill=0.05))
    text = as_yaml(found, ["one", "two\nlines"])

    assert Policy.from_yaml(text) == found.policy
    assert "# Promise, with 90% confidence" in text
    assert "# It rests on 50 sweeps and their 500 uncut trials:" in text
    assert "arXiv:2110.01052" in text


# ----------------------------------------------------------------------- command


def table(folder: Path, sweeps: int) -> Path:
    """Write a CSV of sweeps of ten trials: one learns, the others are stuck."""
    rows = ["sweep_id,trial_id,step,metric_name,value,mode"]
    for number in range(sweeps):
        for trial in range(10):
            rows += [
                f"s{number},t{trial},{step},loss,{1 if trial else 1 / step},min"
                for step in range(1, 21)
            ]
    path = folder / "past.csv"
    path.write_text("\n".join(rows))
    return path


def test_the_command_writes_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """24 sweeps carry 10% at 90%; stuck trials are what every level finds."""
    out = tmp_path / "policy.yaml"
    asked = ["--metric", "loss", "--false-kill", "0.1", "--out", str(out)]
    status = main(["calibrate", str(table(tmp_path, 24)), *asked])

    said = capsys.readouterr().err
    assert status == 0
    assert Policy.from_yaml(out).metric == "loss"
    assert "Promise, with 90% confidence" in " ".join(said.split())


def test_the_command_refuses_too_little(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, no file, and the number of sweeps that it takes."""
    out = tmp_path / "policy.yaml"
    past = str(table(tmp_path, 3))
    status = main(["calibrate", past, "--metric", "loss", "--out", str(out)])

    assert status == 2
    assert not out.exists()
    assert "needs 230" in capsys.readouterr().err
