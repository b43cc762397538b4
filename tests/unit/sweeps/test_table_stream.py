"""A long table gives its sweeps one after another, as if each were read alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tune_guard.exceptions import SourceError
from tune_guard.sweeps.readers import load_sweeps, stream_sweeps, table_stream

pd = pytest.importorskip("pandas")


def rows(order: str) -> list[dict[str, Any]]:
    """Return five readings of a trial for each letter, the sweeps in this order."""
    counts: dict[str, int] = {}
    found = []
    for sweep in order:
        for _ in range(5):
            counts[sweep] = counts.get(sweep, 0) + 1
            found.append(
                {
                    "sweep_id": sweep,
                    "trial_id": f"{sweep}0",
                    "step": counts[sweep],
                    "metric_name": "loss",
                    "value": 1.0 / counts[sweep],
                    "mode": "min",
                }
            )
    return found


def table(folder: Path, order: str, kind: str) -> Path:
    """Write a long table, and the second one with a sweep that reported nothing."""
    path = folder / "curves" / f"table.{kind}"
    beside = folder / "trials" / f"table.{kind}"
    known = [{"sweep_id": "z", "trial_id": "z0", "status": "completed"}]
    for place, found in ((path, rows(order)), (beside, known)):
        place.parent.mkdir(exist_ok=True)
        frame = pd.DataFrame(found)
        if kind == "csv":
            frame.to_csv(place, index=False)
        else:
            frame.astype({"sweep_id": "category"}).to_parquet(place, index=False)
    return path


@pytest.fixture(params=["csv", "parquet"])
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a kind of table; parquet is read in batches of seven rows."""
    patch = pytest.MonkeyPatch()
    patch.setattr(table_stream, "_BATCH", 7)
    yield request.param
    patch.undo()


@pytest.mark.parametrize("order", ["aabbc", "abcabc", "abba"])
def test_the_sweeps_are_those_of_the_whole_table(
    tmp_path: Path, kind: str, order: str
) -> None:
    """Whether their rows lie together or not; the silent one comes last."""
    path = table(tmp_path, order, kind)
    count, sweeps = stream_sweeps(str(path))
    streamed = {sweep.name: sweep for sweep in sweeps}
    whole = {sweep.name: sweep for sweep in load_sweeps(str(path))}

    assert count == len(streamed) == len(whole)
    assert set(streamed) == set(whole)
    for name, sweep in whole.items():
        assert list(streamed[name].curves) == list(sweep.curves)
        assert streamed[name].trials == sweep.trials
        assert streamed[name].modes == sweep.modes


def test_a_sweep_comes_before_the_next_one_is_read(tmp_path: Path) -> None:
    """After the first sweep, only its rows and no more were taken from the file."""
    path = table(tmp_path, "abc", "csv")
    _, sweeps = stream_sweeps(str(path))
    first = next(sweeps)
    with path.open("r+") as file:
        content = file.read()
        file.seek(0)
        file.write(content.replace("c0", "c1"))

    assert first.name == "a"
    assert len(first.curves) == 5
    assert [sweep.name for sweep in sweeps] == ["b", "c", "z"]


def test_a_table_without_sweeps_is_one(tmp_path: Path) -> None:
    """Without the column there is one sweep, without a name."""
    path = tmp_path / "table.csv"
    pd.DataFrame(rows("a")).drop(columns="sweep_id").to_csv(path, index=False)
    count, sweeps = stream_sweeps(str(path))

    assert (count, [len(sweep.curves) for sweep in sweeps]) == (1, [5])


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    """It names the file."""
    path = tmp_path / "table.csv"
    path.write_text("sweep_id,trial_id,step,metric_name,value\n")
    with pytest.raises(SourceError, match="holds no reading"):
        stream_sweeps(str(path))
