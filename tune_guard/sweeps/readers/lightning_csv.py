"""Read what Lightning's CSVLogger leaves: ``version_N/metrics.csv``, hparams.yaml."""

from __future__ import annotations

import csv
import io
import posixpath
from typing import TYPE_CHECKING, Any

import yaml

from tune_guard.coercion import to_step
from tune_guard.exceptions import brief
from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.readers.params import flat_params
from tune_guard.sweeps.readers.rows import RowTable, by_step
from tune_guard.sweeps.sweep import UNKNOWN, Problem, Sweep, Trial
from tune_guard.yaml_limits import check_nodes, check_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.progress import Progress

METRICS_FILE = "metrics.csv"
_HPARAMS_FILE = "hparams.yaml"
_STEP = "step"


def read_lightning(
    source: str, tree: Tree, files: Sequence[str], progress: Progress
) -> list[Sweep]:
    """Read every ``metrics.csv`` of a tree: one trial each, one sweep a folder.

    How a trial ended is not in these files.

    Args:
        source: What the user named.

        tree: Where the files lie.

        files: All files of the tree.

        progress: Called as trials are read.
    """
    logs = [path for path in files if posixpath.basename(path) == METRICS_FILE]
    found: dict[str, _Reader] = {}
    for done, path in enumerate(logs, start=1):
        folder = posixpath.dirname(posixpath.dirname(path))
        found.setdefault(folder, _Reader(source, tree, folder)).add(path, set(files))
        progress(done, len(logs), "trials read")
    return [reader.sweep() for reader in found.values() if reader.trials]


class _Reader:
    """Reads the trials of one folder."""

    def __init__(self, source: str, tree: Tree, folder: str) -> None:
        self.source = source
        self.tree = tree
        self.name = tree.relative(folder) or posixpath.basename(folder)
        self.trials: list[Trial] = []
        self.curves: dict[str, Mapping[str, Curve]] = {}
        self.problems: list[Problem] = []

    def add(self, path: str, files: set[str]) -> None:
        file = self.tree.shown(path)
        text = self.tree.read(path).decode("utf-8-sig", errors="replace")
        reader = csv.reader(io.StringIO(text, newline=""))
        header = next(_cells(reader, file, self.problems), [])
        if _STEP not in header:
            what = f"left out: no column `{_STEP}`, so not of Lightning's logger"
            self.problems.append(Problem(file=file, what=what))
            return
        table = RowTable(frozenset({_STEP}))
        for line, step, values in by_step(_rows(reader, header, file, self.problems)):
            table.add(step, None, values, line)
        self.problems += table.problems(file)
        folder = posixpath.dirname(path)
        trial_id = posixpath.basename(folder)
        self.curves[trial_id] = table.curves()
        self.trials.append(
            Trial(
                id=trial_id,
                name=trial_id,
                sweep=self.name,
                params=self._params(f"{folder}/{_HPARAMS_FILE}", files),
                reason=UNKNOWN,
                steps_run=table.steps[-1] if table.steps else 0,
                source=self.tree.shown(folder),
            )
        )

    def _params(self, path: str, files: set[str]) -> dict[str, Any]:
        if path not in files:
            return {}
        try:
            params = _plain_yaml(self.tree.read(path).decode("utf-8-sig"))
        except Exception as error:  # noqa: BLE001 - PyYAML's constructors raise anything
            why = str(error).partition("\n")[0] or type(error).__name__
            self.problems.append(
                Problem(file=self.tree.shown(path), what=f"left out: {why}")
            )
            return {}
        return flat_params(params) if isinstance(params, dict) else {}

    def sweep(self) -> Sweep:
        return Sweep(
            source=self.source,
            engine="lightning",
            name=self.name,
            trials=tuple(self.trials),
            curves=Curves(self.curves),
            problems=self.problems,
        )


def _plain_yaml(text: str) -> Any:
    """Read plain YAML of a sane size: nothing that names Python objects to be made."""
    check_text(text)
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        check_nodes(root)
        return None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def _rows(
    reader: Iterator[list[str]], header: list[str], file: str, problems: list[Problem]
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield line, step and values of each row."""
    for line, cells in enumerate(_cells(reader, file, problems), start=2):
        row = dict(zip(header, cells, strict=False))
        step = to_step(row.get(_STEP))
        if step is None or len(cells) != len(header):
            if cells:
                shown = brief(row.get(_STEP))
                what = f"row left out: {len(cells)} cells, step {shown}"
                problems.append(Problem(file=file, line=line, what=what))
            continue
        yield line, step, {key: cell for key, cell in row.items() if cell}


def _cells(
    reader: Iterator[list[str]], file: str, problems: list[Problem]
) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        problems.append(Problem(file=file, what=f"left out from here: {error}"))
