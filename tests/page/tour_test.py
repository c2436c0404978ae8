"""The two-minute tour of docs/page.md, step by step, over the demo's moving data."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.broker.running import Broker
from tests.kafka import wait_until
from tests.page.browsing import Troubles, assert_accessible, assert_fits, new_page
from tests.page.frame import NO_CONNECTION, is_live
from tests.page.scene import Scene, scene
from tureen.protocol import query_id

SQL = "SELECT dest, COUNT(*) AS flights FROM flights [RANGE 1 DAY] GROUP BY dest"


@pytest.fixture(scope="module")
def moving(service: Broker) -> Iterator[Scene]:
    """Flights that come until the tour is over."""
    with scene(service, rows=20_000, queries=40, followed=20, past=1_500, days_per_s=0.02) as found:
        yield found


@pytest.fixture(scope="module")
def walked(browser: Browser, service: Broker, moving: Scene) -> Iterator[Page]:
    """One tab for the whole tour: the handle that a step was given opens the answer in the next."""
    troubles = Troubles(service.url)
    troubles.allow(rf"{NO_CONNECTION}|status of 409")  # a plan that is another text is applied as one
    page = new_page(browser, troubles)
    yield page
    page.context.close()
    troubles.check()


@pytest.fixture(scope="module")
def registered() -> dict[str, str]:
    """The ``id`` of the query that the tour registers."""
    return {}


def view(page: Page, title: str) -> None:
    """Go to a view by its link."""
    page.get_by_role("navigation", name="Views").get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()


def confirmed(page: Page) -> None:
    """Say yes where it is asked for."""
    dialog = page.get_by_role("dialog")
    if dialog.count():
        dialog.get_by_role("button").last.click()
        expect(dialog).to_have_count(0)


def finished(page: Page) -> None:
    """What every step of the tour leaves: a page that anybody can use."""
    assert_fits(page)
    assert_accessible(page)


def test_1_the_overview_is_live(walked: Page) -> None:
    walked.goto("/")
    is_live(walked)
    main = walked.get_by_role("main")
    expect(main.get_by_role("link", name="flights", exact=True).first).to_be_visible()
    expect(main).to_contain_text(re.compile(r"Rows in[^a-z]*[1-9][\d.,]*k?/s"))
    finished(walked)


def test_2_queries_are_searched_and_sorted(walked: Page, moving: Scene) -> None:
    view(walked, "Queries")
    walked.get_by_role("searchbox").first.fill("ORDER BY flights DESC, des")
    found = query_id(moving.handle("top ten airports, last day"))
    row = walked.get_by_role("row").filter(has_text=found)
    expect(row).to_be_visible()
    finished(walked)


def test_3_a_query_is_registered_and_its_answer_changes(walked: Page, registered: dict[str, str]) -> None:
    view(walked, "Statements")
    walked.get_by_role("textbox", name="SQL statements").click()
    walked.keyboard.press("Control+A")
    walked.keyboard.insert_text(SQL)
    walked.get_by_role("button", name="Register …").click()
    finished(walked)
    walked.get_by_role("dialog").get_by_role("button", name="Register", exact=True).click()
    main = walked.get_by_role("main")
    expect(main).to_contain_text("It is shown here once")
    handle = main.locator(".handle code").first.inner_text()
    main.locator("a[href^='#/queries/']").first.click()
    table = main.get_by_role("table").filter(has=walked.get_by_role("columnheader", name="dest"))
    expect(table).to_be_visible()
    before = table.inner_text()
    wait_until(lambda: table.inner_text() != before, what="the answer changes")
    assert handle not in walked.url
    registered["id"] = walked.url.rsplit("/", 1)[1]
    finished(walked)


def test_4_the_slider_shows_what_it_was(walked: Page) -> None:
    walked.get_by_role("tab", name="History").click()
    slider = walked.get_by_role("slider", name="Instant of the answer")
    expect(slider).to_be_visible()
    then = walked.get_by_role("heading", name=re.compile("^Answer at"))
    expect(then).to_be_visible()
    before = then.inner_text()
    slider.focus()
    for _ in range(3):
        walked.keyboard.press("PageDown")
    expect(then).not_to_have_text(before)
    finished(walked)


def test_5_it_is_paused_and_resumed(walked: Page) -> None:
    heading = walked.get_by_role("main").locator(".heading").first
    heading.get_by_role("button", name="Pause").click()
    dialog = walked.get_by_role("dialog")
    expect(dialog).to_contain_text("no answer until it is resumed")
    finished(walked)
    dialog.get_by_role("button", name="Pause").click()
    expect(heading).to_contain_text("PAUSED")
    heading.get_by_role("button", name="Resume").click()
    dialog.get_by_role("button", name="Resume").click()
    expect(heading).to_contain_text("RUNNING")


def test_6_its_maintenance_is_changed_and_what_that_does_is_said_before(walked: Page) -> None:
    walked.get_by_role("tab", name="Options").click()
    walked.get_by_role("button", name="Change maintenance").click()
    form = walked.get_by_role("form", name="Change maintenance")
    form.get_by_label(re.compile("^maintenance")).first.select_option("eager")
    expect(form).to_contain_text(re.compile("answer", re.IGNORECASE))
    finished(walked)
    form.get_by_role("button", name="Apply").click()
    expect(walked.get_by_role("main")).to_contain_text("eager, strategy")


def test_7_its_plan_is_drawn(walked: Page, moving: Scene) -> None:
    name = query_id(moving.handle("carriers, last hour"))
    walked.goto(f"/#/plan?query={name}")
    drawing = walked.get_by_role("group", name=re.compile("^The running plan"))
    expect(drawing).to_be_visible()
    expect(drawing.get_by_role("button").first).to_be_visible()
    finished(walked)


def test_8_a_burst_is_switched_on(walked: Page, moving: Scene) -> None:
    view(walked, "Changes")
    walked.get_by_role("switch", name="Switch burst").click()
    dialog = walked.get_by_role("dialog")
    finished(walked)
    dialog.get_by_role("button", name=re.compile("on|Resume", re.IGNORECASE)).last.click()

    def begun() -> bool:
        moving.bursts.tick()
        return moving.bursts.is_on

    wait_until(begun, what="the burst begins")
    expect(walked.get_by_role("switch", name="Switch burst")).to_have_attribute("aria-checked", "true")
    moving.bursts.switch()


def test_9_a_policy_is_changed(walked: Page) -> None:
    shown = walked.get_by_role("main").get_by_role("group").filter(has_text=re.compile("^scheduler"))
    shown.first.locator("summary").click()
    shown.first.get_by_role("button", name="Change policy").click()
    form = walked.get_by_role("form", name="Change policy")
    form.get_by_role("combobox").select_option("greedy")
    form.get_by_role("button", name="Apply").click()
    expect(form).to_have_count(0)
    expect(shown.first).to_contain_text("greedy")
    finished(walked)


def test_a_plan_is_edited(walked: Page, registered: dict[str, str]) -> None:
    walked.goto(f"/#/changes/plan/{registered['id']}")
    file = walked.get_by_label("The plan as a file")
    expect(file).to_have_value(re.compile("RANGE 1 day", re.IGNORECASE))
    file.fill(re.sub("RANGE 1 day", "RANGE 2 days", file.input_value(), flags=re.IGNORECASE))
    expect(walked.get_by_role("main")).to_contain_text("It is right")
    finished(walked)
    walked.get_by_role("button", name=re.compile("^Apply")).click()
    confirmed(walked)
    view(walked, "Queries")
    walked.goto(f"/#/queries/{registered['id']}")
    expect(walked.get_by_role("main")).to_contain_text(re.compile("2 DAYS", re.IGNORECASE))


def test_b_the_worker_is_killed_and_the_page_comes_back(walked: Page, service: Broker) -> None:
    view(walked, "Overview")
    is_live(walked)
    service.children()["broker.worker"].send_signal(signal.SIGKILL)
    expect(walked.get_by_role("alert").first).to_contain_text("does not answer")
    service.await_ready()
    is_live(walked)
    expect(walked.get_by_role("alert").filter(has_text="does not answer")).to_have_count(0)
    view(walked, "Queries")
    expect(walked.get_by_role("row").nth(1)).to_be_visible()
