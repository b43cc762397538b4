"""Files and folders with one hostile file among valid ones, and their readers."""

from __future__ import annotations

import contextlib
import io
import itertools
import posixpath
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import fsspec

from tests.fuzz import seeds
from tune_guard import SourceError
from tune_guard.evidence.again import judge_again
from tune_guard.evidence.reader import as_json, find_bundles
from tune_guard.strict_json import to_json
from tune_guard.sweeps import load_sweeps
from tune_guard.sweeps.readers import stream_sweeps

_NUMBERS = itertools.count()


@contextlib.contextmanager
def _in_memory(files: dict[str, bytes]) -> Iterator[str]:
    """Yield the URL of a folder with these files, which no disk holds."""
    filesystem = fsspec.filesystem("memory")
    root = f"/fuzz{next(_NUMBERS)}"
    for path, data in files.items():
        filesystem.pipe_file(f"{root}/{path}", data)
    try:
        yield f"memory:/{root}"
    finally:
        filesystem.rm(root, recursive=True)


@contextlib.contextmanager
def _on_disk(files: dict[str, bytes]) -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="tune_guard-fuzz-"))
    try:
        for name, data in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _load(source: str) -> None:
    """Read every sweep, and look at all that was read."""
    with contextlib.suppress(SourceError):
        for sweep in load_sweeps(source):
            sweep.metrics()
            for trial in sweep.trials:
                repr(trial)
            for record in sweep.records.values():
                to_json(record.metadata())


def _ray(path: str, data: bytes) -> None:
    files = {**seeds.ray_experiment(), path: data}
    if path == "trial_t1/progress.csv":
        files.pop("trial_t0/result.json")
    with _in_memory(files) as source:
        _load(source)


def _folder(path: str, others: dict[str, bytes], data: bytes) -> None:
    with _in_memory({**others, path: data}) as source:
        _load(source)


def _export(data: bytes) -> None:
    ending = "json" if data.lstrip()[:1] in (b"{", b"[") else "csv"
    with _in_memory({f"run.{ending}": data}) as source:
        _load(source)


def _long_table(name: str, data: bytes) -> None:
    files = {"curves/t.csv": seeds.LONG_TABLE, "trials/t.csv": seeds.LONG_TRIALS}
    with _on_disk({**files, name: data}) as root:
        _load(str(root / "curves/t.csv"))
        with contextlib.suppress(SourceError):
            list(stream_sweeps(str(root / "curves/t.csv"))[1])


def _file(name: str, data: bytes) -> None:
    with _on_disk({name: data}) as root:
        _load(str(root / name))


def parquet() -> bytes:
    """Return the long table as parquet."""
    import pyarrow.csv
    import pyarrow.parquet

    table = pyarrow.csv.read_csv(io.BytesIO(seeds.LONG_TABLE))
    whole = io.BytesIO()
    pyarrow.parquet.write_table(table, whole)
    return whole.getvalue()


def _parquet(data: bytes) -> None:
    with _on_disk({"t.parquet": data}) as root:
        _load(str(root / "t.parquet"))
        with contextlib.suppress(SourceError):
            list(stream_sweeps(str(root / "t.parquet"))[1])


def bundle_with(name: str, data: bytes) -> None:
    """Show, verify and judge again a bundle of which one file is hostile."""
    with _in_memory({**seeds.bundle_files(), name: data}) as source:
        _look_at(source)


def _look_at(source: str) -> None:
    try:
        bundles = find_bundles(source)
    except SourceError:
        return
    for bundle in bundles:
        to_json(as_json(bundle))
        judge_again(bundle)


def archive() -> bytes:
    """Return a bundle as a zip file."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as into:
        for name, data in seeds.bundle_files().items():
            into.writestr(name, data)
    return whole.getvalue()


def _archive(data: bytes) -> None:
    with _on_disk({"bundle.zip": data}) as root:
        _look_at(str(root / "bundle.zip"))


_METRICS = {"run/version_0/metrics.csv": seeds.LIGHTNING}

Reader = tuple[Callable[[bytes], None], Callable[[], list[bytes]]]

READERS: dict[str, Reader] = {
    **{
        "ray_" + posixpath.basename(path).partition("-")[0]: (
            partial(_ray, path),
            partial(lambda path: [seeds.ray_experiment()[path]], path),
        )
        for path in seeds.ray_experiment()
    },
    "lightning_metrics.csv": (
        partial(_folder, *_METRICS, {}),
        lambda: [seeds.LIGHTNING],
    ),
    "lightning_hparams.yaml": (
        partial(_folder, "run/version_0/hparams.yaml", _METRICS),
        lambda: [seeds.HPARAMS],
    ),
    "trainer_state.json": (
        partial(_folder, "run/checkpoint-4/trainer_state.json", {}),
        lambda: [seeds.trainer_state()],
    ),
    "wandb_mlflow_export": (_export, lambda: seeds.EXPORTS),
    "long_table": (partial(_long_table, "curves/t.csv"), lambda: [seeds.LONG_TABLE]),
    "long_table_trials": (
        partial(_long_table, "trials/t.csv"),
        lambda: [seeds.LONG_TRIALS],
    ),
    "parquet": (_parquet, lambda: [parquet()]),
    "optuna_journal": (partial(_file, "j.log"), lambda: [seeds.journal()]),
    "optuna_sqlite": (partial(_file, "s.db"), lambda: [seeds.database()]),
    "mlflow_sqlite": (partial(_file, "m.db"), lambda: [seeds.mlflow()]),
    **{
        f"mlruns_{posixpath.basename(path)}": (
            partial(_folder, path, seeds.MLRUNS),
            partial(lambda path: [seeds.MLRUNS[path]], path),
        )
        for path in ("1/r/meta.yaml", "1/r/metrics/val/loss")
    },
    "evidence_zip": (_archive, lambda: [archive()]),
    "evidence_observations.jsonl": (
        partial(bundle_with, "observations.jsonl"),
        lambda: [seeds.bundle_files()["observations.jsonl"]],
    ),
}
