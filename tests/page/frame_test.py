"""The frame of the page: where one is, how the connection is, who one is; on every size, by keyboard."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.broker.running import READY_S, Broker
from tests.kafka import wait_until
from tests.page.browsing import PHONE, WIDE, Troubles, assert_accessible, assert_fits, new_page
from tests.page.frame import NO_CONNECTION, banner, is_live

VIEWS = {
    "Overview": "/#/",
    "Queries": "/#/queries",
    "Plan": "/#/plan",
    "Sources": "/#/sources",
    "Changes": "/#/changes",
    "Statements": "/#/statements",
}
TOKENS = {"HTTP_TOKEN": "the-first-token-of-this-broker", "HTTP_READ_TOKEN": "the-token-that-only-reads"}


def heading(page: Page) -> str:
    return page.get_by_role("main").get_by_role("heading").first.inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_is_accessible_and_fits_a_phone_and_a_wall(
    browser: Browser, troubles: Troubles, theme: str
) -> None:
    page = new_page(browser, troubles, dark=theme == "dark")
    page.goto("/")
    is_live(page)
    for title, path in VIEWS.items():
        page.goto(path)
        expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
        expect(page.get_by_role("link", name=title, exact=True).first).to_have_attribute(
            "aria-current", "page"
        )
        for size in (PHONE, WIDE):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            assert_fits(page)
        page.set_viewport_size({"width": 1280, "height": 800})
        assert_accessible(page, f"{title}, {theme}")


def test_a_view_on_a_phone_begins_at_its_top_and_its_link_is_in_sight(
    opened: Callable[..., Page], phone: Page
) -> None:
    opened("/", phone)
    is_live(phone)
    phone.evaluate("scrollTo(0, 500)")
    link = phone.get_by_role("link", name="Statements", exact=True)
    link.evaluate("link => link.click()")
    expect(phone.get_by_role("heading", name="Statements", level=1)).to_be_in_viewport(ratio=1)
    expect(link).to_be_in_viewport(ratio=1)
    assert phone.evaluate("scrollY") == 0


def test_the_keyboard_alone_reaches_every_view_and_the_switches(opened: Callable[..., Page]) -> None:
    page = opened("/")
    is_live(page)
    page.keyboard.press("Tab")
    expect(page.get_by_text("To the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    reached = []
    page.reload()  # the keys begin above the views again, however long the Overview is
    is_live(page)
    for _ in range(20):
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.innerText || document.activeElement.ariaLabel")
        if at == "Statements":
            page.keyboard.press("Enter")
            break
        reached.append(at)
    assert list(VIEWS)[:-1] == [one for one in reached if one in VIEWS]
    expect(page).to_have_url(re.compile("#/statements$"))


def test_the_theme_is_switched_and_kept(opened: Callable[..., Page]) -> None:
    page = opened("/")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Use the dark theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="Use the light theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_the_switch_of_the_reader_is_kept_in_the_tab(opened: Callable[..., Page]) -> None:
    page = opened("/")
    page.get_by_role("button", name="May edit").click()
    page.reload()
    expect(page.get_by_role("button", name="Read only")).to_have_attribute("aria-pressed", "true")
    other = page.context.new_page()
    other.goto("/")
    expect(other.get_by_role("button", name="May edit")).to_be_visible()


def test_an_address_that_is_no_view_says_so(opened: Callable[..., Page]) -> None:
    page = opened("/#/nowhere")
    expect(page.get_by_role("main")).to_contain_text("There is no such view")


def test_the_page_says_that_the_worker_is_gone_and_comes_back(
    opened: Callable[..., Page], service: Broker, troubles: Troubles
) -> None:
    troubles.allow(NO_CONNECTION)
    page = opened("/")
    is_live(page)
    before = service.http.get("/status").json()
    worker = service.children()["broker.worker"]
    worker.send_signal(signal.SIGKILL)
    expect(banner(page)).to_contain_text("does not answer")
    expect(page.get_by_role("region", name="Health")).to_contain_text("not known")
    expect(banner(page)).to_contain_text(re.compile(r"of \d\d:\d\d:\d\d UTC"))
    service.await_ready()
    is_live(page)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert service.http.get("/status").json() != before


def test_a_page_is_left_open_while_the_broker_starts_again_with_another_token(
    browser: Browser, kafka: str, tmp_path: Path, service_id: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, **TOKENS)
    one.launch()
    wait_until(lambda: one.readiness()[0] == 200, READY_S, "the broker is ready")
    troubles = Troubles(one.url)
    troubles.allow(rf"{NO_CONNECTION}|status of 40[13]")
    page = new_page(browser, troubles)
    page.goto("/")
    give(page, "not the token")
    expect(page.get_by_role("dialog")).to_contain_text("not accepted")
    give(page, TOKENS["HTTP_READ_TOKEN"])
    is_live(page)
    expect(page.get_by_role("button", name="Read only")).to_be_disabled()
    page.evaluate("sessionStorage.clear()")
    page.reload()
    give(page, TOKENS["HTTP_TOKEN"])
    is_live(page)
    expect(page.get_by_role("button", name="May edit")).to_be_enabled()
    assert all(token not in page.url for token in TOKENS.values())

    one.stop()
    expect(banner(page)).to_contain_text("does not answer")
    one.settings["HTTP_TOKEN"] = "the-second-token-of-this-broker"
    one.launch()
    wait_until(lambda: one.readiness()[0] == 200, READY_S, "the broker is ready")
    give(page, one.settings["HTTP_TOKEN"])
    is_live(page)
    page.context.close()
    troubles.check()


def give(page: Page, token: str) -> None:
    page.get_by_role("dialog").get_by_label("Token", exact=True).fill(token)
    page.keyboard.press("Enter")


def test_a_slow_line_brings_the_page_all_the_same(browser: Browser, troubles: Troubles) -> None:
    page = new_page(browser, troubles)
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    line.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 150, "downloadThroughput": 100_000, "uploadThroughput": 50_000},
    )
    page.goto("/")
    is_live(page)


def test_a_clock_that_differs_is_told(page: Page) -> None:
    page.add_init_script("const now = Date.now; Date.now = () => now() - 300_000;")
    page.goto("/")
    is_live(page)
    expect(page.get_by_text(re.compile("broker's clock is (4 min 5\\d s|5 min.*) ahead"))).to_be_visible()
