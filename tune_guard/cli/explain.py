"""``tune-guard explain``: why a trial was cut, or how near it came to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from tune_guard.evidence.again import Again
    from tune_guard.evidence.reader import StoredBundle
    from tune_guard.evidence.trace import Trace
    from tune_guard.sweeps.replayed import Request
    from tune_guard.sweeps.traced import Traced


def explain(
    source: str,
    trial: str | None = None,
    *,
    policy: str | None = None,
    metric: str | None = None,
    mode: Literal["min", "max"] | None = None,
    budget_steps: int | None = None,
    study: str | None = None,
    rule: str | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Say why a trial was cut, or how near it came to it.

    With a bundle of evidence alone, the rules run again over the stored numbers:
    exits 1 unless the verdict is the same at the same step. With a source and a
    trial, a policy runs over the recorded curve: exits 1 when it stops the trial.

    Args:
        source: A bundle of evidence, or the directory of a trial that has one. With
            a trial: what `report` reads.

        trial: Id, name or number of a recorded trial.

        policy: YAML file of the policy; the default policy when left out. With a
            bundle, the stored one is used.

        metric: The objective. Needed where it is not recorded.

        mode: Whether the objective is to be minimized or maximized. Needed where
            it is not recorded.

        budget_steps: Steps that a full trial runs; else as for `replay`.

        study: The study to read, where a storage holds several.

        rule: Print this rule's numbers step by step.

        json: Print plain values, with every number, as JSON.
    """
    if trial is None:
        return _explain_bundle(source, rule, as_json=json)
    from tune_guard.policy import Policy
    from tune_guard.sweeps.replayed import Request

    request = Request(
        policy=Policy.from_yaml(policy) if policy else None,
        metric=metric or "",
        mode=mode or "",
        budget_steps=budget_steps,
    )
    return _explain_trial(source, trial, request, study or "", rule, as_json=json)


def _explain_bundle(source: str, rule: str | None, *, as_json: bool) -> int:
    from tune_guard.cli import CLEAN, FINDINGS
    from tune_guard.evidence.again import judge_again

    bundle = _found(source)
    again = judge_again(bundle)
    if as_json:
        from tune_guard.cli import traces
        from tune_guard.cli.console import print_json

        print_json(
            {
                "bundle": bundle.name,
                "record": again.record.detail() if again.record else None,
                "same": again.same,
                "why_not": again.why_not,
                "again": traces.as_json(again.trace) if again.trace else None,
            }
        )
    else:
        _print([*_of_record(again), _of_rerun(again)], again.trace, rule)
    return CLEAN if again.same else FINDINGS


def _found(source: str) -> StoredBundle:
    """Return the newest bundle of a source; what holds none may be a sweep.

    Raises:
        SourceError: If there is none, with how to name a trial.
    """
    from tune_guard.evidence.reader import find_bundle
    from tune_guard.exceptions import SourceError, hide_password
    from tune_guard.sweeps.readers.optuna_storage import is_storage_url

    shown = hide_password(source)
    advice = f"Of a recorded sweep name the trial: `tune-guard explain {shown} TRIAL`."
    advice += f" `tune-guard report {shown} --json` lists the trials by reason."
    if is_storage_url(source):
        msg = f"{shown} is a storage, and no bundle of evidence. {advice}"
        raise SourceError(msg)
    try:
        return find_bundle(source)
    except SourceError as error:
        msg = f"{error} {advice}"
        raise SourceError(msg) from error


def _of_record(again: Again) -> list[str]:
    record = again.record
    if record is None:
        return ["The record is lost."]
    blame = f", blame: {record.blame}" if record.blame else ""
    lines = [f"{record.reason} at step {record.step}{blame}.", record.message]
    if record.value is not None:
        limit = "" if record.threshold is None else f" against {record.threshold:.6g}"
        lines.append(f"The number: {record.metric} = {record.value:.6g}{limit}.")
    return lines


def _of_rerun(again: Again) -> str:
    if again.trace is None:
        return f"Not judged again: {again.why_not}"
    seen = f"Judged again over {again.trace.count} stored observations"
    if again.same:
        return f"{seen}: the same verdict at the same step."
    return f"{seen}: another verdict. {again.why_not}"


def _explain_trial(
    source: str,
    trial: str,
    request: Request,
    study: str,
    rule: str | None,
    *,
    as_json: bool,
) -> int:
    from tune_guard.cli import CLEAN, FINDINGS
    from tune_guard.cli.console import loading, print_json
    from tune_guard.notices import Notices
    from tune_guard.sweeps import load_sweeps
    from tune_guard.sweeps.traced import trace_trial

    with loading(source) as progress:
        sweeps = load_sweeps(source, study_name=study, progress=progress)
    traced = trace_trial(sweeps, trial, request, Notices())
    if as_json:
        from tune_guard.cli import traces

        record = traced.record.detail() if traced.record else None
        found = traces.as_json(traced.trace)
        print_json({"trial": traced.trial.id, "record": record, **found})
    else:
        _print(_of_trial(traced), traced.trace, rule)
    return FINDINGS if traced.trace.verdict.stop else CLEAN


def _of_trial(traced: Traced) -> list[str]:
    trial, verdict = traced.trial, traced.trace.verdict
    ended = trial.reason or (str(trial.outcome) if trial.outcome else trial.state)
    lines = [f"Trial {trial.name or trial.id}: {ended} after {trial.steps_run} steps."]
    if verdict.stop:
        return [*lines, f"This policy stops it: {verdict.message}"]
    last, record = traced.last_step, traced.record
    if record is not None and record.message:
        lines.append(record.message)
    if not traced.trace.count:
        return [*lines, "No reading of it is stored: the policy has nothing to judge."]
    if record is not None and min(record.step, trial.steps_run) > last:
        said = f"Readings are stored up to step {last} only: so far the policy lets it"
        return [*lines, f"{said} run."]
    return [*lines, "This policy lets it run to its end."]


def _print(lines: list[str], trace: Trace | None, rule: str | None) -> None:
    from rich.markup import escape

    from tune_guard.cli import traces
    from tune_guard.cli.safe_console import SafeConsole
    from tune_guard.exceptions import ConfigError, did_you_mean

    console = SafeConsole()
    for line in lines:
        console.print(escape(line), soft_wrap=True)
    if trace is None:
        return
    if rule is None:
        traces.show_rules(trace, console)
        return
    if rule not in trace.rules:
        msg = f"No rule {rule!r} watched the trial. {did_you_mean(rule, trace.rules)}"
        raise ConfigError(msg)
    traces.show_points(trace.rules[rule], console)
