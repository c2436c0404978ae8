"""The page of the API's description works under its policy, and tests hear of errors in pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.kafka import wait_until
from tests.page.browsing import Troubles


def test_the_description_is_shown_and_loads_nothing_from_elsewhere(opened: Callable[..., Page]) -> None:
    page = opened("/docs")
    expect(page.get_by_text("/queries/{handle}/snapshot")).to_be_visible()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("console.error('it broke')", "it broke"),
        ("setTimeout(() => { throw new Error('it was thrown') })", "exception: it was thrown"),
        ("document.head.append(Object.assign(document.createElement('script'), {text: '1'}))", "script-src"),
        ("fetch('http://elsewhere.invalid/').catch(() => 0)", "elsewhere"),
    ],
    ids=["console", "exception", "policy", "elsewhere"],
)
def test_an_error_in_a_page_fails_its_test(
    opened: Callable[..., Page], troubles: Troubles, script: str, told: str
) -> None:
    page = opened("/docs")
    page.evaluate(f"() => {{ {script} }}")
    page.wait_for_timeout(0)
    wait_until(lambda: page.evaluate("1") and any(told in one for one in troubles.found), what=told)
    with pytest.raises(AssertionError, match=told):
        troubles.check()
    troubles.allow(".")
