"""Run a file of cases: ``python -m tests.cases.run FILE``.

One line a case: its id, what is expected, what the library did, and whether
that is the same. Cases that need surroundings which cannot be staged say what
they need. Exits 1 when a case fails.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cases.adapter import REASONS, Plan, plan_of
from tests.cases.decode import UnknownEncodingError
from tests.cases.staged import stage
from tests.cases.staging import NotStagedError
from tests.cases.stream import Outcome, run_rows, with_metrics
from tune_guard import ConfigError
from tune_guard.nested_keys import flat_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_COMPARED = frozenset({"verdict", "reason", "at_step", "best", "metric", "per_trial"})
_UNCOMPARED = frozenset({"at", "must", "on_ranks", "comment", "note"})
_STANDS_FOR = {
    **dict.fromkeys(("unchanged", "healthy", "keep"), "continue"),
    **dict.fromkeys(("prune", "pruned", "cut"), "stop"),
}


@dataclass
class Result:
    """What a case came to: ``pass``, ``fail``, or ``not staged`` and why."""

    id: str
    expected: str
    got: str
    status: str
    notes: list[str]

    def __str__(self) -> str:
        notes = "; ".join(dict.fromkeys(self.notes))
        return (
            f"{self.id}  expected: {self.expected}  got: {self.got or '-'}"
            f"  {self.status}{f' ({notes})' if notes else ''}"
        )


def load_cases(file: Path) -> list[dict[str, Any]]:
    """Read a file with one case a line."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def run_case(case: Mapping[str, Any]) -> Result:
    """Run one case; what goes wrong in it is its result."""
    expected = case.get("expected") or {}
    result = Result(str(case.get("id")), _shown(expected), "", "pass", [])
    try:
        outcomes = outcomes_of(case)
    except (NotStagedError, UnknownEncodingError) as error:
        result.status = f"not staged: needs {error}"
        return result
    except Exception as error:  # noqa: BLE001 - a crash is a failure like any other
        result.got, result.status = f"crash {error!r}", "fail"
        return result
    result.got = ", ".join(
        f"{name}: {outcome}" if name else str(outcome)
        for name, outcome in outcomes.items()
    )
    wrong = list(differences(expected, outcomes))
    result.notes = wrong + [n for o in outcomes.values() for n in o.notes]
    result.notes += [
        f"not compared: {key}" for key in expected if key not in _COMPARED | _UNCOMPARED
    ]
    result.status = "fail" if wrong else "pass"
    return result


def outcomes_of(case: Mapping[str, Any]) -> dict[str, Outcome]:
    """Return what became of a case's trials, by name; one trial has no name."""
    plan = Plan()
    try:
        plan = plan_of(case.get("guard_config") or {})
        inputs = case["inputs"]
        if isinstance(inputs, dict) and "environment" in inputs:
            outcomes = stage(inputs["environment"], plan)
        else:
            rows = inputs.get("rows", []) if isinstance(inputs, dict) else inputs
            outcomes = _run_stream(plan, rows)
    except ConfigError as error:
        outcomes = {"": Outcome(verdict="config_error", message=str(error))}
    for outcome in outcomes.values():
        outcome.notes += plan.notes
    return outcomes


def _run_stream(plan: Plan, rows: list[dict[str, Any]]) -> dict[str, Outcome]:
    if not plan.rules:
        msg = f"a rule: {'; '.join(plan.notes) or 'the config names none'}"
        raise NotStagedError(msg)
    rows = [with_metrics(row) for row in rows]
    plan.read_telemetry_of(
        k for row in rows for k in flat_keys(row.get("metrics") or {})
    )
    return run_rows(plan.policy(), rows)


def differences(
    expected: Mapping[str, Any], outcomes: Mapping[str, Outcome]
) -> Iterator[str]:
    """Say in what a case's outcome is not the expected one."""
    for outcome in outcomes.values():
        yield from outcome.broken
    per_trial = expected.get("per_trial")
    if per_trial is None:
        per_trial = dict.fromkeys(outcomes, expected)
    for name, wanted in per_trial.items():
        if name not in outcomes:
            yield f"no trial {name}"
        else:
            yield from _differing(wanted, outcomes[name])


def _differing(wanted: Mapping[str, Any], got: Outcome) -> Iterator[str]:
    verdict = wanted.get("verdict")
    verdict = _STANDS_FOR.get(verdict, verdict)
    if verdict == "warn":
        verdict = "continue"
        if not got.warned:
            yield "no warning"
    if verdict is not None and verdict != got.verdict:
        yield f"verdict {got.verdict}"
    reason = wanted.get("reason")
    if reason is not None and REASONS.get(reason, reason) != got.reason:
        yield f"reason {got.reason}"
    if reason == "gpu_lost" and "lost" not in got.message:
        yield "the message does not say that the GPU is lost"
    if wanted.get("at_step") is not None and wanted["at_step"] != got.at_step:
        yield f"step {got.at_step}"
    if wanted.get("best") is not None and wanted["best"] != got.best:
        yield f"best {got.best}"
    if wanted.get("metric") is not None and wanted["metric"] != got.metric:
        yield f"metric {got.metric}"


def _shown(expected: Mapping[str, Any]) -> str:
    if "per_trial" in expected:
        trials = expected["per_trial"].items()
        return ", ".join(f"{name}: {_shown(wanted)}" for name, wanted in trials)
    verdict = str(expected.get("verdict", "as described"))
    parts = [verdict, expected.get("reason") or ""]
    if expected.get("at_step") is not None:
        parts.append(f"@{expected['at_step']}")
    return " ".join(part for part in parts if part)


def main(arguments: Sequence[str]) -> int:
    """Run a file of cases and return the exit status."""
    if len(arguments) != 1 or not Path(arguments[0]).is_file():
        print("usage: python -m tests.cases.run FILE", file=sys.stderr)
        return 2
    results = []
    for case in load_cases(Path(arguments[0])):
        results.append(run_case(case))
        print(results[-1], flush=True)
    passed = sum(result.status == "pass" for result in results)
    failed = sum(result.status == "fail" for result in results)
    rest = len(results) - passed - failed
    print(f"{len(results)} cases: {passed} pass, {failed} fail, {rest} not staged")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
