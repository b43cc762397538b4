"""What TensorBoard itself reads of the runs that were written."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

from tests.integration.notify.events import SWEEP, completed, nan
from tune_guard.dispatcher import Dispatcher
from tune_guard.events import HealthSample
from tune_guard.export.tensorboard import MOST_OPEN, TensorBoard

TEXT = "tune_guard/reason/text_summary"


def load(folder: Path) -> EventAccumulator:
    """Read a run as TensorBoard does."""
    return EventAccumulator(str(folder)).Reload()


def text_of(events: EventAccumulator) -> str:
    """Return the text of a run's reason."""
    (event,) = events.Tensors(TEXT)
    text: str = event.tensor_proto.string_val[0].decode()
    return text


def columns_of(events: EventAccumulator) -> dict[str, Any]:
    """Return the columns of a run in the table of hyperparameters."""
    tags = events.PluginTagToContent("hparams")
    content = tags[metadata.SESSION_START_INFO_TAG]
    info = metadata.parse_session_start_info_plugin_data(content)
    return {
        name: getattr(value, value.WhichOneof("kind"))
        for name, value in info.hparams.items()
    }


def write(folder: Path, *events: Any) -> None:
    """Let a listener write events and close."""
    board = TensorBoard(folder)
    for event in events:
        board.handle(event)
    board.close(1.0)


def test_the_reason_is_text_and_a_column(tmp_path: Path) -> None:
    """With it outcome, blame, and the hyperparameters as they are."""
    params = {
        "lr": 0.25,
        "layers": 3,
        "flag": True,
        "optimizer": "adam",
        "dims": [1, 2],
    }
    write(tmp_path, nan("train_1", params=params))
    events = load(tmp_path / SWEEP / "train_1")
    text = text_of(events)
    assert "reason: non_finite" in text
    assert "loss: NaN" in text
    assert "Lower the learning rate" in text
    assert columns_of(events) == {
        "lr": 0.25,
        "layers": 3.0,
        "flag": True,
        "optimizer": "adam",
        "dims": "[1, 2]",
        "tune_guard/reason": "non_finite",
        "tune_guard/outcome": "guard",
        "tune_guard/blame": "config",
    }
    assert [(s.step, s.value) for s in events.Scalars("tune_guard/step")] == [(3, 3.0)]


def test_a_trial_that_completed_has_a_column_too(tmp_path: Path) -> None:
    """So that the table can be filtered."""
    write(tmp_path, completed("train_1", params={"lr": 0.1}))
    columns = columns_of(load(tmp_path / SWEEP / "train_1"))
    assert columns["tune_guard/reason"] == "completed"


def test_numbers_that_are_not_finite_are_texts_in_the_table(tmp_path: Path) -> None:
    """TensorBoard's own table cannot hold them."""
    params = {"a": float("nan"), "b": float("-inf")}
    write(tmp_path, nan("train_1", params=params))
    columns = columns_of(load(tmp_path / SWEEP / "train_1"))
    assert (columns["a"], columns["b"]) == ("NaN", "-Infinity")


def test_margins_and_gpu_health_are_curves(tmp_path: Path) -> None:
    """At the steps of the reports; what is not finite is left out, not raised."""
    write(
        tmp_path,
        *(
            HealthSample(
                sweep=SWEEP,
                trial="train_1",
                step=step,
                gpu={"gpu_temperature_celsius": 70.0 + step, "gpu_xid": float("nan")},
                margins={"plateau": step / 4, "divergence": float("inf")},
            )
            for step in range(1, 5)
        ),
    )
    events = load(tmp_path / SWEEP / "train_1")
    heat = events.Scalars("tune_guard/gpu/temperature_celsius")
    assert [(s.step, s.value) for s in heat] == [
        (1, 71.0),
        (2, 72.0),
        (3, 73.0),
        (4, 74.0),
    ]
    margins = events.Scalars("tune_guard/margin/plateau")
    assert [s.value for s in margins] == [0.25, 0.5, 0.75, 1.0]
    assert "tune_guard/margin/divergence" not in events.Tags()["scalars"]


def test_markup_in_a_reason_is_only_text(tmp_path: Path) -> None:
    """Every line lies in a block of code, where Markdown and HTML mean nothing."""
    bad = "<script>alert(1)</script>\n# big\n[x](http://evil.example)"
    write(tmp_path, nan("train_1", message=bad, metric=bad, host=bad))
    lines = text_of(load(tmp_path / SWEEP / "train_1")).split("\n")
    assert all(line.startswith("    ") for line in lines)


def test_a_name_of_a_trial_cannot_leave_the_folder(tmp_path: Path) -> None:
    """Nor hide in it; two names never share a run."""
    names = ["../../evil", "/etc/x", "..", ".", "", "a/b", "a_b", "x" * 400, "x" * 401]
    write(tmp_path / "runs", *(nan(name) for name in names))
    runs = {path.parent for path in tmp_path.rglob("events*")}
    assert {run.parent for run in runs} == {tmp_path / "runs" / SWEEP}
    assert len(runs) == len(names)


def test_a_thousand_trials_at_once_keep_few_files_open(tmp_path: Path) -> None:
    """Runs are closed and opened again; every curve is whole."""
    board = TensorBoard(tmp_path)
    count = MOST_OPEN + 20
    for step in (1, 2):
        for number in range(count):
            sample = HealthSample(
                sweep=SWEEP, trial=f"t{number}", step=step, margins={"plateau": 0.5}
            )
            board.handle(sample)
            assert len(board._open) <= MOST_OPEN
    board.close(1.0)
    for number in (0, count - 1):
        curve = load(tmp_path / SWEEP / f"t{number}").Scalars(
            "tune_guard/margin/plateau"
        )
        assert [s.step for s in curve] == [1, 2]


def test_a_writer_that_raises_is_said_once_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As one that refuses a NaN; the record was stored before."""

    def refuse(*_: object, **__: object) -> None:
        msg = "NaN is not a valid input"
        raise ValueError(msg)

    monkeypatch.setattr("tensorboardX.summary.text", refuse)
    caplog.set_level(logging.WARNING)
    dispatcher = Dispatcher(lambda: TensorBoard(tmp_path))
    for number in range(5):
        dispatcher.put(nan(f"train_{number}"))
    dispatcher.close()
    said = [
        r.message for r in caplog.records if "could not take a TrialEnded" in r.message
    ]
    assert len(said) == 1
