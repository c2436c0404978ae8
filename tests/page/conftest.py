"""A browser and a broker that all tests of the page share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.broker.running import Broker, broker, cleaned_behind, unique_name
from tests.page.browsing import DEADLINE_MS, PHONE, Troubles, launch, new_page


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium; each page has a context of its own in it."""
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as playwright:
        launched = launch(playwright)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def service(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests that do not stop it; they name their streams by ``name``."""
    directory = tmp_path_factory.mktemp("page")
    with broker(kafka, directory / "data", f"t{uuid.uuid4().hex[:12]}") as one:
        yield one


@pytest.fixture(autouse=True)
def _cleaned_behind() -> Iterator[None]:
    """Whatever a test starts is gone after it, passed or failed."""
    with cleaned_behind():
        yield


@pytest.fixture
def name() -> str:
    """A stream and topic name that no other test uses."""
    return unique_name()


@pytest.fixture
def troubles(browser: Browser, service: Broker) -> Iterator[Troubles]:
    """Fails the test when its pages had an error that it does not ``allow``; pages are closed after it."""
    found = Troubles(service.url)
    yield found
    for context in list(browser.contexts):
        context.close()
    found.check()


@pytest.fixture
def page(browser: Browser, troubles: Troubles) -> Page:
    """An empty page: light, of a desktop's size."""
    return new_page(browser, troubles)


@pytest.fixture
def dark(browser: Browser, troubles: Troubles) -> Page:
    """As ``page``, of a reader who prefers dark colours."""
    return new_page(browser, troubles, dark=True)


@pytest.fixture
def phone(browser: Browser, troubles: Troubles) -> Page:
    """As ``page``, of the least width that is promised."""
    return new_page(browser, troubles, size=PHONE, touch=True)


@pytest.fixture
def opened(page: Page) -> Callable[..., Page]:
    """``opened(path, page=page)``: the page at a path of the shared broker, such as ``/#/queries``."""

    def open_at(path: str = "/", page: Page = page) -> Page:
        page.goto(path)
        return page

    return open_at
