"""Optuna studies of every storage and age, read without changing anything."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import pickle
import shutil
import sqlite3
import sys
import uuid
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
import pytest
import sqlalchemy as sa
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalRedisBackend

from tune_guard import SourceError
from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import INTERRUPTED, UNKNOWN, Sweep, load_sweep, load_sweeps
from tune_guard.sweeps.compare import compare
from tune_guard.sweeps.objective import resolve
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optuna.storages import BaseStorage

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

OLD = Path(__file__).parent / "old_studies"
optuna.logging.set_verbosity(optuna.logging.ERROR)


def cut(step: int = 2, **fields: Any) -> StopRecord:
    """Return the record of a trial that the guard cut."""
    known: dict[str, Any] = {
        "reason": "non_finite",
        "outcome": Outcome.GUARD,
        "blame": Blame.CONFIG,
        "objective": "val_loss",
        "mode": "min",
    }
    return StopRecord(step=step, **{**known, **fields})


def fill(storage: BaseStorage, name: str = "study") -> optuna.Study:
    """Run one trial of every end: completed, cut, pruned, failed, left running."""
    study = optuna.create_study(
        storage=storage, study_name=name, sampler=optuna.samplers.RandomSampler(seed=1)
    )
    values = [[3.0, 2.0, 1.5], [3.0, 4.0, math.nan], [9.0], [8.0, math.inf], [7.0]]
    for number, readings in enumerate(values):
        trial = study.ask({"lr": optuna.distributions.FloatDistribution(0.0, 1.0)})
        for step, value in enumerate(readings):
            trial.report(value, step)
        if number == 0:
            study.tell(trial, 1.25)
        elif number == 1:
            for key, value in cut(trial="1").metadata().items():
                trial.set_user_attr(key, value)
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        elif number == 2:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        elif number == 3:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
    study.enqueue_trial({"lr": 0.5})
    return study


def check(sweep: Any, name: str = "study") -> None:
    """Check that a sweep is what :func:`fill` wrote."""
    assert sweep.name == name
    found = [(t.id, t.state, t.outcome, t.reason, t.steps_run) for t in sweep.trials]
    assert found == [
        ("0", "COMPLETE", Outcome.COMPLETED, "", 3),
        ("1", "PRUNED", Outcome.GUARD, "non_finite", 3),
        ("2", "PRUNED", Outcome.PRUNER, UNKNOWN, 1),
        ("3", "FAIL", Outcome.ERROR, "error", 2),
        ("4", "RUNNING", Outcome.INTERRUPTED, INTERRUPTED, 1),
        ("5", "WAITING", Outcome.INTERRUPTED, "never started", 0),
    ]
    assert (sweep.metric, sweep.mode) == ("val_loss", "min")
    assert sweep.trials[0].finals == {"val_loss": 1.25}
    assert sweep.trials[1].blame is Blame.CONFIG
    assert sweep.records["1"].step == 2
    curve = sweep.curves.of("1")["val_loss"]
    assert list(curve.steps) == [0, 1, 2]
    assert math.isnan(curve.values[2])
    assert sweep.curves.of("3")["val_loss"].last == math.inf
    assert 0.0 <= sweep.trials[0].params["lr"] <= 1.0
    assert sweep.trials[0].time_s is not None
    assert sweep.trials[4].time_s is None


def state_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Return every file of a folder with the hash and time of its content."""
    return {
        path.name: (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in folder.iterdir()
    }


@pytest.fixture
def sqlite(tmp_path: Path) -> Path:
    """A study in a SQLite file."""
    path = tmp_path / "study.db"
    storage = RDBStorage(f"sqlite:///{path}")
    fill(storage)
    storage.remove_session()
    storage.engine.dispose()
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A study in a journal file."""
    path = tmp_path / "journal.log"
    fill(JournalStorage(JournalFileBackend(str(path))))
    return path


# ------------------------------------------------------------- where a study lies


def test_a_live_study_is_read() -> None:
    """In memory, as it runs."""
    check(load_sweep(fill(InMemoryStorage())))


def test_a_sqlite_file_is_read_by_path_and_url(sqlite: Path) -> None:
    """Both ways of naming it."""
    check(load_sweep(sqlite))
    check(load_sweep(f"sqlite:///{sqlite}"))


def test_a_journal_file_is_read(journal: Path) -> None:
    """Whatever it is called."""
    check(load_sweep(journal))


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_reading_changes_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    """Neither the file nor its folder: no lock, no table, no time stamp."""
    path: Path = request.getfixturevalue(kind)
    before = state_of(path.parent)
    load_sweep(path)
    assert state_of(path.parent) == before


def test_a_sqlite_file_in_a_read_only_place_is_read(sqlite: Path) -> None:
    """In write-ahead mode too, where SQLite would want to write beside it."""
    connection = sqlite3.connect(sqlite)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    sqlite.chmod(0o444)
    sqlite.parent.chmod(0o555)
    try:
        check(load_sweep(sqlite))
    finally:
        sqlite.parent.chmod(0o755)


def test_what_a_running_writer_has_committed_is_read(sqlite: Path) -> None:
    """A writer's open transaction is not waited for."""
    writer = sqlite3.connect(sqlite, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM trial_params")
    try:
        check(load_sweep(sqlite))
    finally:
        writer.execute("ROLLBACK")
        writer.close()


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}", "{path}?study=x"])
def test_a_missing_file_is_not_created(tmp_path: Path, form: str) -> None:
    """SQLite would make an empty one; that is an error instead."""
    path = tmp_path / "gone.db"
    with pytest.raises(SourceError, match="does not exist"):
        load_sweep(form.format(path=path))
    assert list(tmp_path.iterdir()) == []


def test_a_database_in_memory_is_refused() -> None:
    """It belongs to one process; the study itself can be given."""
    with pytest.raises(SourceError, match="memory of one process"):
        load_sweep("sqlite:///:memory:")


def test_a_database_in_memory_is_named_without_its_password() -> None:
    """It has no use for one; whoever mistyped an address has."""
    with pytest.raises(SourceError, match="memory of one process") as caught:
        load_sweep("sqlite://me:secret@/:memory:")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("sqllite:///study.db", "`sqlite`"),
        ("postgres://me:secret@host/db", "`postgresql`"),
        ("sqlite://me:secret@study.db", "sqlite:///study.db"),
        ("sqlite://me:secret@folder/study.db", "sqlite:///folder/study.db"),
        ("what:///study.db", "Known: `abfs`"),
    ],
)
def test_a_mistyped_address_gets_what_was_meant(typo: str, meant: str) -> None:
    """Optuna's own message names none."""
    with pytest.raises(SourceError) as caught:
        load_sweep(typo)
    assert meant in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    """And gets no tables of Optuna's."""
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    before = state_of(tmp_path)
    with pytest.raises(SourceError, match="holds no Optuna study"):
        load_sweep(path)
    assert state_of(tmp_path) == before


@pytest.mark.parametrize("content", [b"", b"text\n", b'{"a": 1}\n', b"\x00\xff" * 99])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    """Neither a database nor a journal."""
    path = tmp_path / "file.log"
    path.write_bytes(content)
    with pytest.raises(
        SourceError, match="none of these: SQLite file, journal of Optuna"
    ):
        load_sweep(path)


def test_a_damaged_database_is_said(sqlite: Path) -> None:
    """The head of a SQLite file and then something else."""
    sqlite.write_bytes(sqlite.read_bytes()[:100] + b"\xff" * 4096)
    with pytest.raises(SourceError, match="cannot be read"):
        load_sweep(sqlite)


# -------------------------------------------------------------- several studies


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two studies in one file, of opposite directions."""
    path = tmp_path / "two.db"
    storage = RDBStorage(f"sqlite:///{path}")
    for name, direction in (("one", "minimize"), ("two", "maximize")):
        study = optuna.create_study(
            storage=storage, study_name=name, direction=direction
        )
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    storage.remove_session()
    storage.engine.dispose()
    return path


def test_every_study_of_a_storage_is_a_sweep(two: Path) -> None:
    """Together they are one, with ids by study and no common objective."""
    assert [(s.name, s.mode) for s in load_sweeps(two)] == [
        ("one", "min"),
        ("two", "max"),
    ]
    both = load_sweep(two)
    assert [trial.id for trial in both.trials] == ["one/0", "one/1", "two/0", "two/1"]
    assert both.mode is None


@pytest.mark.parametrize(
    "form", ["{path}?study=two", "sqlite:///{path}?study_name=two"]
)
def test_the_address_chooses_a_study(two: Path, form: str) -> None:
    """Of a path and of a URL."""
    assert load_sweep(form.format(path=two)).name == "two"


def test_an_unknown_study_gets_the_nearest(two: Path) -> None:
    """A typing error is corrected."""
    with pytest.raises(SourceError, match=r"no study `twoo`\. Did you mean `two`"):
        load_sweep(two, study_name="twoo")


# -------------------------------------------------------------------- old schemas


@pytest.fixture(params=["optuna_0_9_0", "optuna_2_10_1"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database that an old Optuna wrote."""
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    text = (OLD / f"{request.param}.sql").read_text(encoding="utf-8")
    connection.executescript(text)
    connection.close()
    return path


def check_old(sweep: Any) -> None:
    """Check a study that :mod:`old_studies.make` made."""
    assert (sweep.name, sweep.mode, len(sweep.trials)) == ("old", "min", 12)
    assert [trial.id for trial in sweep.trials] == [str(i) for i in range(12)]
    first = sweep.trials[0]
    assert first.finals == {"value": 0.2}
    assert set(first.params) == {"lr", "layers", "optimizer"}
    assert list(sweep.curves.of("0")["value"].values) == pytest.approx(
        [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    )
    cut_early = [t for t in sweep.trials if t.reason == UNKNOWN]
    assert {t.steps_run for t in cut_early} <= {3, 4, 5}
    assert len(cut_early) >= 9


def test_an_old_database_is_read_and_stays_old(old: Path) -> None:
    """A copy is upgraded; Optuna's own upgrade of these files fails."""
    before = state_of(old.parent)
    check_old(load_sweep(old))
    assert state_of(old.parent) == before


def test_the_upgrade_leaves_logging_and_warnings_alone(
    old: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Migrations say much, and would set up logging for the whole process."""
    import logging

    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_sweep(old)
    assert (root.handlers, root.level) == before
    assert capfd.readouterr() == ("", "")


def test_a_schema_of_the_future_is_refused(sqlite: Path) -> None:
    """The error says what to install."""
    connection = sqlite3.connect(sqlite)
    connection.execute("UPDATE alembic_version SET version_num = 'v99.0.0.a'")
    connection.commit()
    connection.close()
    with pytest.raises(
        SourceError, match=r"schema v99\.0\.0\.a.*pip install -U optuna"
    ):
        load_sweep(sqlite)


# ------------------------------------------------------------------- damaged logs


def test_a_torn_journal_is_read_up_to_the_tear(journal: Path) -> None:
    """Optuna refuses a tear in the middle; what it was is named."""
    lines = journal.read_bytes().splitlines(keepends=True)
    lines.insert(3, b'{"op_code": 4, "wor\n')
    journal.write_bytes(b"".join(lines) + b'{"op_code"')
    sweep = load_sweep(journal)
    check(sweep)
    assert [problem.line for problem in sweep.problems] == [4, len(lines) + 1]


def test_a_record_that_the_storage_refused_is_found_beside_it(sqlite: Path) -> None:
    """It was kept in a local file; trial 2 is no longer unknown."""
    record = cut(reason="plateau", trial="2").metadata()
    line = json.dumps({"study": "study", "trial": 2, **record})
    aside = Path(f"{sqlite}.tune_guard.jsonl")
    aside.write_text(f'torn\n{line}\n{{"study": "other"}}\n', encoding="utf-8")
    assert load_sweep(sqlite).trials[2].reason == "plateau"


@pytest.mark.service
def test_a_record_kept_in_the_working_directory_names_its_storage(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study of the same name in another storage is another study."""
    storage = RDBStorage(server)
    fill(storage)
    storage.remove_session()
    storage.engine.dispose()
    shown = sa.make_url(server).render_as_string(hide_password=True)
    lines = [
        {"storage": place, "study": "study", "trial": 2, **cut(reason=why).metadata()}
        for place, why in ((shown, "plateau"), ("elsewhere", "divergence"))
    ]
    aside = tmp_path / ".tune_guard" / "optuna.jsonl"
    aside.parent.mkdir()
    aside.write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_sweep(server).trials[2].reason == "plateau"


# ------------------------------------------------------------------- what it holds


def test_a_retry_does_not_inherit_the_reason() -> None:
    """Optuna copies a failed trial's attributes to its retry."""
    study = optuna.create_study()
    trial = study.ask()
    for key, value in cut(trial="7").metadata().items():
        trial.set_user_attr(key, value)
    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    sweep = load_sweep(study)
    assert (sweep.trials[0].reason, sweep.records) == (UNKNOWN, {})


def test_a_trial_that_completed_all_the_same_is_healthy() -> None:
    """Training code that ignores the verdict; that is said."""
    study = optuna.create_study()
    trial = study.ask()
    for key, value in cut(trial="0").metadata().items():
        trial.set_user_attr(key, value)
    study.tell(trial, 1.0)
    sweep = load_sweep(study)
    assert sweep.trials[0].outcome is Outcome.COMPLETED
    assert "completed although its record" in sweep.problems[0].what


def test_several_objectives_are_ranked_by_name() -> None:
    """Each has its direction; which one counts must be said."""
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.set_metric_names(["loss", "acc"])
    study.add_trial(optuna.create_trial(values=[0.5, 0.9]))
    sweep = load_sweep(study)
    assert (sweep.metric, sweep.modes) == ("", {"loss": "min", "acc": "max"})
    assert sweep.with_objective("acc", "max").trials[0].best_value == 0.9


@pytest.fixture
def multi() -> Sweep:
    """A study with two objectives: one trial completed, one was cut for its loss."""
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.add_trial(optuna.create_trial(values=[0.5, 0.9]))
    record = cut(14, objective="loss", trial="1", best_value=5.0, best_step=0)
    pruned = optuna.trial.TrialState.PRUNED
    study.add_trial(optuna.create_trial(state=pruned, user_attrs=record.metadata()))
    return load_sweep(study)


def test_of_several_objectives_the_one_that_the_guard_judged_counts(
    multi: Sweep,
) -> None:
    """Optuna names none: the records do. Steps from 0 to 14 are 15."""
    assert (multi.metric, multi.mode) == ("loss", "min")
    assert [trial.steps_run for trial in multi.trials] == [0, 15]
    assert "keeps no curve of `loss`" in multi.problems[0].what
    for metric in ("", "loss"):
        assert resolve(multi, metric).trials[1].reason == "non_finite"


def test_compute_of_several_objectives_is_time(multi: Sweep) -> None:
    """Also that of a trial of which no step is known."""
    trials = [dataclasses.replace(trial, time_s=2.0) for trial in multi.trials]
    found = compare(dataclasses.replace(multi, trials=trials))
    assert (found.unit, found.compute) == ("s", 4.0)
    assert resolve(multi, "value_0").trials[0].best_value == 0.5


def test_an_error_message_of_early_versions_names_the_error() -> None:
    """They stored why a trial failed."""
    study = optuna.create_study()
    said = "Trial 0 failed because of the following error: ValueError('x')"
    failed = optuna.create_trial(
        state=optuna.trial.TrialState.FAIL, system_attrs={"fail_reason": said}
    )
    study.add_trial(failed)
    assert load_sweep(study).trials[0].reason == "error:ValueError"


def test_an_empty_study_is_a_sweep_without_trials() -> None:
    """Nothing was asked for yet."""
    assert load_sweep(optuna.create_study()).trials == ()


# ------------------------------------------------------------------------- servers


@pytest.fixture(params=["postgres_url", "mysql_url"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database on a server: one of its own, where the user may make one."""
    url = sa.make_url(request.getfixturevalue(request.param))
    name = f"tune_guard_{uuid.uuid4().hex}"
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        try:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        except sa.exc.DBAPIError:
            _drop_all(admin)
            yield url.render_as_string(hide_password=False)
            _drop_all(admin)
        else:
            yield url.set(database=name).render_as_string(hide_password=False)
            connection.execute(sa.text(f"DROP DATABASE {name}"))
    admin.dispose()


def _drop_all(engine: sa.Engine) -> None:
    found = sa.MetaData()
    found.reflect(engine)
    found.drop_all(engine)


def _tables(url: str) -> dict[str, int]:
    """Return the tables of a database with their numbers of rows."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        names = sa.inspect(engine).get_table_names()
        counts = {
            name: connection.execute(
                sa.select(sa.func.count()).select_from(sa.table(name))
            ).scalar_one()
            for name in names
        }
    engine.dispose()
    return counts


@pytest.mark.service
def test_a_server_is_read_where_it_is(server: str) -> None:
    """No table and no row is added."""
    storage = RDBStorage(server)
    fill(storage)
    storage.remove_session()
    storage.engine.dispose()
    before = _tables(server)
    check(load_sweep(f"{server}?study=study"))
    assert _tables(server) == before


@pytest.mark.service
def test_an_old_schema_on_a_server_is_copied(server: str, old: Path) -> None:
    """The server's own tables stay as they are."""
    local = sa.create_engine(f"sqlite:///{old}")
    found = sa.MetaData()
    found.reflect(local)
    remote = sa.create_engine(server)
    with remote.begin() as sink, local.connect() as source:
        plain = sa.MetaData()
        for table in found.sorted_tables:
            columns = [
                sa.Column(c.name, _kind(c.type), primary_key=c.primary_key)
                for c in table.columns
            ]
            copied = sa.Table(table.name, plain, *columns)
            copied.create(sink)
            rows = [dict(row) for row in source.execute(table.select()).mappings()]
            if rows:
                sink.execute(copied.insert(), rows)
    local.dispose()
    remote.dispose()
    before = _tables(server)
    check_old(load_sweep(server))
    assert _tables(server) == before


def _kind(kind: Any) -> Any:
    """Return a type that every server can hold a column of."""
    if isinstance(kind, sa.Float):
        return sa.Double()
    return sa.String(700) if isinstance(kind, sa.String) else kind.as_generic()


@pytest.mark.service
def test_an_empty_server_gets_no_tables(server: str) -> None:
    """Optuna would make its own on the first look."""
    with pytest.raises(SourceError, match="holds no Optuna study"):
        load_sweep(server)
    assert _tables(server) == {}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@127.0.0.1:1/none",
        "mysql+pymysql://me:secret@127.0.0.1:1/none",
        "redis://me:secret@127.0.0.1:1/0",
        "postgresql+nothing://me:secret@127.0.0.1/x",
    ],
)
def test_a_server_that_does_not_answer_is_said_without_its_password(url: str) -> None:
    """The address is shown, the secret is not."""
    with pytest.raises(SourceError, match=r"me:\*\*\*@127.0.0.1") as caught:
        load_sweep(url)
    assert "secret" not in str(caught.value)


def test_the_studies_of_a_directory_are_read(tmp_path: Path) -> None:
    """What is no study is passed over; a damaged one is named."""
    url = f"sqlite:///{tmp_path / 'good.db'}"
    study = optuna.create_study(storage=url, study_name="mine")
    study.add_trial(optuna.trial.create_trial(value=1.0))
    for name, tables in (("other.db", ("a",)), ("broken.db", ("studies", "trials"))):
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as database:
            for table in tables:
                database.execute(f"CREATE TABLE {table} (x)")
    (sweep,) = load_sweeps(tmp_path)
    assert (sweep.name, len(sweep.trials)) == ("mine", 1)
    (problem,) = sweep.problems
    assert problem.file.endswith("broken.db")


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLAlchemy 2.1 takes psycopg 3 where a URL names none."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SourceError, match=r"psycopg2-binary.*postgresql\+psycopg2://"):
        load_sweep("postgresql://me:secret@127.0.0.1:1/none")


@pytest.fixture
def redis_prefix(redis_url: str) -> Iterator[str]:
    """A prefix of keys of its own."""
    import redis

    prefix = f"tune-guard-{uuid.uuid4()}"
    yield prefix
    client = redis.Redis.from_url(redis_url)
    keys = client.keys(f"{prefix}*")
    if keys:
        client.delete(*keys)
    client.close()


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.mark, "w")


@pytest.mark.service
def test_a_redis_journal_is_read_without_its_pickle(
    redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    """Optuna keeps a pickled snapshot there; whoever can write it could run code."""
    backend = JournalRedisBackend(redis_url, prefix=redis_prefix)
    fill(JournalStorage(backend))
    mark = tmp_path / "loaded"
    backend.save_snapshot(pickle.dumps(Bomb(str(mark))))
    check(load_sweep(f"{redis_url}?prefix={redis_prefix}"))
    assert not mark.exists()


@pytest.mark.service
def test_a_redis_without_a_journal_is_said(redis_url: str, redis_prefix: str) -> None:
    """The prefix is named: it is what is forgotten."""
    with pytest.raises(SourceError, match=f"under the prefix '{redis_prefix}'"):
        load_sweep(f"{redis_url}?prefix={redis_prefix}")


def test_a_database_beside_a_folder_of_trials_is_found_by_name(tmp_path: Path) -> None:
    """A path with blanks, percent signs and question marks is a path."""
    odd = tmp_path / "a b%20c" / "study?.db"
    odd.parent.mkdir()
    storage = RDBStorage(f"sqlite:///{tmp_path / 'plain.db'}")
    fill(storage)
    storage.remove_session()
    storage.engine.dispose()
    shutil.move(tmp_path / "plain.db", odd)
    check(load_sweep(odd))
