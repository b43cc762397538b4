"""The words of alerts, in English and Chinese, and names made harmless."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, Literal

from tune_guard.strict_json import plain

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

_LOOKALIKES = str.maketrans(
    {
        "`": "'",
        "<": "\uff1c",
        ">": "\uff1e",
        "&": "\uff06",
        "@": "\uff20",
        "*": "\uff0a",
        "[": "\uff3b",
        "]": "\uff3d",
        "|": "\uff5c",
        "~": "\uff5e",
        "#": "\uff03",
        "\\": "\uff3c",
    }
)


def harmless(text: object) -> str:
    r"""Return a name or sentence that no service can take for markup.

    Each service has a markup of its own: Markdown, HTML, or ``<!channel>``. What
    any of them begins with becomes its full-width lookalike; line breaks and
    unseen characters, which can reverse or hide text, become blanks.

    Example:
        >>> harmless("<b>@all\n[x](http://y)")
        '＜b＞＠all ［x］(http：//y)'
    """
    return _harmless(str(text))


# A digest is composed anew for each length that is tried.
@functools.lru_cache(maxsize=8192)
def _harmless(line: str) -> str:
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " for char in line)
    return " ".join(line.translate(_LOOKALIKES).replace("://", "\uff1a//").split())


WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "fault_one": "Machine fault ({reason}) in trial {trial}{step}",
        "fault_many": "Machine faults ({reason}) in {n} trials",
        "again": "The same hyperparameters are tried again.",
        "first_nan_one": "First non-finite trial of the sweep: {trial}{step}",
        "first_nan_many": "First non-finite trials of {n} runs",
        "cut_one": "Cut by the guard ({reason}): trial {trial}{step}",
        "cut_many": "Cut by the guard ({reason}): {n} trials",
        "share": "{dead} of {trials} trials died of {reason}",
        "region": (
            "{ki} of these {k} have {param} {relation} {bound}; of the other {o},"
            " {oi} do."
        ),
        "no_region": "No single hyperparameter tells them apart from the others.",
        "above": "at or above",
        "below": "at or below",
        "is": "equal to",
        "end": "The sweep has ended: {trials} trials",
        "end_process": "Process {process} has ended: {trials} trials started",
        "interrupted": "The sweep was interrupted: {trials} trials",
        "test": "This is a test. Alerts of tune_guard arrive here.",
        "step": " at step {step}",
        "first": "First of them: ",
        "trials": "Trials: ",
        "on": "on {host}",
        "gpu": "GPU {gpu}",
        "best": "Best: trial {trial}, {metric} {value}",
        "spent": "Compute: {spent} spent",
        "saved": "{saved} saved by cutting",
        "open": "not ended",
        "not_cut": "not cut",
        "and": ", ",
        "part": "{title} ({count} events)",
        "completed": "completed",
        "guard": "cut by the guard",
        "pruner": "cut by a pruner",
        "scheduler": "cut by a scheduler",
        "criterion": "ended by a criterion",
        "error": "failed",
        "experiment_stop": "ended with the experiment",
        "left_out": "interrupted",
    },
    "zh": {
        "fault_one": "机器故障：{reason}，试验 {trial}{step}",
        "fault_many": "机器故障：{reason}，{n} 个试验",
        "again": "将用相同的超参数重试。",
        "first_nan_one": "本次搜索首个出现 NaN/Inf 的试验：{trial}{step}",
        "first_nan_many": "{n} 次运行首次出现 NaN/Inf",
        "cut_one": "已中止：{reason}，试验 {trial}{step}",
        "cut_many": "已中止：{reason}，{n} 个试验",
        "share": "{trials} 个试验中有 {dead} 个失败，原因：{reason}",
        "region": (
            "这 {k} 个中有 {ki} 个的 {param} {relation} {bound}；其余 {o} 个中有"
            " {oi} 个如此。"
        ),
        "no_region": "没有单个超参数能把它们与其余试验区分开。",
        "above": "不小于",
        "below": "不大于",
        "is": "等于",
        "end": "搜索已结束：共 {trials} 个试验",
        "end_process": "进程 {process} 已结束：启动了 {trials} 个试验",
        "interrupted": "搜索被中断：共 {trials} 个试验",
        "test": "这是一条测试消息：tune_guard 的告警将发送到这里。",
        "step": "，第 {step} 步",
        "first": "其中第一个：",
        "trials": "试验：",
        "on": "主机 {host}",
        "gpu": "GPU {gpu}",
        "best": "最佳：试验 {trial}，{metric} {value}",
        "spent": "算力：已用 {spent}",
        "saved": "因中止节省 {saved}",
        "open": "未结束",
        "not_cut": "未被中止",
        "and": "，",
        "part": "{title}（{count} 个事件）",
        "completed": "完成",
        "guard": "被守护中止",
        "pruner": "被剪枝器中止",
        "scheduler": "被调度器中止",
        "criterion": "按条件结束",
        "error": "出错",
        "experiment_stop": "随实验结束",
        "left_out": "被中断",
    },
}

REASONS_ZH: Mapping[str, str] = {
    "non_finite": "出现 NaN/Inf",
    "amp_scale_collapse": "混合精度缩放崩溃",
    "gradient_explosion": "梯度爆炸",
    "divergence": "损失发散",
    "plateau": "停滞不前",
    "no_progress": "毫无进展",
    "relapse": "性能倒退",
    "behind": "明显落后",
    "lr_floor": "学习率已到底",
    "thermal_throttle": "GPU 过热降频",
    "slow_step": "单步变慢",
    "gpu_fault": "GPU 故障",
    "stalled": "长时间无上报",
}


def reason_text(reason: str, language: Language) -> str:
    """Return a reason's name for people: its id, and in Chinese what it means."""
    meaning = REASONS_ZH.get(reason) if language == "zh" else None
    name = harmless(reason)
    return f"{meaning}（{name}）" if meaning else name


def duration(seconds: float, language: Language) -> str:
    """Return a time span in the unit that fits it.

    Example:
        >>> duration(90.0, "en"), duration(7200.0, "zh")
        ('1.5 min', '2.0 小时')
    """
    hour, minute = ("h", "min") if language == "en" else ("小时", "分钟")
    if seconds >= 3600:  # noqa: PLR2004 - an hour
        return f"{seconds / 3600:.1f} {hour}"
    return f"{seconds / 60:.1f} {minute}"


def number_text(value: Any) -> str:
    """Return a number in six digits, and anything else made harmless."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    value = plain(value)
    return harmless(value)
