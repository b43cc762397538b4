"""Alerts that are alike, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tune_guard.notify.alert import Alert, Kind
from tune_guard.notify.texts import (
    WORDS,
    Language,
    duration,
    harmless,
    number_text,
    reason_text,
)


def paragraph(group: Sequence[Alert], language: Language) -> list[str]:
    """Put alerts of one sweep, kind and reason into words, line by line."""
    kind = group[0].kind
    if kind is Kind.TEST:
        return [WORDS[language]["test"]]
    if kind is Kind.END:
        return [line for alert in group for line in _end(alert, language)]
    if kind is Kind.SHARE:
        return _share(group, language)
    return _single(group, language)


def _single(group: Sequence[Alert], language: Language) -> list[str]:
    """Put alerts on single trials into words: one in full, many as a list."""
    words, first, many = WORDS[language], group[0], len(group) > 1
    head = words[f"{first.kind}_{'many' if many else 'one'}"].format(
        reason=reason_text(first.reason, language),
        trial=_ids([first], with_steps=False),
        step="" if first.step is None else words["step"].format(step=first.step),
        n=sum(len(alert.trials) for alert in group),
    )
    lines = [head]
    if said := _said(first, language):
        lines.append(words["first"] * many + said)
    if places := _places(group, language):
        lines.append(places)
    if any(alert.facts.get("again") for alert in group):
        lines.append(words["again"])
    if many:
        lines.append(words["trials"] + _ids(group))
    return lines


def _said(alert: Alert, language: Language) -> str:
    """Return the rule's sentence; in Chinese the numbers that it stands for."""
    facts = alert.facts
    if language == "zh" and facts.get("metric"):
        text = f"{harmless(facts['metric'])} = {number_text(facts.get('value', '-'))}"
        if "threshold" in facts:
            text += f"，阈值 {number_text(facts['threshold'])}"
        return text
    return harmless(alert.message)


def _places(group: Sequence[Alert], language: Language) -> str:
    words = WORDS[language]
    hosts = dict.fromkeys(a.facts["host"] for a in group if a.facts.get("host"))
    gpus = dict.fromkeys(a.facts["gpu_uuid"] for a in group if a.facts.get("gpu_uuid"))
    parts = [words["on"].format(host=_few(hosts))] if hosts else []
    parts += [words["gpu"].format(gpu=_few(gpus))] if gpus else []
    return words["and"].join(parts)


def _few(names: Mapping[str, Any]) -> str:
    shown = [harmless(name) for name in list(names)[:3]]
    return ", ".join(shown) + (f" +{len(names) - 3}" if len(names) > len(shown) else "")


def _share(group: Sequence[Alert], language: Language) -> list[str]:
    words, last = WORDS[language], group[-1]
    facts = last.facts
    head = words["share"].format(
        dead=facts.get("dead"),
        trials=facts.get("trials"),
        reason=reason_text(last.reason, language),
    )
    region = facts.get("region")
    where = _region(region, language) if region else words["no_region"]
    said = _said(last, language)
    more = [words["first"] + said] if said else []
    return [head, where, *more, words["trials"] + _ids(group)]


def _region(region: Mapping[str, Any], language: Language) -> str:
    words = WORDS[language]
    (inside, killed), (others_inside, others) = region["killed"], region["others"]
    return words["region"].format(
        ki=inside,
        k=killed,
        oi=others_inside,
        o=others,
        param=harmless(region["param"]),
        relation=words[region["relation"]],
        bound=number_text(region["bound"]),
    )


def _end(alert: Alert, language: Language) -> list[str]:
    words, facts = WORDS[language], alert.facts
    trials, by = facts.get("trials", 0), facts.get("ended", {})
    kind = "end_process" if facts.get("process") else "end"
    kind = "interrupted" if facts.get("interrupted") else kind
    process = harmless(facts.get("process", ""))
    lines = [words[kind].format(trials=trials, process=process)]
    ended = sum(sum(reasons.values()) for reasons in by.values())
    lines += [_outcome(outcome, reasons, language) for outcome, reasons in by.items()]
    if trials > ended:
        rest = words["not_cut" if facts.get("process") else "open"]
        lines.append(f"{rest}: {trials - ended}")
    if facts.get("best_trial"):
        best = {"trial": harmless(facts["best_trial"])}
        best["metric"] = harmless(facts.get("metric", ""))
        best["value"] = number_text(facts.get("best_value", "-"))
        lines.append(words["best"].format(**best))
    if facts.get("time_s"):
        spent = words["spent"].format(spent=duration(facts["time_s"], language))
        saved = facts.get("saved_s")
        text = words["saved"].format(saved=duration(saved, language)) if saved else ""
        lines.append(words["and"].join(filter(None, [spent, text])))
    return lines


def _outcome(outcome: str, reasons: Mapping[str, int], language: Language) -> str:
    key = "left_out" if outcome == "interrupted" else outcome
    head = f"{WORDS[language].get(key, harmless(outcome))}: {sum(reasons.values())}"
    ranked = sorted(reasons.items(), key=lambda item: -item[1])
    named = [f"{reason_text(r, language)} {n}" for r, n in ranked if r]
    return f"{head} ({'; '.join(named)})" if named else head


def _ids(group: Sequence[Alert], *, with_steps: bool = True) -> str:
    out = []
    for alert in group:
        at = f"@{alert.step}" if with_steps and alert.step is not None else ""
        out += [f"{harmless(trial)}{at}" for trial in alert.trials]
    return ", ".join(out)
