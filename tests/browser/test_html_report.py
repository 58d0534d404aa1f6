# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of the report in Debian's chromium, without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from gates._common import REPORTS
from playwright.sync_api import Browser, BrowserContext, Page

from ansible_collections.gpu.kubernetes.plugins.module_utils._report.page import build_page
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.texts import LANGUAGES
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._html_report import render_html
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.fleet import (
    HOSTILE,
    make_allocation,
    make_cost,
    make_earlier,
    make_healthy,
    make_report,
)

SCHEMES = ("light", "dark")
OPEN_DETAILS = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@pytest.fixture(scope="session", params=LANGUAGES)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a page with all sections, in each language."""
    report = make_report()
    report["nodes"][0]["node"] = f"gpu1-{HOSTILE}"
    page = build_page(report, make_allocation(findings=[{"message": HOSTILE}]), make_cost(), make_earlier())
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render_html(page, request.param, "", "gpu-report.json", 1_700_000_000), encoding="utf-8")
    return file


@pytest.fixture
def open_page(context: BrowserContext, path: Path) -> Page:
    """The page in a window."""
    opened = context.new_page()
    opened.goto(path.as_uri())
    return opened


def test_page_loads_itself_alone_and_reports_no_error(context: BrowserContext, path: Path) -> None:
    requests: list[str] = []
    messages: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    context.on("console", lambda message: messages.append(message.text))
    context.on("dialog", lambda dialog: messages.append(dialog.message))
    page = context.new_page()
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri(), wait_until="networkidle")
    assert requests == [path.as_uri()]
    assert messages == []


def test_hostile_names_stay_text(open_page: Page) -> None:
    open_page.evaluate(OPEN_DETAILS)
    assert open_page.locator("script").count() == 0
    assert open_page.locator("body").inner_text().count('<script>alert("x")</script>{{ 7 * 191 }}') >= 6


def test_styles_apply_and_scripts_do_not(open_page: Page) -> None:
    """The policy accepts the style sheet of the page, and refuses a script that is added to it."""
    assert open_page.locator("summary").first.evaluate("each => getComputedStyle(each).cursor") == "pointer"
    added = "const each = document.createElement('script'); each.textContent = 'window.ran = true'; document.body.append(each)"
    open_page.evaluate(f"() => {{ {added} }}")
    assert open_page.evaluate("window.ran") is None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_violation(open_page: Page, scheme: Any) -> None:
    open_page.emulate_media(color_scheme=scheme)
    open_page.evaluate(OPEN_DETAILS)
    found = Axe().run(open_page).response
    assert [f"{each['id']}: {each['nodes'][0]['html']}" for each in found["violations"]] == []
    assert {"color-contrast", "document-title", "html-has-lang"} <= {each["id"] for each in found["passes"]}


def test_schemes_differ(open_page: Page) -> None:
    colours = set()
    for scheme in SCHEMES:
        open_page.emulate_media(color_scheme=scheme)
        colours.add(open_page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == len(SCHEMES)


@pytest.mark.parametrize("width", [360, 1440])
def test_page_does_not_scroll_sideways(open_page: Page, measure_overflow: Callable[[Page], int], width: int) -> None:
    open_page.set_viewport_size({"width": width, "height": 800})
    open_page.evaluate(OPEN_DETAILS)
    assert measure_overflow(open_page) <= 0


def test_keyboard_reaches_the_content_and_opens_a_node(open_page: Page) -> None:
    open_page.keyboard.press("Tab")
    assert open_page.evaluate("document.activeElement.className") == "skip"
    open_page.keyboard.press("Enter")
    assert open_page.url.endswith("#content")
    open_page.locator("summary").first.focus()
    open_page.keyboard.press("Enter")
    assert open_page.locator("details").first.evaluate("each => each.open") is True


def test_print_shows_all_details(open_page: Page) -> None:
    inside = open_page.locator("details .inside").first
    assert not inside.is_visible()
    open_page.emulate_media(media="print")
    assert inside.is_visible()
    assert open_page.pdf().startswith(b"%PDF")


def test_page_of_many_nodes_is_shown(context: BrowserContext, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_html(build_page(make_healthy(5000)), "en", "", "", 0), encoding="utf-8")
    assert file.stat().st_size < 5_000_000
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator(".map tbody tr").count() == 5000
    assert page.locator("details").count() == 0


def test_picture_shows_the_page(browser: Browser, tmp_path: Path) -> None:
    """The picture in the guide is a copy of build/reports/report.png."""
    page = build_page(make_report(), make_allocation(), make_cost(), make_earlier())
    file = tmp_path / "report.html"
    file.write_text(render_html(page, "en", "", "gpu-report.json", 1_700_000_000), encoding="utf-8")
    window = browser.new_page(viewport={"width": 1100, "height": 1000})
    window.goto(file.as_uri())
    picture = window.screenshot(path=REPORTS / "report.png")
    window.close()
    width, height = (int.from_bytes(picture[start : start + 4], "big") for start in (16, 20))
    assert (width, height) == (1100, 1000)
