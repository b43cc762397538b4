"""Public reports of guards that failed, retold as cases, each with its sources."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases.run import load_cases, outcomes_of, run_case
from tests.cases.staging import ROOT
from tests.cases.stream import Outcome

FILE = Path(__file__).with_name("cases.jsonl")
CASES = {case["id"]: case for case in load_cases(FILE)}


def only(case_id: str, **changes: Any) -> Outcome:
    """Run a case, with changes, and return what became of its one trial."""
    (outcome,) = outcomes_of({**CASES[case_id], **changes}).values()
    return outcome


def stream(config: dict[str, Any], *metrics: dict[str, Any], **expected: Any) -> Any:
    """Return a case whose rows are steps from 0."""
    rows = [{"step": i, "metrics": row} for i, row in enumerate(metrics)]
    return {"id": "x", "guard_config": config, "inputs": rows, "expected": expected}


def series(key: str, *values: Any) -> list[dict[str, Any]]:
    """Return rows of one key."""
    return [{key: value} for value in values]


# ------------------------------------------------------------- the handed cases


@pytest.mark.parametrize("case_id", CASES)
def test_a_case_ends_as_expected(case_id: str) -> None:
    """At the exact step, for the expected reason, with every option understood."""
    result = run_case(CASES[case_id])
    assert (result.status, result.notes) == ("pass", [])


def test_every_case_has_its_sources() -> None:
    """Where it was seen, and why the expected outcome is right."""
    assert all(case["source"] and case["why"] for case in CASES.values())


def test_rules_without_telemetry_are_named_once() -> None:
    """Trial B of the placement case reports none: one notice."""
    outcomes = outcomes_of(CASES["TG-stopper-on-driver-without-gpu"])
    (message,) = outcomes["B"].notices.values()
    assert "Inactive" in message
    assert "thermal_throttle" in message


def test_an_unusable_list_is_named_once() -> None:
    """One warning, and no exception at any step."""
    notices = only("TG-nested-key-odd-types").notices
    assert list(notices) == ["unusable:evaluation/score"]


def test_repeated_steps_are_named_once() -> None:
    """One warning about all of them."""
    assert list(only("TG-optuna-same-step-asked-thrice").notices) == ["repeated"]


def test_a_masked_nan_does_not_rank_best() -> None:
    """The zeros beside NaN norms are no readings: the best is 1.9."""
    outcome = only("TG-loss-zero-grad-nan")
    assert (outcome.metric, outcome.best) == ("grad_norm", 1.9)


def test_a_missing_mode_is_asked_for_with_the_metric() -> None:
    """The message names the metric and both modes."""
    message = only("TG-mode-must-not-be-guessed").message
    assert "val_recall" in message
    assert "'min' or 'max'" in message


def test_the_hosts_direction_is_used_where_the_config_has_none() -> None:
    """Maximised, all five rising steps go on; minimised, the third is cut."""
    config = dict(CASES["TG-mode-must-not-be-guessed"]["guard_config"])
    config["host_direction"] = "maximize"
    outcome = only("TG-mode-must-not-be-guessed", guard_config=config)
    assert str(outcome) == "continue"
    config["host_direction"] = "minimize"
    outcome = only("TG-mode-must-not-be-guessed", guard_config=config)
    assert str(outcome) == "stop plateau @2"


# ------------------------------------------------------- other cases of the kinds

NAN, INF = {"$float": "nan"}, {"$float": "inf"}
SETTLED = [1.0] * 12


@pytest.mark.parametrize(
    ("config", "rows", "got"),
    [
        pytest.param(
            {"explosion": {"metric": "gnorm", "factor": 10, "consecutive": 2}},
            series("gnorm", *SETTLED, 11.0, 1.0, 11.0, 10.0, 11.0, 12.0),
            "stop gradient_explosion @17",
            id="explosion",
        ),
        pytest.param(
            {"gradient_explosion": {"max_norm": 100, "consecutive": 1}},
            series("grad_norm", 1.0, 99.0, 100.0, 101.0),
            "stop gradient_explosion @3",
            id="max-norm",
        ),
        pytest.param(
            {"spike": {"metric": "loss", "factor": 3, "window": 4, "consecutive": 1}},
            series("loss", *SETTLED, 3.0, 3.1),
            "stop divergence @13",
            id="spike",
        ),
        pytest.param(
            {"plateau": {"metric": "acc", "mode": "max", "patience": 2}},
            series("acc", 0.5, 0.5, {"$numpy_float32": 0.5}),
            "stop plateau @2",
            id="plateau",
        ),
        pytest.param(
            {
                "plateau": {"metric": "a", "mode": "min", "patience": 2},
                "non_finite": {"metrics": ["a", "b"], "consecutive": 2},
                "warmup_steps": 10,
            },
            [{"a": 1.0, "b": 1.0}, {"a": NAN, "b": NAN}, {"a": 1.0, "b": INF}],
            "stop non_finite @2",
            id="non-finite-has-no-warm-up",
        ),
        pytest.param(
            {
                "non_finite": {"metrics": ["loss"]},
                "amp": {"skipped": "skip", "overflow_consecutive_limit": 3},
            },
            [{"loss": 1.0, "skip": skip} for skip in (1, 1, 0, 1, 1, True)],
            "stop amp_scale_collapse @5",
            id="amp",
        ),
        pytest.param(
            {"amp": {"loss_scale": "scale", "min_scale": 1}},
            series("scale", 4.0, 2.0, 1.0, 0.5),
            "stop amp_scale_collapse @3",
            id="amp-scale",
        ),
        pytest.param(
            {"lr_floor": {"key": "lr", "floor": 1e-6, "consecutive": 2}},
            series("lr", [0.0, 0.0], [0.0, 1e-3], [1e-6, 0.0], [0.0, 1e-6]),
            "stop lr_floor @3",
            id="lr-floor",
        ),
        pytest.param(
            {"gpu_thermal": {"consecutive": 2}},
            series("gpu_reasons", 0x20, None, 0x44, 0x4),
            "stop thermal_throttle @2",
            id="unknown-telemetry-is-passed-over",
        ),
        pytest.param(
            {"gpu_thermal": {"consecutive": 5}, "on_gpu_lost": "stop"},
            [{"gpu_reasons": 0}, {"gpu_lost": False}, {"gpu_lost": True}],
            "stop gpu_fault @2",
            id="gpu-lost",
        ),
        pytest.param(
            {"throughput_collapse": {"key": "t", "consecutive": 1, "min_history": 2}},
            series("t", 9.0, 1.0, 1.0, 1.0, 3.0),
            "stop slow_step @4",
            id="throughput",
        ),
        pytest.param(  # https://github.com/NVIDIA/nvidia-settings/issues/80
            {"gpu_thermal": {"consecutive": 2}},
            series("clocks_throttle_reasons.active", "0x04", "0x20", "[N/A]", "0x60"),
            "stop thermal_throttle @3",
            id="bits-as-nvidia-smi-prints-them",
        ),
        pytest.param(  # https://github.com/wookayin/gpustat/issues/135
            {"gpu_thermal": {"consecutive": 2}},
            series("gpu", {"clocks_event_reasons": 32}, {"clocks_event_reasons": 64}),
            "stop thermal_throttle @1",
            id="telemetry-in-a-folder",
        ),
        pytest.param(  # https://github.com/keras-team/tf-keras/issues/253
            {"plateau": {"metric": "auc", "mode": "Maximise", "patience": 1}},
            series("auc", 0.5, 0.6, 0.6),
            "stop plateau @2",
            id="direction-in-other-words",
        ),
        pytest.param(  # https://github.com/keras-team/keras/pull/17022
            {
                "plateau": {
                    "metric": "v",
                    "mode": "min",
                    "patience": 2,
                    "start_from_epoch": 2,
                }
            },
            series("v", 0.1, 0.1, 1.0, 1.0, 1.0),
            "stop plateau @4",
            id="warm-up-as-keras-names-it",
        ),
        pytest.param(
            {"amp": {"overflow_limit": 2}},
            series("step_skipped", True, True),
            "stop amp_scale_collapse @1",
            id="amp-without-keys",
        ),
        pytest.param(
            {"non_finite": {"metrics": ["grad_norm", "weight_norm"]}},
            [{"grad_norm": 1.0, "weight_norm": 1.0}, {"grad_norm": NAN}],
            "stop non_finite @1",
            id="two-norms",
        ),
        pytest.param(
            {"divergence": {"metric": "normalized_loss", "consecutive": 1}},
            series("normalized_loss", *SETTLED, 6.0),
            "stop divergence @12",
            id="a-loss-named-like-a-norm",
        ),
        pytest.param(
            {"divergence": {"metric": "batch_norm_loss", "consecutive": 1}},
            series("batch_norm_loss", *SETTLED, 6.0),
            "stop divergence @12",
            id="a-loss-named-after-a-norm",
        ),
        pytest.param(
            {"divergence": {"consecutive": 1, "direction": "minimize"}},
            series("loss", *SETTLED, 6.0),
            "stop divergence @12",
            id="divergence-with-a-direction",
        ),
        pytest.param(  # https://github.com/learning-at-home/hivemind/issues/509
            {"gpu_thermal": {"consecutive": 5}, "on_gpu_lost": "continue"},
            [{"gpu_reasons": 0}, {"gpu_lost": True}],
            "continue",
            id="a-trigger-that-is-off",
        ),
        pytest.param(
            {"on_gpu_lost": "warn"},
            series("gpu_lost", True),
            "continue",
            id="a-trigger-that-warns",
        ),
        pytest.param(
            {
                "on_gpu_lost": "warn",
                "plateau": {"metric": "a", "mode": "min", "patience": 1},
                "actions": {"plateau": "warn"},
            },
            [{"a": 1.0}, {"a": 1.0}, {"gpu_lost": True}],
            "continue",
            id="two-that-warn-each-said-in-its-way",
        ),
    ],
)
def test_another_case_of_a_kind(
    config: dict[str, Any], rows: list[dict[str, Any]], got: str
) -> None:
    """Options under their other names reach the rules, and none is left over."""
    result = run_case(stream(config, *rows))
    assert (result.got, result.notes) == (got, [])


@pytest.mark.parametrize(
    ("event", "got"),
    [
        ("guard state saved; new process; state loaded", "stop plateau @3"),
        ("checkpoint taken", "stop plateau @3"),
        ("trial paused and resumed", "stop plateau @3"),
        ("PBT exploit: config changed", "continue"),
        ("duplicate of the last result", "stop plateau @3"),
    ],
)
def test_an_event_between_two_rows(event: str, got: str) -> None:
    """Patience goes on over restarts and pauses, and anew with a new config."""
    case = stream(
        {"plateau": {"metric": "loss", "mode": "min", "patience": 3}},
        *series("loss", 0.5, 0.5, 0.5, 0.5),
    )
    case["inputs"].insert(3, {"event": event})
    result = run_case(case)
    assert (result.got, result.notes) == (got, [])


def test_a_retry_takes_its_steps_again() -> None:
    """A rewind to the checkpoint forgets what came after it."""
    case = stream(
        {"plateau": {"metric": "loss", "mode": "min", "patience": 2}},
        *series("loss", 1.0, 0.9, 0.9),
    )
    case["inputs"].insert(2, {"event": "checkpoint taken"})
    case["inputs"] += [
        {"event": "worker died; retry from the checkpoint"},
        {"step": 2, "metrics": {"loss": 0.8}},
        {"step": 3, "metrics": {"loss": 0.8}},
        {"step": 4, "metrics": {"loss": 0.8}},
    ]
    assert run_case(case).got == "stop plateau @4"


def test_lines_of_a_file_are_read_by_our_readers() -> None:
    """NaN tokens are numbers; a torn line is said and left out."""
    case = stream({"non_finite": {"metrics": ["loss"], "consecutive": 2}})
    case["inputs"] = [
        {"raw_line": '{"training_iteration": 1, "loss": NaN}'},
        {"raw_line": '{"training_iteration": 2, "lo'},
        {"raw_line": '{"training_iteration": 3, "loss": Infinity}'},
    ]
    result = run_case(case)
    assert result.got == "stop non_finite @3"
    assert result.notes == ["line 2: torn line left out"]


def test_lines_of_a_table_are_read_by_our_readers() -> None:
    """The first line is the header; an empty cell is no value."""
    case = stream({"non_finite": {"metrics": ["loss"]}})
    lines = ["training_iteration,loss", "1,0.5", "2,", "3,nan"]
    case["inputs"] = [{"raw_line": line} for line in lines]
    assert run_case(case).got == "stop non_finite @3"


# ------------------------------------------------- other surroundings of the kinds


def staged(config: dict[str, Any], **environment: Any) -> str:
    """Return what became of a case with surroundings, and what it broke."""
    case = {"id": "x", "guard_config": config, "expected": {}}
    result = run_case({**case, "inputs": {"environment": environment}})
    return "; ".join([result.got, *result.notes])


@pytest.mark.parametrize(
    ("samples", "got"),
    [
        (["ok", "NVMLError_GpuIsLost"], "stop gpu_fault @1"),
        # https://github.com/leptonai/gpud/pull/1133
        (["ok", "NVMLError_ResetRequired on every query"], "stop gpu_fault @1"),
        (["ok", "NVMLError_Timeout", "NVMLError_Unknown", "ok"], "continue"),
        (["ok", *["NVMLError_NotSupported"] * 5], "continue"),
    ],
)
def test_an_answer_of_the_gpu(samples: list[str], got: str) -> None:
    """Only what a reset alone brings back is a fault."""
    config = {"gpu_thermal": {"consecutive": 5}, "on_gpu_lost": "stop"}
    assert staged(config, samples=samples) == got


def test_trials_of_one_stopper_report_what_json_has_no_word_for() -> None:
    """NaN in one of two, and telemetry under the names of a row."""
    rows = [{"step": i, "metrics": {"loss": x}} for i, x in enumerate((1.0, NAN))]
    hot = [{"step": i, "metrics": {"throttle_reasons": 32}} for i in range(3)]
    config = {"non_finite": {"metrics": ["loss"]}, "gpu_thermal": {"consecutive": 2}}
    got = staged(config, driver="x", trial_A_results=rows, trial_B_results=hot)
    assert got == "A: stop non_finite @1, B: stop thermal_throttle @1"


def test_a_replayed_trial_holds_a_nan() -> None:
    """As Ray writes it: a bare token."""
    rows = [{"training_iteration": i, "loss": x} for i, x in ((1, 1.0), (2, NAN))]
    config = {"non_finite": {"metrics": ["loss"]}}
    assert staged(config, **{"result.json": rows}) == "stop non_finite @2"


def test_the_first_of_several_visible_devices_is_watched() -> None:
    """By index or by UUID."""
    devices = ["GPU-aaaa1111-...", "GPU-bbbb2222-..."]
    values = {"a": "1,0", "b": "GPU-bbbb,GPU-aaaa", "c": "9,0", "d": "-1"}
    config = {"gpu_thermal": {"consecutive": 5}}
    assert staged(config, nvml_devices=devices, values=values) == "continue"


# -------------------------------------------------------------------- the runner


def test_an_unknown_option_is_printed() -> None:
    """It is never dropped in silence."""
    plateau = {"metric": "a", "mode": "min", "patience": 2, "cooldown": 3}
    result = run_case(stream({"plateau": plateau, "hype": 1}, *series("a", 1.0)))
    assert "unknown option plateau.cooldown=3" in str(result)
    assert "unknown option guard_config.hype=1" in str(result)


@pytest.mark.parametrize("name", ["mode", "direction"])
def test_a_divergence_of_what_is_maximised_is_printed(name: str) -> None:
    """The rule takes what rises for what runs away."""
    config = {"divergence": {"metric": "loss", name: "maximize"}}
    result = run_case(stream(config, *series("loss", 1.0), verdict="continue"))
    assert result.notes == ["divergence upwards only: direction 'max'"]


def test_two_actions_for_one_rule_are_printed() -> None:
    """The trigger's own counts."""
    config = {"on_gpu_lost": "warn", "actions": {"gpu_fault": "stop"}}
    result = run_case(stream(config, *series("gpu_lost", True), verdict="warn"))
    assert (result.got, result.notes) == (
        "continue",
        ["second action 'stop' for gpu_fault"],
    )


def test_surroundings_that_cannot_be_staged_are_said() -> None:
    """And the case counts as neither passed nor failed."""
    case = {"id": "x", "inputs": {"environment": {"moon": "full"}}, "expected": {}}
    result = run_case({**case, "guard_config": {"non_finite": {}}})
    assert result.status == "not staged: needs a staging of moon"


@pytest.mark.parametrize(
    ("config", "need"),
    [
        ({"plateau": [{"metric": "a"}, {"metric": "b"}]}, "a meaning of plateau"),
        ({"throughput": {"key": "samples_per_sec"}}, "a rule on a rate"),
        ({"plateau": 0}, "a meaning of plateau: 0"),
    ],
)
def test_what_the_library_has_no_rule_for_is_said(
    config: dict[str, Any], need: str
) -> None:
    """A rate that is read as a time would pass unwatched."""
    result = run_case(stream(config, *series("a", 1.0), verdict="continue"))
    assert result.status.startswith(f"not staged: needs {need}")


@pytest.mark.parametrize("key", ["time/step", "sec_per_step", "timers/step_time_s"])
def test_a_time_per_step_is_no_rate(key: str) -> None:
    """Though a slash and an s stand in its name."""
    case = stream({"slow_step": {"key": key}}, *series(key, 1.0))
    assert run_case(case).got == "continue"


def test_a_row_may_hold_its_numbers_itself() -> None:
    """As a line of Ray's result.json does."""
    case = stream({"plateau": {"metric": "loss", "mode": "min", "patience": 1}})
    case["inputs"] = [{"training_iteration": i, "loss": 1.0} for i in (1, 2)]
    result = run_case(case)
    assert (result.got, result.notes) == ("stop plateau @2", [])


@pytest.mark.parametrize("hot", [{"gpu_reasons": 32}, {"metrics": {"gpu_reasons": 32}}])
def test_the_time_of_a_row_is_the_trials_clock(hot: dict[str, Any]) -> None:
    """Four samples stand for 60 seconds, where one for a third of it at most."""
    case = stream({"gpu_thermal": {"window_s": 60}})
    case["inputs"] = [{"step": i, "time_s": 20.0 * i, **hot} for i in range(6)]
    assert run_case(case).got == "stop thermal_throttle @3"


def test_a_config_without_a_known_trigger_is_not_staged() -> None:
    """It must not pass because nothing watched."""
    result = run_case(stream({"vibes": {}}, *series("a", 1.0), verdict="continue"))
    assert result.status.startswith("not staged: needs a rule")


@pytest.mark.parametrize(
    ("expected", "note"),
    [
        ({"verdict": "continue"}, "verdict stop"),
        ({"verdict": "stop", "reason": "divergence"}, "reason plateau"),
        ({"verdict": "stop", "at_step": 3}, "step 2"),
        ({"verdict": "stop", "best": 0.5}, "best 1.0"),
        ({"verdict": "stop", "metric": "b"}, "metric a"),
        ({"verdict": "warn"}, "no warning"),
        ({"verdict": "config_error"}, "verdict stop"),
        ({"per_trial": {"A": {"verdict": "stop"}}}, "no trial A"),
    ],
)
def test_a_difference_fails_the_case(expected: dict[str, Any], note: str) -> None:
    """In whatever was expected."""
    config = {"plateau": {"metric": "a", "mode": "min", "patience": 2}}
    result = run_case(stream(config, *series("a", 1.0, 1.0, 1.0), **expected))
    assert result.status == "fail"
    assert note in result.notes


def test_a_warning_is_told_from_a_stop() -> None:
    """With the action `warn`, a rule that triggers does not cut."""
    config = {"plateau": {"metric": "a", "mode": "min", "patience": 1}}
    config["actions"] = {"plateau": "warn"}
    result = run_case(stream(config, *series("a", 1.0, 1.0), verdict="warn"))
    assert (result.status, result.got) == ("pass", "continue")


def run_file(file: Path) -> subprocess.CompletedProcess[str]:
    """Run the module as a user does."""
    command = [sys.executable, "-m", "tests.cases.run", str(file)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_a_file_with_a_failing_case_exits_1(tmp_path: Path) -> None:
    """One line a case, in order, and a summary."""
    config = {"non_finite": {"metrics": ["a"]}}
    good = stream(config, *series("a", math.pi), verdict="continue")
    bad = stream(config, *series("a", NAN), verdict="continue")
    odd = stream(config, *series("a", {"$quaternion": 1}), verdict="continue")
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(json.dumps, [good, bad, odd])) + "\n\n")
    done = run_file(file)
    lines = done.stdout.splitlines()
    assert lines == [
        "x  expected: continue  got: continue  pass",
        "x  expected: continue  got: stop non_finite @0  fail (verdict stop)",
        "x  expected: continue  got: -  not staged: needs unknown encoding $quaternion",
        "3 cases: 1 pass, 1 fail, 1 not staged",
    ]
    assert done.returncode == 1


def test_a_file_whose_cases_pass_exits_0(tmp_path: Path) -> None:
    """Cases that cannot be staged do not fail it."""
    file = tmp_path / "cases.jsonl"
    case = stream({"non_finite": {"metrics": ["a"]}}, verdict="continue")
    file.write_text(json.dumps(case) + "\n")
    assert run_file(file).returncode == 0


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    """Told from a failing case."""
    assert run_file(tmp_path / "none.jsonl").returncode == 2
