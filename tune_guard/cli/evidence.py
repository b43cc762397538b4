"""``tune-guard evidence``: what was kept of trials that were cut, verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from tune_guard.evidence.reader import StoredBundle


def evidence(
    source: str,
    *,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Show and verify the evidence of trials that were cut.

    Every file is compared with the manifest's sizes and SHA-256 sums. Exits 1 when
    one is damaged, missing or unknown.

    Args:
        source: A trial's directory, one above it, or a bundle: a folder or a zip
            file; a path or a URL.

        json: Print plain values as JSON.
    """
    from tune_guard.cli import CLEAN, FINDINGS
    from tune_guard.cli.console import print_json
    from tune_guard.evidence.reader import as_json, find_bundles

    bundles = find_bundles(source)
    if json:
        print_json({"bundles": [as_json(bundle) for bundle in bundles]})
    else:
        from tune_guard.cli.safe_console import SafeConsole

        console = SafeConsole()
        for bundle in bundles:
            _show(bundle, console)
    return FINDINGS if any(bundle.problems() for bundle in bundles) else CLEAN


def _show(bundle: StoredBundle, console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    console.print(escape(bundle.name), style="bold", soft_wrap=True)
    record = bundle.record()
    if record is not None:
        sentence = f"{record.reason} at step {record.step}: {record.message}"
        console.print(escape(sentence), soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for heading in ("File", "Bytes", ""):
        table.add_column(heading, justify="right" if heading == "Bytes" else "left")
    for check in bundle.checks():
        size = "" if check.size_bytes is None else str(check.size_bytes)
        word = "left out: " if check.left_out else ""
        table.add_row(
            escape(check.file), size, escape(word + check.problem) or "verified"
        )
    console.print(table)
    if not bundle.manifest:
        console.print("No manifest can be read: nothing is verified.")
