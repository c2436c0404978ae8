"""Data and helpers that ``frame_test.py`` shares with other tests."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

NO_CONNECTION = (
    r"ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 50[23]"
)


def is_live(page: Page) -> None:
    expect(page.get_by_role("banner").get_by_role("status")).to_have_text("live")


def banner(page: Page) -> Locator:
    """What the frame says of the connection; what a view asked for in vain, it says besides."""
    return page.locator(".banner[role=alert]")
