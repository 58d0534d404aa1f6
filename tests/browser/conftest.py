# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The browser, without a network.

CHROMIUM is its path, as the gate sets it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser, for all tests."""
    with sync_playwright() as playwright:
        # The tests run as root in containers.
        started = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A profile of its own, offline."""
    opened = browser.new_context(offline=True)
    yield opened
    opened.close()


@pytest.fixture
def measure_overflow() -> Callable[[Page], int]:
    """How many pixels a page is wider than its window."""
    window = "document.documentElement"
    return lambda page: int(page.evaluate(f"{window}.scrollWidth - {window}.clientWidth"))
