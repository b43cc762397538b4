"""What optuna-dashboard itself shows of a cut trial: column, note and artifact."""

from __future__ import annotations

import csv
import io
import json
import math
import threading
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen
from wsgiref.simple_server import WSGIRequestHandler, make_server

import optuna
import pytest
from optuna.artifacts import FileSystemArtifactStore

from tune_guard import Evidence
from tune_guard.evidence.artifacts import PREFIX
from tune_guard.optuna import GuardPruner
from tune_guard.record import DETAIL, REASON, STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


class Silent(WSGIRequestHandler):
    """Answers and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Callable[[str], bytes]]]:
    """A study of a sick and a healthy trial, and what the dashboard answers of it."""
    (tmp_path / "artifacts").mkdir()
    store = FileSystemArtifactStore(str(tmp_path / "artifacts"))
    url = f"sqlite:///{tmp_path / 'study.db'}"
    guard = GuardPruner(evidence=Evidence(artifact_store=store), note=True)
    study = optuna.create_study(storage=url, study_name="sweep", pruner=guard)
    study.optimize(objective, n_trials=2)

    from optuna_dashboard import wsgi

    app = wsgi(url, artifact_store=store)
    with make_server("127.0.0.1", 0, app, handler_class=Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def get(path: str) -> bytes:
            place = f"http://127.0.0.1:{server.server_port}"
            with urlopen(place + path, timeout=60) as answer:  # noqa: S310 - loopback
                content: bytes = answer.read()
            return content

        yield url, get
        server.shutdown()
        thread.join()


def objective(trial: optuna.Trial) -> float:
    """Meet a NaN at step 2 in the first trial, and none in the second."""
    for step in range(4):
        sick = trial.number == 0 and step == 2
        trial.report(math.nan if sick else 1 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return 0.25


def test_a_cut_trial_has_its_reason_as_column_note_and_artifact(
    served: tuple[str, Callable[[str], bytes]],
) -> None:
    """All three through the dashboard's own API, the bundle downloaded."""
    url, get = served
    answer: dict[str, Any] = json.loads(get("/api/studies/1?after=0"))
    sick, healthy = answer["trials"]

    assert REASON in [column["key"] for column in answer["union_user_attrs"]]
    cells = {cell["key"]: cell["value"] for cell in sick["user_attrs"]}
    assert (cells[REASON], cells[STEP]) == ("non_finite", "2")
    assert json.loads(cells[DETAIL])["rule"] == "non_finite"
    assert healthy["user_attrs"] == []

    assert sick["note"]["body"].startswith(
        "**non\\_finite** at step 2, blame: config\n\n"
    )
    assert healthy["note"]["body"] == ""

    (artifact,) = sick["artifacts"]
    assert artifact["filename"].endswith("-non_finite.zip")
    assert artifact["artifact_id"] in sick["note"]["body"]
    trial = optuna.load_study(study_name="sweep", storage=url).trials[0]
    assert trial.user_attrs[DETAIL]["evidence"] == PREFIX + artifact["artifact_id"]
    bundle = get(f"/artifacts/1/{sick['trial_id']}/{artifact['artifact_id']}")
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        assert "manifest.json" in archive.namelist()


def test_the_table_that_it_exports_has_the_reason(
    served: tuple[str, Callable[[str], bytes]],
) -> None:
    """In a column of its own."""
    _, get = served
    sick, healthy = csv.DictReader(io.StringIO(get("/csv/1").decode()))
    assert sick[f"UserAttribute {REASON}"] == "non_finite"
    assert healthy[f"UserAttribute {REASON}"] == ""


def test_a_note_that_was_there_stays(tmp_path: Path) -> None:
    """The reason comes below it, read back by the dashboard's own function."""
    from optuna_dashboard import get_note, save_note

    study = optuna.create_study(
        storage=f"sqlite:///{tmp_path / 'study.db'}", pruner=GuardPruner(note=True)
    )
    trial = study.ask()
    save_note(trial, "x" * 3000)
    trial.report(math.nan, 0)
    assert trial.should_prune()
    note = get_note(trial)
    assert note.startswith("x" * 3000 + "\n\n**non\\_finite** at step 0")
