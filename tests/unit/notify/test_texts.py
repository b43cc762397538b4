"""Words, names and numbers."""

from __future__ import annotations

import string

import pytest

from tune_guard.notify.texts import (
    WORDS,
    duration,
    harmless,
    number_text,
    reason_text,
)


def fields(template: str) -> set[str]:
    """Return what a template asks for."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_both_languages_have_the_same_words_with_the_same_fields() -> None:
    """No text is missing, and none asks for a fact that the other does not have."""
    assert WORDS["en"].keys() == WORDS["zh"].keys()
    for key, english in WORDS["en"].items():
        assert fields(english) == fields(WORDS["zh"][key]), key


@pytest.mark.parametrize(
    "name", ["train_a1b2c_00042", "lr=0.01,wd=1e-4", "试验-7", "a b", "x(1)/y:2"]
)
def test_plain_names_stay_as_they_are(name: str) -> None:
    """They can be copied and searched for."""
    assert harmless(name) == name


@pytest.mark.parametrize(
    "bad",
    [
        "<b>",
        "[a](b)",
        "**b**",
        "`c`",
        "@all",
        "a & b",
        "# h",
        "a|b",
        "~~s~~",
        "\\_",
        "<!channel>",
        "http://x",
        "a\nb",
        "a\u202eb",
        "a\u200bb",
        "a\x00b",
        "\ud800",
    ],
)
def test_what_any_service_takes_for_markup_is_changed(bad: str) -> None:
    """Once for all, and a second time changes nothing more."""
    once = harmless(bad)
    assert once != bad
    assert harmless(once) == once
    assert once.isprintable()


def test_reasons_have_a_meaning_in_chinese() -> None:
    """The id stands beside it; foreign reasons have only that."""
    assert reason_text("plateau", "zh") == "停滞不前（plateau）"
    assert reason_text("mine", "zh") == "mine"
    assert reason_text("plateau", "en") == "plateau"


@pytest.mark.parametrize(
    ("seconds", "text"), [(30.0, "0.5 min"), (3599.0, "60.0 min"), (3600.0, "1.0 h")]
)
def test_durations_have_the_unit_that_fits(seconds: float, text: str) -> None:
    """From an hour on it is hours."""
    assert duration(seconds, "en") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ("NaN", "NaN"),
        ("<x>", "＜x＞"),
    ],
)
def test_numbers_are_short_and_never_raise(value: object, text: str) -> None:
    """Also those that came back from a file as text."""
    assert number_text(value) == text
