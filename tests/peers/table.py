"""The one table that a comparison prints."""

from __future__ import annotations

from collections.abc import Mapping

from tests.peers.comparison import Comparison


def print_table(
    comparison: Comparison, setting: Mapping[str, str], counts: Mapping[str, int]
) -> None:
    """Print a row, the documented differences, and whatever is not as documented.

    Args:
        comparison: What came of the tests.

        setting: What the guard was given, by the column's name.

        counts: What the guard did, by the column's name.
    """
    row = {**setting, **comparison.row(), **counts}
    print(f"| {' | '.join(row)} |")
    print("|---" * len(row) + "|")
    print(f"| {' | '.join(map(str, row.values()))} |")
    for name in comparison.differences:
        if name in comparison.documented:
            print(f"- `{name}`: {comparison.documented[name]}")
    for line in comparison.broken:
        print(f"NOT AS DOCUMENTED: {line}")
