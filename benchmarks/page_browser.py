"""The page in a real Chromium, for benchmarks: how soon it paints, and how soon a change is in it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Error, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_MS = 60_000
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


class NoBrowser(Exception):
    """Why there is none."""


@contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium. Raises NoBrowser."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise NoBrowser("no Chromium is installed")
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=found, chromium_sandbox=os.geteuid() != 0)
        except Error as failed:
            raise NoBrowser(f"Chromium does not start: {failed.message.splitlines()[0]}") from None
        yield launched
        launched.close()


def first_paint_ms(browser: Browser, url: str) -> tuple[float, float]:
    """Until something is painted, and until the figures of the Overview are there; of a new profile."""
    page = browser.new_context().new_page()
    page.set_default_timeout(DEADLINE_MS)
    began_s = time.perf_counter()
    page.goto(url)
    page.locator(".overview-figures").wait_for()
    figures_ms = (time.perf_counter() - began_s) * 1e3
    painted = page.evaluate(_PAINT)
    page.context.close()
    if painted is None:
        raise NoBrowser("Chromium does not tell when it painted")
    return float(painted), figures_ms


def watching(browser: Browser, url: str, query_id: str, handle: str) -> Page:
    """A page that shows the answer of a query."""
    page = browser.new_context().new_page()
    page.set_default_timeout(DEADLINE_MS)
    kept = json.dumps(json.dumps({query_id: handle}))
    page.add_init_script(f"sessionStorage.setItem('handles', {kept})")
    page.goto(f"{url}/#/queries/{query_id}")
    page.locator("main table, main [role=table]").first.wait_for()
    return page


def await_text(page: Page, text: str) -> None:
    """Until it is shown. (The page's policy forbids what evaluates texts: only locators can wait.)"""
    page.get_by_text(text).first.wait_for()
