"""The stopper, row by row, without a cluster."""

from __future__ import annotations

import copy
import json
import math
import pickle
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.integration.ray.support import Counter, CountTo
from tests.schemas import check_row, stamp_in
from tune_guard import Blame, ConfigError, Policy, Tier
from tune_guard.policy import DEFAULT
from tune_guard.ray import GuardStopper
from tune_guard.ray.open_trials import OpenTrial
from tune_guard.ray.rows import Stamp, stamp_of
from tune_guard.ray.stored import pickled
from tune_guard.record import KEYS
from tune_guard.rules.base import Context, Detector

POLICY = Policy.default("loss", "min")
FIVE = set(KEYS)


def counting(n: int, **more: Any) -> GuardStopper:
    """Return a stopper that cuts at the n-th observation."""
    policy = Policy.default("loss", "min", rules=(*DEFAULT, CountTo(n=n)))
    return GuardStopper(policy, **more)


def row(step: int, loss: Any = 0.5, since: int | None = None, **more: Any) -> Any:
    """Return a result as Ray hands it to a stopper."""
    return {
        "loss": loss,
        "training_iteration": step,
        "iterations_since_restore": step if since is None else since,
        "done": False,
        "config": {"lr": 0.1},
        **more,
    }


def cut_at(
    stopper: GuardStopper, rows: list[dict[str, Any]], trial: str = "t"
) -> int | None:
    """Return the step at which a trial is cut, or None."""
    for result in rows:
        if stopper(trial, result):
            return int(result["tune_guard/step"])
    return None


def reread(value: Any) -> Any:
    """Return what another process reads of a pickled value."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


def open_trials(stopper: GuardStopper) -> int:
    """Return how many trials the stopper keeps state of."""
    return len(stopper._trials)


# --------------------------------------------------------------- construction


def test_a_missing_mode_is_an_error_at_construction() -> None:
    """The direction is never guessed."""
    with pytest.raises(ConfigError, match="`mode` must be 'min' or 'max'"):
        GuardStopper(Policy.default("loss"))


def test_what_is_no_policy_is_an_error_at_construction() -> None:
    """Such as the metric's name alone."""
    with pytest.raises(ConfigError, match=r"must be a Policy, but got 'loss'"):
        GuardStopper("loss")  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["", " ", None, 3])
def test_a_step_key_that_is_no_key_is_an_error(key: Any) -> None:
    """It must be a text that is not blank."""
    with pytest.raises(ConfigError, match="`step_key` must be"):
        GuardStopper(POLICY, step_key=key)


# ------------------------------------------------------------------ every row


def test_every_row_has_five_values_from_the_first_on() -> None:
    """Loggers that keep the first row's columns keep the reason."""
    stopper = GuardStopper(POLICY)
    rows = [row(1), row(2), row(3, math.nan)]
    assert cut_at(stopper, rows) == 3
    assert [set(stamp_in(r)) for r in rows] == [FIVE] * 3
    assert [r["tune_guard/status"] for r in rows] == ["running"] * 2 + ["stopped"]


@pytest.mark.parametrize("actions", [{}, {"count_to": "warn"}])
def test_a_running_trials_row_gets_no_number(actions: dict[str, str]) -> None:
    """Ray keeps statistics of every number, and logs each as a scalar of its own."""
    rules = (*DEFAULT, CountTo(n=1)) if actions else DEFAULT
    result = row(1)
    GuardStopper(Policy.default("loss", "min", rules=rules, actions=actions))(
        "t", result
    )
    assert not [v for v in stamp_in(result).values() if isinstance(v, int | float)]
    check_row(result)


def test_a_warning_shows_in_the_row() -> None:
    """A rule that may only warn leaves its mark, and the trial goes on."""
    policy = Policy.default(
        "loss", "min", rules=(*DEFAULT, CountTo(n=2)), actions={"count_to": "warn"}
    )
    rows = [row(1), row(2), row(3)]
    assert cut_at(GuardStopper(policy), rows) is None
    status = [r["tune_guard/status"] for r in rows]
    assert status == ["running", "warned", "warned"]


def test_the_detail_is_strict_json_under_a_kilobyte() -> None:
    """A NaN is text in it."""
    result = row(1, math.nan, hostname="node-1")
    GuardStopper(POLICY)("t", result)
    text = result["tune_guard/detail"]
    detail = json.loads(text, parse_constant=pytest.fail)
    assert len(text.encode()) < 1000
    assert (detail["value"], detail["host"], detail["trial"]) == ("NaN", "node-1", "t")


@pytest.mark.parametrize(
    "loss",
    [math.nan, math.inf, np.float32("nan"), np.array([math.inf]), "NaN", [math.nan]],
    ids=repr,
)
def test_a_nan_is_seen_in_every_form(loss: Any) -> None:
    """NumPy scalars arrive as they were reported."""
    assert cut_at(GuardStopper(POLICY), [row(1, loss)]) == 1


@pytest.mark.parametrize(
    "loss", [None, "broken", True, {"a": 1}, [1.0, math.nan], object(), 10**400]
)
def test_what_is_no_number_is_no_observation(loss: Any) -> None:
    """Such rows are stamped and cut nothing; only the huge number is infinite."""
    result = row(1, loss)
    assert cut_at(GuardStopper(POLICY), [result]) == (1 if loss == 10**400 else None)
    assert set(stamp_in(result)) == FIVE


def test_a_result_without_anything_is_stamped() -> None:
    """No metric, no step, no configuration."""
    result: dict[str, Any] = {}
    assert GuardStopper(POLICY)("t", result) is False
    assert set(stamp_in(result)) == FIVE


def test_a_step_that_is_nowhere_is_named_once(caplog: Any) -> None:
    """With the keys that are there."""
    stopper = GuardStopper(POLICY, step_key="epok")
    cut_at(stopper, [row(n, epoch=n) for n in range(1, 4)])
    named = [m for m in caplog.messages if "epok" in m]
    assert len(named) == 1
    assert "`epoch`" in named[0]


def test_steps_are_counted_in_the_step_keys_units() -> None:
    """Nested keys and whole floats are steps."""
    stopper = GuardStopper(POLICY, step_key="train/step")
    result = row(7, math.nan, train={"step": 4000.0})
    stopper("t", result)
    assert result["tune_guard/step"] == 4000


class _Hostile(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        return 1


def test_what_is_no_row_is_not_judged_and_raises_nothing() -> None:
    """Ray passes dictionaries; whoever calls the stopper by hand may not."""
    nothing: Any = None
    assert GuardStopper(POLICY)("t", nothing) is False


def test_nothing_is_raised_into_the_sweep(caplog: Any) -> None:
    """A row that cannot be judged is stamped, named once, and goes on."""
    stopper = counting(3)
    rows = [row(1), row(2, config=_Hostile(), since=1), row(3), row(4, since=1)]
    rows[3]["config"] = _Hostile()
    assert [stopper("t", r) for r in rows][:2] == [False, False]
    assert all(set(stamp_in(r)) == FIVE for r in rows)
    assert len([m for m in caplog.messages if "could not be judged" in m]) == 1


# --------------------------------------------------------------------- ends


def test_the_duplicate_last_row_is_not_judged_again() -> None:
    """A function that returned: Ray shows the same row again, with done=True."""
    stopper = counting(3)
    last = row(2)
    cut_at(stopper, [row(1), last])
    last["done"] = True
    assert stopper("t", last) is False
    assert (last["tune_guard/status"], last["tune_guard/reason"]) == (
        "healthy",
        "",
    )
    assert json.loads(last["tune_guard/detail"])["outcome"] == "completed"


def test_the_duplicate_of_an_only_row_is_no_retry() -> None:
    """It looks like a first row after a restart, but it is the same row."""
    stopper = counting(2)
    only = row(1)
    stopper("t", only)
    only["done"] = True
    stopper("t", only)
    detail = json.loads(only["tune_guard/detail"])
    assert (only["tune_guard/status"], detail["attempt"]) == ("healthy", 1)


def test_a_duplicate_of_a_trial_that_was_let_go_revives_nothing() -> None:
    """Neither its state nor its reason changes."""
    stopper = GuardStopper(POLICY)
    last = row(1, math.nan)
    assert stopper("t", last) is True
    before = copy.deepcopy(stamp_in(last))
    last["done"] = True
    assert stopper("t", last) is False
    assert stamp_in(last) == before
    assert open_trials(stopper) == 0


def test_a_trial_that_is_done_itself_is_not_cut() -> None:
    """A NaN in the row with which it ends is a warning."""
    result = row(1, math.nan, done=True)
    assert GuardStopper(POLICY)("t", result) is False
    assert result["tune_guard/status"] == "warned"
    detail = json.loads(result["tune_guard/detail"])
    assert (detail["outcome"], detail["warnings"]) == ("completed", ["non_finite@1"])


def test_a_function_that_never_reported_completed() -> None:
    """Ray shows one row with done=True and nothing in it."""
    result = {"done": True, "trial_id": "t"}
    assert GuardStopper(POLICY)("t", result) is False
    assert result["tune_guard/status"] == "healthy"


@pytest.mark.parametrize("ended_by", ["ray", "callback"])
def test_trials_that_others_ended_are_let_go(ended_by: str) -> None:
    """Ray tells a stopper nothing, but whoever ends a trial marks its last row."""
    stopper = GuardStopper(POLICY)
    for n in range(500):
        result = row(1)
        stopper(f"t{n}", result)
        if ended_by == "ray":
            result["done"] = True
        else:
            result["tune_guard/status"].ended = True
    assert open_trials(stopper) < 10


def test_a_row_that_is_kept_does_not_keep_the_monitor() -> None:
    """Ray keeps the last row of every trial."""
    stopper = GuardStopper(POLICY)
    first = row(1)
    stopper("t", first)
    stamp = stamp_of(first)
    assert stamp is not None
    assert stamp.monitor is not None
    stopper("t", row(2, math.nan))
    assert stamp.monitor is None


def test_what_is_remembered_of_ended_trials_is_bounded() -> None:
    """An attempt each, of the last thousand."""
    stopper = GuardStopper(POLICY)
    for n in range(3000):
        stopper(f"trial-{n}", row(1, math.nan))
    assert len(stopper.__getstate__()["attempts"]) <= 1024


# ----------------------------------------------------------- attempts, rewinds


def test_a_retry_from_a_checkpoint_loses_and_doubles_nothing() -> None:
    """It goes back to the state at the checkpoint: the cut comes at the same step."""
    stopper = counting(8)
    rows = [row(n, should_checkpoint=n == 3) for n in range(1, 6)]
    rows += [row(n, since=n - 3) for n in range(4, 9)]
    assert cut_at(stopper, rows) == 8


def test_a_retry_from_scratch_starts_anew() -> None:
    """Back at the first step, everything is forgotten."""
    rows = [row(n) for n in range(1, 6)] + [row(n) for n in range(1, 9)]
    assert cut_at(counting(8), rows) == 8


def test_the_callback_tells_of_checkpoints_that_rows_do_not_show() -> None:
    """A class's checkpoint: the mark on the row before is enough."""
    stopper = counting(8)
    rows = [row(n) for n in range(1, 6)]
    for result in rows:
        stopper("t", result)
        stamp = stamp_of(result)
        assert stamp is not None
        stamp.checkpointed = result["training_iteration"] == 3
    assert cut_at(stopper, [row(n, since=n - 3) for n in range(4, 9)]) == 8


def test_a_record_says_which_attempt_it_was() -> None:
    """Counted from 1, with every restart."""
    stopper = GuardStopper(POLICY)
    result = row(3, math.nan, since=1)
    cut_at(stopper, [row(1), row(2), result])
    assert json.loads(result["tune_guard/detail"])["attempt"] == 2


def test_a_trial_started_again_after_its_end_counts_on() -> None:
    """A trial that was cut and is run again is at its second attempt."""
    stopper = GuardStopper(POLICY)
    stopper("t", row(1, math.nan))
    again = row(1, math.nan)
    stopper("t", again)
    assert json.loads(again["tune_guard/detail"])["attempt"] == 2


def test_a_repeated_step_is_no_rewind() -> None:
    """Several reports an epoch, counted in epochs: the first of each counts."""
    stopper = counting(3, step_key="epoch")
    rows = [row(n, epoch=(n + 1) // 2) for n in range(1, 9)]
    assert cut_at(stopper, rows) == 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _MachineBound(CountTo):
    """Counts what one machine did."""

    id: ClassVar[str] = "machine_count"

    def start(self, context: Context) -> Detector:
        return _MachineCounter(self, context)


class _MachineCounter(Counter):
    __slots__ = ()
    machine_bound = True


def test_a_resume_starts_anew_only_what_is_bound_to_the_machine() -> None:
    """Paused at 4 and resumed elsewhere: the loss's past still counts."""
    rules = (*DEFAULT, CountTo(n=8), _MachineBound(n=6))
    policy = Policy.default("loss", "min", rules=rules)
    rows = [row(n) for n in range(1, 5)] + [row(n, since=n - 4) for n in range(5, 12)]
    stopper = GuardStopper(policy)
    assert cut_at(stopper, rows) == 8
    assert rows[7]["tune_guard/reason"] == "count_to"


def test_another_configuration_starts_everything_anew() -> None:
    """PBT gave the trial another's weights and learning rate."""
    rows = [row(n) for n in range(1, 5)]
    rows += [row(n, since=n - 4, config={"lr": 0.2}) for n in range(5, 16)]
    assert cut_at(counting(8), rows) == 12


def test_the_same_configuration_in_another_process_is_the_same() -> None:
    """Objects without a value of their own are compared by their kind."""
    config = {"lr": 0.1, "layers": (1, 2), "loss": object(), "w": np.float64(0.5)}
    other = {"w": 0.5, "loss": object(), "layers": [1, 2], "lr": 0.1}
    rows = [row(n, config=config) for n in range(1, 5)]
    rows += [row(n, since=n - 4, config=other) for n in range(5, 16)]
    assert cut_at(counting(8), rows) == 8


def test_trials_that_share_a_process_are_told_apart() -> None:
    """With reuse_actors the pid is the same: only the trial's id counts."""
    stopper = counting(8)
    cut_at(stopper, [row(n, pid=7) for n in range(1, 8)], trial="a")
    assert cut_at(stopper, [row(n, pid=7) for n in range(1, 10)], trial="b") == 8


# --------------------------------------------------------------------- state


@pytest.mark.parametrize("stored_after", range(9))
def test_a_restart_of_the_driver_changes_no_verdict(stored_after: int) -> None:
    """Stored at any row and read back, the cut comes at the same step."""
    stopper = counting(8)
    for n in range(1, stored_after + 1):
        assert cut_at(stopper, [row(n)]) == (n if n == 8 else None)
    again = reread(stopper)
    rest = [row(n) for n in range(stored_after + 1, 12)]
    assert cut_at(again, rest) == (8 if stored_after < 8 else None)


def test_a_restart_rewinds_to_the_checkpoint_too() -> None:
    """The state is of step 6; the trial goes on at 4, from its checkpoint at 3."""
    stopper = counting(8)
    cut_at(stopper, [row(n, should_checkpoint=n == 3) for n in range(1, 7)])
    again = reread(stopper)
    assert cut_at(again, [row(n, since=n - 3) for n in range(4, 10)]) == 8


def test_more_trials_than_are_kept_awake_are_judged_alike() -> None:
    """The others sleep as bytes: the cut comes at the same step for all."""
    stopper = counting(4)
    names = [f"t{n}" for n in range(700)]
    for step in range(1, 4):
        assert not any(stopper(name, row(step)) for name in names)
    assert len(stopper._awake) <= 256
    assert all(stopper(name, row(4)) for name in names)
    assert open_trials(stopper) == 0


@pytest.mark.parametrize(
    "state",
    [None, {}, [], "text", {"version": 99}, {"version": 1, "policy": b"x"}],
    ids=repr,
)
def test_a_state_that_cannot_be_read_raises_nothing(state: Any, caplog: Any) -> None:
    """Ray would start the experiment over: the guard is inert instead, and says so."""
    stopper = GuardStopper.__new__(GuardStopper)
    stopper.__setstate__(state)
    result = row(1, math.nan)
    assert stopper("t", result) is False
    assert set(stamp_in(result)) == FIVE
    stopper("t", row(2))
    (message,) = caplog.messages
    assert "the sweep goes on unguarded. Stop it, install" in message


def test_a_state_of_another_version_keeps_the_policy() -> None:
    """The trials start anew, guarded."""
    stopper = counting(3)
    cut_at(stopper, [row(1), row(2)])
    again = GuardStopper.__new__(GuardStopper)
    again.__setstate__({**stopper.__getstate__(), "version": 2})
    assert cut_at(again, [row(n) for n in range(3, 9)]) == 5


def test_a_policy_class_of_another_version_is_read_from_its_yaml() -> None:
    """What was pickled exactly may not fit any more."""
    stopper = GuardStopper(POLICY)
    state = stopper.__getstate__()
    state["policy"] = {**state["policy"], "exact": b"from the future", "package": "9"}
    again = GuardStopper.__new__(GuardStopper)
    again.__setstate__(state)
    assert cut_at(again, [row(1, math.nan)]) == 1


def test_yaml_goes_first_where_another_version_stored_the_policy() -> None:
    """A class that changed may be unpickled without an error, and be wrong."""
    stopper = GuardStopper(POLICY)
    state = stopper.__getstate__()
    wrong = Policy.default("other", "max")
    packed = {**state["policy"], "exact": pickled(wrong), "package": "9"}
    again = GuardStopper.__new__(GuardStopper)
    again.__setstate__({**state, "policy": packed})
    assert again._trials.policy == POLICY


def test_one_trial_whose_state_is_damaged_starts_anew_alone() -> None:
    """The others go on where they were."""
    stopper = counting(4)
    for name in ("a", "b"):
        cut_at(stopper, [row(1), row(2)], trial=name)
    state = stopper.__getstate__()
    state["awake"]["a"] = b"damaged"
    again = GuardStopper.__new__(GuardStopper)
    again.__setstate__(state)
    assert cut_at(again, [row(n) for n in range(3, 9)], trial="a") == 6
    assert cut_at(again, [row(n) for n in range(3, 9)], trial="b") == 4


def test_a_state_holds_what_sleeps_and_what_is_awake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both go on where they were, also when the next snapshot is read."""
    monkeypatch.setattr("tune_guard.ray.open_trials._MOST_AWAKE", 2)
    stopper = counting(4)
    for name in ("a", "b", "c"):
        cut_at(stopper, [row(1), row(2)], trial=name)
    state = stopper.__getstate__()
    assert set(state["asleep"]) | set(state["awake"]) == {"a", "b", "c"}
    assert len(state["asleep"]) == 1
    again = reread(reread(stopper))
    for name in ("a", "b", "c"):
        assert cut_at(again, [row(n) for n in range(3, 9)], trial=name) == 4


def test_a_state_of_before_where_all_slept_in_one_place_is_read() -> None:
    """An experiment is restored with a newer version than it was begun with."""
    stopper = counting(4)
    cut_at(stopper, [row(1), row(2)])
    state = stopper.__getstate__()
    trials = {n: zlib.compress(data, 1) for n, data in state.pop("awake").items()}
    del state["asleep"]
    again = GuardStopper.__new__(GuardStopper)
    again.__setstate__({**state, "trials": trials})
    assert cut_at(again, [row(n) for n in range(3, 9)]) == 4


def test_the_state_names_no_class_that_may_move() -> None:
    """Outside the policy it holds plain values, so that any version can read it."""
    stopper = counting(8)
    cut_at(stopper, [row(n) for n in range(1, 5)])
    state = {**stopper.__getstate__(), "policy": None}
    assert b"tune_guard." not in pickle.dumps(state)


def test_reading_a_state_says_nothing(caplog: Any) -> None:
    """Ray reads it three times on a restore: it has no side effects."""
    reread(GuardStopper(POLICY))
    GuardStopper.__new__(GuardStopper).__setstate__({"version": 99})
    assert not caplog.messages


def test_notices_are_not_repeated_after_a_restart(caplog: Any) -> None:
    """What was said is part of the state."""
    stopper = GuardStopper(POLICY, step_key="epok")
    stopper("t", row(1))
    reread(stopper)("t", row(2))
    assert len([m for m in caplog.messages if "epok" in m]) == 1


def test_an_open_trial_is_under_four_kibibytes() -> None:
    """Pickled, with the default rules after 300 rows."""
    stopper = GuardStopper(POLICY)
    rows = [row(n, 1 / n, grad_norm=1.0 + n % 3, lr=0.1) for n in range(1, 301)]
    assert cut_at(stopper, rows) is None
    (trial,) = stopper._awake.values()
    assert isinstance(trial, OpenTrial)
    assert len(trial.packed()) < 4096


# --------------------------------------------------------------------- stamps


def test_a_copied_stamp_is_a_plain_text() -> None:
    """Whatever Ray sends to a worker or stores carries no monitor along."""
    stamp = Stamp("running")
    stamp.monitor = object()  # type: ignore[assignment]
    for copied in (copy.deepcopy(stamp), reread(stamp)):
        assert type(copied) is str
        assert copied == "running"


def test_blame_and_tier_are_not_needed_to_read_a_row() -> None:
    """The stamp of a cut holds plain text and a number only."""
    result = row(1, math.nan)
    GuardStopper(POLICY)("t", result)
    kinds = {type(value) for value in reread(stamp_in(result)).values()}
    assert kinds == {str, int}
    assert result["tune_guard/blame"] == str(Blame.CONFIG)
    assert Tier.FATAL not in stamp_in(result).values()
