"""The page in a real browser: errors, figures, widths, keyboard, contrast."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome

pytestmark = pytest.mark.chromium

_FIGURES = ("compute", "parameter", "curves", "timeline")


def open_page(browser: Chrome, path: Path, width: int = 1280, scheme: str = "") -> None:
    """Open a page in a window of a width, in light or dark colours."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wish = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [wish]})
    browser.get(path.as_uri())
    # What is folded away is checked too.
    browser.execute_script(
        "document.querySelectorAll('details').forEach(d => d.open = 1)"
    )


def violations(browser: Chrome) -> list[str]:
    """Return what axe-core finds, one line a rule and place."""
    axe = importlib.resources.files("axe_core_python") / "axe.min.js"
    browser.execute_script(axe.read_text(encoding="utf-8"))
    found: dict[str, Any] = browser.execute_async_script(
        "axe.run({resultTypes: ['violations']}).then(arguments[arguments.length - 1])"
    )
    return [
        f"{rule['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("which", ["report", "two"])
def test_the_console_stays_empty(
    browser: Chrome, which: str, request: pytest.FixtureRequest
) -> None:
    """No error, no warning, nothing that the page's own policy refused."""
    open_page(browser, request.getfixturevalue(which))
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("figure", _FIGURES)
def test_every_figure_is_drawn(
    browser: Chrome, report: Path, figure: str, width: int
) -> None:
    """Each has a size, and marks inside it that are as wide as they should be."""
    open_page(browser, report, width)
    boxes = browser.execute_script(
        "return [...document.querySelectorAll(`[data-figure=${arguments[0]}]`)].map("
        "f => [f.getBoundingClientRect().width, f.getBoundingClientRect().height,"
        " f.querySelectorAll('path.curve, rect.run, .stack span, .column span')"
        ".length])",
        figure,
    )
    assert boxes
    for across, down, marks in boxes:
        assert across > 200
        assert down > 80
        assert marks >= 2


def test_every_trial_is_a_curve_and_a_run(browser: Chrome, report: Path) -> None:
    """120 trials, but for those whose only readings were not finite."""
    open_page(browser, report)
    count = "return document.querySelectorAll(arguments[0]).length"
    curves = "[data-figure=curves] path.curve"
    assert browser.execute_script(count, curves) == 120
    assert browser.execute_script(count, "rect.run") == 120


@pytest.mark.parametrize("which", ["report", "two"])
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(
    browser: Chrome, width: int, which: str, request: pytest.FixtureRequest
) -> None:
    """Wide tables scroll within themselves; the page never does."""
    open_page(browser, request.getfixturevalue(which), width)
    across, seen = browser.execute_script(
        "const d = document.documentElement; return [d.scrollWidth, d.clientWidth]"
    )
    assert across <= seen <= width


@pytest.mark.parametrize("width", [1280, 400])
def test_texts_are_large_enough_to_read(
    browser: Chrome, report: Path, width: int
) -> None:
    """Twelve pixels at least, also beside the figures, and at any width."""
    open_page(browser, report, width)
    small = browser.execute_script(
        "return [...document.querySelectorAll('main *')].filter(e =>"
        " [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()) &&"
        " !e.closest('svg') && parseFloat(getComputedStyle(e).fontSize) < 12)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert small == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_axe_finds_nothing(browser: Chrome, two: Path, width: int, scheme: str) -> None:
    """Contrast, names, order of headings, what scrolls can be reached by keyboard."""
    open_page(browser, two, width, scheme)
    # Each contrast is of the wished scheme, not twice of the light one.
    background = browser.execute_script(
        "return getComputedStyle(document.body).backgroundColor"
    )
    assert (
        background == {"light": "rgb(246, 247, 249)", "dark": "rgb(16, 21, 28)"}[scheme]
    )
    assert violations(browser) == []


def test_a_reason_can_be_hidden_with_the_keyboard(
    browser: Chrome, report: Path
) -> None:
    """Tab reaches the box and shows where it is; the space key hides the curves."""
    from selenium.webdriver.common.keys import Keys

    open_page(browser, report)
    drawn = (
        "const lines = document.querySelector('[data-figure=curves] .l0');"
        " return getComputedStyle(lines).display != 'none'"
    )
    assert browser.execute_script(drawn)
    for _ in range(100):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.execute_script("return document.activeElement.matches('.t0')"):
            break
    box = browser.switch_to.active_element
    outline = browser.execute_script(
        "return getComputedStyle(document.activeElement).outlineStyle"
    )
    assert outline == "solid"
    box.send_keys(Keys.SPACE)
    assert not browser.execute_script(drawn)


def test_a_named_trial_leads_to_its_curve(browser: Chrome, report: Path) -> None:
    """The link of the best trial marks its line."""
    open_page(browser, report)
    browser.execute_script("document.querySelector('table a[href^=\"#s0-t\"]').click()")
    width = browser.execute_script(
        "return getComputedStyle(document.querySelector('path:target')).strokeWidth"
    )
    assert width == "4px"
