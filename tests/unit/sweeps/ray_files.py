"""Hand-written Ray directories: one quirk each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tune_guard.record import StopRecord
from tune_guard.sweeps import load_sweep

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class RayExperiment:
    """Writes the files that Ray writes, as text, so that they can be broken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def trial(
        self,
        name: str,
        rows: Iterable[dict[str, Any] | str] | None = None,
        params: dict[str, Any] | None = None,
        **files: str,
    ) -> Path:
        """Write a trial: rows that are text are written as they are."""
        folder = self.path / name
        folder.mkdir(parents=True)
        if rows is not None:
            lines = [r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows]
            (folder / "result.json").write_text("".join(lines), encoding="utf-8")
        if params is not None:
            (folder / "params.json").write_text(json.dumps(params), encoding="utf-8")
        for stem, text in files.items():
            suffix = {"progress": ".csv", "error": ".txt"}.get(stem, ".json")
            (folder / f"{stem}{suffix}").write_text(text, encoding="utf-8")
        return folder

    def state(
        self, *trials: dict[str, Any], session: str = "2026-01-01_00-00-00", **more: Any
    ) -> Path:
        """Write an experiment state as Ray does since 2.5: pairs of JSON texts."""
        pairs = [[json.dumps(t), json.dumps(t.get("metadata", {}))] for t in trials]
        content = {"trial_data": pairs, "runner_data": more, "stats": {}}
        path = self.path / f"experiment_state-{session}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return path


def row(step: int, **values: Any) -> dict[str, Any]:
    """Return a row as Ray writes it: each step takes two seconds."""
    return {
        **values,
        "training_iteration": step,
        "trial_id": "t0",
        "done": False,
        "time_total_s": 2.0 * step,
        "time_since_restore": 2.0 * step,
        "iterations_since_restore": step,
        "timestamp": 1_700_000_000 + 2 * step,
        "hostname": "host",
        "config": {"lr": 0.1},
    }


def stamped(step: int, reason: str = "", **values: Any) -> dict[str, Any]:
    """Return a row that the guard has stamped; with a reason, the cut."""
    detail = json.dumps({"schema": 1, "outcome": "guard", "metric": "loss"})
    stamp = {
        "tune_guard/status": "stopped" if reason else "running",
        "tune_guard/reason": reason,
        "tune_guard/step": step if reason else None,
        "tune_guard/blame": "config" if reason else "",
        "tune_guard/detail": detail if reason else "",
    }
    return row(step, **stamp, **values)


def known(
    trial_id: str = "t0", status: str = "TERMINATED", **more: Any
) -> dict[str, Any]:
    """Return what the state says about a trial."""
    return {
        "trial_id": trial_id,
        "status": status,
        "relative_logdir": f"a_{trial_id}",
        **more,
    }


def ended(experiment: RayExperiment, *rows: dict[str, Any], **fields: Any) -> Any:
    """Load one trial of these rows and this state."""
    experiment.trial("a_t0", rows)
    experiment.state(known(**fields))
    return load_sweep(experiment.path).trials[0]


def record_text(**fields: Any) -> str:
    """Return the text of a trial's tune_guard.json."""
    return json.dumps(StopRecord(**fields).metadata())
