# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of build/docs/html on a phone and on a desk, in both languages. The gate ``docs`` builds them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from gates.docs import WORK
from playwright.sync_api import BrowserContext, Page

PAGES = [
    f"guide_{name}{end}" for name in ("quickstart", "sharing", "troubleshooting", "from_manual") for end in ("", "_zh")
]
WIDTHS = {"phone": 390, "desk": 1280}
HEIGHT = 900
RIGHT = "each => each.getBoundingClientRect().right"


@pytest.fixture(params=PAGES)
def name(request: pytest.FixtureRequest) -> str:
    """The name of a page."""
    return str(request.param)


@pytest.fixture
def page(context: BrowserContext, name: str) -> Page:
    """A page in a window."""
    opened = context.new_page()
    opened.goto((WORK / "html" / "docsite" / f"{name}.html").as_uri())
    return opened


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_page_fits_its_window_and_begins_with_its_heading(
    page: Page, measure_overflow: Callable[[Page], int], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": HEIGHT})
    assert measure_overflow(page) <= 0
    heading = page.locator(".body h1").bounding_box()
    assert heading is not None
    assert heading["y"] < HEIGHT


def test_columns_of_tables_are_in_sight_on_a_desk(page: Page) -> None:
    page.set_viewport_size({"width": WIDTHS["desk"], "height": HEIGHT})
    edges = [each.evaluate(RIGHT) for each in page.locator("table.docutils th").all()]
    assert [edge for edge in edges if edge > page.locator(".body").evaluate(RIGHT)] == []


def test_options_of_commands_keep_their_hyphens(page: Page) -> None:
    assert re.findall("\u2013[a-z]+", page.locator(".body").inner_text()) == []


def test_page_states_its_language(page: Page, name: str) -> None:
    assert page.locator("html").get_attribute("lang") == ("zh-CN" if name.endswith("_zh") else "en")


def test_sidebar_lists_guides_alone(page: Page) -> None:
    links = [each.get_attribute("href") or "" for each in page.locator(".sphinxsidebar li.toctree-l1 a").all()]
    assert any(link.startswith("guide_") for link in links)
    assert [link for link in links if link.endswith(("_module.html", "_role.html", "_filter.html"))] == []
