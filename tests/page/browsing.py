"""A real Chromium, and what its pages may not do.

Playwright drives the Chromium that is installed; nothing is downloaded. Its blocking interface runs an event
loop in this thread until it is stopped, so tests of this folder use no ``asyncio.run``.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any, cast

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Request

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_MS = 90_000
"""Longest that anything is waited for, in ms: the cores are shared with brokers and Kafka."""

ARGUMENTS = (
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
DESKTOP = (1280, 800)
PHONE = (320, 640)
WIDE = (3840, 2160)

_TELL_VIOLATIONS = """
document.addEventListener('securitypolicyviolation', (event) => {
  console.error(`the policy was violated: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
});
"""


def launch(playwright: Playwright) -> Browser:
    """A browser with a new profile. Skips where there is none; fails instead where CI=true."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = "no Chromium here: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return playwright.chromium.launch(
        executable_path=found, args=list(ARGUMENTS), chromium_sandbox=os.geteuid() != 0
    )


class Troubles:
    """What went wrong in pages: errors on the console, exceptions, violations of the policy, requests to
    elsewhere. Any that is not allowed fails the test."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.found: list[str] = []
        self.allowed: list[str] = []

    def allow(self, pattern: str) -> None:
        """Have a test that provokes an error say so; pattern: a regular expression, found anywhere."""
        self.allowed.append(pattern)

    def watch(self, page: Page) -> None:
        page.add_init_script(_TELL_VIOLATIONS)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.found.append(f"exception: {error}"))
        page.on("request", self._requested)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.found.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:", "blob:")):
            self.found.append(f"request to elsewhere: {request.url}")

    def check(self) -> None:
        left = [one for one in self.found if not any(re.search(pattern, one) for pattern in self.allowed)]
        assert not left, "\n".join(left)


def new_page(
    browser: Browser,
    troubles: Troubles,
    *,
    dark: bool = False,
    size: tuple[int, int] = DESKTOP,
    touch: bool = False,
) -> Page:
    """A page of a context of its own. size: width and height in CSS pixels."""
    context = browser.new_context(
        base_url=troubles.origin,
        color_scheme="dark" if dark else "light",
        viewport={"width": size[0], "height": size[1]},
        has_touch=touch,
        locale="en-GB",
        timezone_id="America/New_York",
        reduced_motion="reduce",
    )
    context.set_default_timeout(DEADLINE_MS)
    page = context.new_page()
    troubles.watch(page)
    return page


@cache
def _axe() -> str:
    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


def assert_accessible(page: Page, what: str = "") -> None:
    """No rule of axe-core is violated by what the page shows now."""
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(_axe())
    result = cast("dict[str, Any]", page.evaluate("axe.run(document, {resultTypes: ['violations']})"))
    told = [
        f"{one['id']} ({one['impact']}): {one['help']}\n"
        + "\n".join(
            f"    {' '.join(map(str, node['target']))}: {node['html'][:200]}" for node in one["nodes"][:5]
        )
        for one in result["violations"]
    ]
    assert not told, "\n".join([f"{what or page.url} violates", *told])


def assert_fits(page: Page) -> None:
    """The page itself does not scroll sideways; boxes in it may."""
    wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room, f"{page.url} is {wide} px wide where {room} px are"
