"""The view of all queries: thousands are scrolled, searched, sorted, grouped, paused and dropped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import orjson
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tests.page.browsing import assert_accessible, assert_fits

MANY = 3_000
STREAM = "many_queries"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def many(service: Broker) -> Iterator[list[str]]:
    """Thousands of queries of three shapes; the ids in the order in which they came."""
    service.create(stream_sql(STREAM))
    lines = [
        {"sql": f"SELECT id FROM {STREAM} WHERE v > {number} AND id = {number}"}
        if number % 3
        else {"sql": f"SELECT COUNT(*) AS n FROM {STREAM} WHERE v < {number}"}
        for number in range(MANY)
    ]
    lines[1] = {"sql": f"SELECT '{HOSTILE}' AS t FROM {STREAM} WHERE v > 5"}
    body = b"\n".join(map(orjson.dumps, lines))
    reply = service.http.post("/queries", content=body, headers={"Content-Type": "application/x-ndjson"})
    told = [orjson.loads(line) for line in reply.text.splitlines()]
    assert [one["state"] for one in told] == ["RUNNING"] * MANY
    yield [one["query_id"] for one in told]
    service.drop([STREAM])


def grid(page: Page) -> Locator:
    return page.get_by_role("grid")


def loaded(page: Page) -> Locator:
    """Rows in the document whose cells are there."""
    return grid(page).locator(".room > [role=row]:not(.waiting)")


def opened_at(opened: Callable[..., Page], page: Page, search: str = STREAM, more: str = "") -> Page:
    opened(f"/#/queries?search={search}{more}", page)
    expect(loaded(page).first).to_be_visible()
    return page


def row_at(page: Page, place: int) -> Locator:
    """The row of a place, from 0, that is in sight and loaded."""
    return grid(page).locator(f'.room > [role=row]:not(.waiting)[aria-rowindex="{place + 2}"]')


def test_thousands_are_scrolled_by_key_and_each_row_is_in_its_place(
    opened: Callable[..., Page], page: Page, many: list[str]
) -> None:
    opened_at(opened, page, more="&sort=id")
    ordered = sorted(many)
    table = grid(page)
    expect(table).to_have_attribute("aria-rowcount", str(MANY + 1))
    table.focus()
    page.keyboard.press("End")
    expect(row_at(page, MANY - 1)).to_contain_text(ordered[-1])
    expect(row_at(page, MANY - 1)).to_be_in_viewport()
    assert table.get_attribute("aria-activedescendant") == row_at(page, MANY - 1).get_attribute("id")
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowUp")
    active = grid(page).locator(".room > .active:not(.waiting)")
    expect(active).to_be_in_viewport()
    place = int(active.get_attribute("aria-rowindex") or 0) - 2
    assert MANY - 100 < place < MANY - 3
    expect(active).to_contain_text(ordered[place])
    table.evaluate("(box) => { box.scrollTop = box.scrollHeight / 2; }")
    expect(row_at(page, MANY // 2)).to_contain_text(ordered[MANY // 2])
    assert len(page.locator(".room > [role=row]").all()) < 100
    page.keyboard.press("Home")
    expect(row_at(page, 0)).to_contain_text(ordered[0])
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"#/queries/{ordered[0]}$"))


def test_a_search_and_a_sort_are_in_the_address_and_the_place_stays_while_figures_come(
    opened: Callable[..., Page], page: Page, many: list[str]
) -> None:
    opened_at(opened, page)
    page.get_by_role("searchbox").fill(f"{STREAM} 299")
    expect(grid(page)).to_have_attribute("aria-rowcount", re.compile(r"^\d\d?$"))
    expect(page).to_have_url(re.compile("search=many_queries"))
    page.get_by_role("searchbox").fill(STREAM)
    expect(grid(page)).to_have_attribute("aria-rowcount", str(MANY + 1))
    head = page.get_by_role("columnheader", name="Memory")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(page).to_have_url(re.compile("sort=memory_bytes&order=asc"))
    grid(page).evaluate("(box) => { box.scrollTop = 20_000; }")
    figures = page.locator(".heading time")
    before = figures.inner_text()
    expect(figures).not_to_have_text(before)
    assert grid(page).evaluate("(box) => box.scrollTop") == 20_000
    expect(loaded(page).first).to_be_visible()
    again = page.context.new_page()
    again.goto(page.url)
    expect(again.get_by_role("columnheader", name="Memory")).to_have_attribute("aria-sort", "ascending")
    expect(again.get_by_role("searchbox")).to_have_value(STREAM)


def test_shapes_group_the_queries_and_open_them(
    opened: Callable[..., Page], page: Page, many: list[str]
) -> None:
    opened_at(opened, page)
    page.get_by_role("button", name="By shape").click()
    expect(grid(page)).to_have_attribute("aria-rowcount", "4")
    expect(loaded(page)).to_have_count(3)
    expect(loaded(page).first).to_contain_text(f"SELECT id FROM {STREAM} WHERE v > ? AND id = ?")
    expect(loaded(page).first).to_contain_text("1,999")
    assert_accessible(page)
    loaded(page).nth(1).get_by_role("link").click()
    expect(grid(page)).to_have_attribute("aria-rowcount", "1001")
    expect(page.get_by_text("Of the shape")).to_be_visible()
    expect(page.locator(".shape-chip code")).to_have_text(f"SELECT COUNT(*) AS n FROM {STREAM} WHERE v < ?")
    page.get_by_role("button", name="Show all shapes").click()
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_several_are_selected_paused_and_dropped_after_a_question(
    opened: Callable[..., Page], page: Page, service: Broker, many: list[str]
) -> None:
    chosen = sorted(one for place, one in enumerate(many) if place in (1_499, 1_500))

    def states() -> list[str]:
        return [service.http.get(f"/queries/{one}").json().get("state") for one in chosen]

    opened_at(opened, page, search=f"{STREAM} {many[1_499]}")
    grid(page).focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.get_by_role("searchbox").fill(many[1_500])
    expect(row_at(page, 0)).to_contain_text(many[1_500])
    row_at(page, 0).get_by_role("checkbox").check()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog", name="Pause 2 queries")
    expect(dialog).to_contain_text("cannot be read")
    assert states() == ["RUNNING", "RUNNING"]
    dialog.get_by_role("button", name="Pause").click()
    expect(dialog).to_contain_text("2 paused")
    assert states() == ["PAUSED", "PAUSED"]
    dialog.get_by_role("button", name="Close").last.click()
    expect(row_at(page, 0)).to_contain_text("PAUSED")
    page.get_by_role("button", name="Select all 1").click()
    page.get_by_role("button", name="Drop", exact=True).click()
    dialog = page.get_by_role("dialog", name="Drop 1 query")
    dialog.get_by_role("button", name="Drop").click()
    expect(dialog).to_contain_text("1 dropped")
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_text("No query is like that.")).to_be_visible()
    wait_until(lambda: sorted(map(str, states())) == ["None", "PAUSED"], what="one has gone")


def test_hostile_texts_are_text_and_who_only_looks_selects_nothing(
    opened: Callable[..., Page], page: Page, many: list[str]
) -> None:
    opened_at(opened, page, search="onerror")
    expect(row_at(page, 0)).to_contain_text(HOSTILE)
    expect(page.locator("main img")).to_have_count(0)
    expect(page.get_by_role("button", name="Drop", exact=True)).to_be_visible()
    page.get_by_role("button", name="May edit").click()
    expect(page.get_by_role("button", name="Drop", exact=True)).to_have_count(0)
    expect(row_at(page, 0).get_by_role("checkbox")).to_have_count(0)
    page.get_by_role("searchbox").fill("no query has these words")
    expect(page.get_by_text("No query is like that.")).to_be_visible()


def test_the_view_is_accessible_in_the_dark_and_fits_a_phone(
    opened: Callable[..., Page], dark: Page, phone: Page, many: list[str]
) -> None:
    assert_accessible(opened_at(opened, dark))
    assert_fits(opened_at(opened, phone))
