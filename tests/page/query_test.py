"""The view of one query, as a person uses it: the answer as it changes, its past, what is done with it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tests.page.browsing import PHONE, Troubles, assert_accessible, assert_fits
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000
HOSTILE = '<img src=x onerror="fetch(`//elsewhere.invalid`)">'
REFUSED = r"the server responded with a status of 40[49]"
"""What a browser says of a request that is refused, as is meant here."""


def rows(*instants_ms: int) -> list[dict[str, Any]]:
    return [{"id": ms, "v": ms / 2, "s": HOSTILE, "ts": BASE_MS + ms} for ms in instants_ms]


@pytest.fixture
def stream(service: Broker, name: str) -> str:
    """Rows at 0, 1000, 2000 and 3000 ms are visible."""
    service.create(stream_sql(name, columns="id BIGINT, v DOUBLE, s STRING, ts TIMESTAMP"))
    service.send(name, rows(0, 1_000, 2_000, 3_000, 3_001))
    wait_until(lambda: service.source(name)["rows"] == 4, what="the rows are there")
    return name


@pytest.fixture
def show(opened: Callable[..., Page], page: Page) -> Callable[[str, str], Page]:
    """Open a query's tab, and its answer by typing the handle."""

    def shown(handle: str, tab: str = "answer") -> Page:
        opened(f"/#/queries/{query_id(handle)}?tab={tab}")
        page.get_by_label("Handle").fill(handle)
        page.get_by_role("button", name="Open the answer").click()
        return page

    return shown


def cells(page: Page, label: str = "Rows of the answer") -> Locator:
    return page.get_by_role("region", name=label, exact=True).locator("tbody tr:not(.went) td:first-child")


def test_an_answer_is_watched_its_past_is_seen_and_it_is_paused_and_changed(
    service: Broker, stream: str, show: Callable[..., Page], troubles: Troubles
) -> None:
    troubles.allow(REFUSED)
    handle = service.register(
        f'SELECT id, v, s AS "{HOSTILE.replace(chr(34), chr(34) * 2)}", ts FROM {stream} [RANGE 1 SECONDS]'
    )
    page = show(handle)
    expect(cells(page)).to_have_text(["2000", "3000"])
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert handle not in page.url
    assert handle not in page.content()
    assert_accessible(page)
    service.send(stream, rows(4_000, 4_001))
    expect(cells(page)).to_have_text(["3000", "3001", "4000"])
    expect(page.get_by_text("2 came, 1 went while you looked")).to_be_visible()
    expect(page.get_by_label("Plot", exact=True).first).to_be_visible()
    page.get_by_role("button", name="id", exact=True).click()
    expect(cells(page)).to_have_text(["4000", "3001", "3000"])

    page.get_by_role("tab", name="History").click()
    slider = page.get_by_role("slider", name="Instant of the answer")
    then = "Rows of the answer then"
    expect(cells(page, then)).to_have_text(["3000", "3001", "4000"])
    page.get_by_label("Step", exact=True).select_option("1000")
    slider.focus()
    slider.press("ArrowLeft")
    slider.press("ArrowLeft")
    expect(cells(page, then)).to_have_text(["1000", "2000"])
    page.get_by_label("Compare with").select_option("newest")
    expect(cells(page, "Rows that came")).to_have_text(["3000", "3001", "4000"])
    expect(cells(page, "Rows that went")).to_have_text(["1000", "2000"])
    lives = page.get_by_role("region", name="Rows over the period")
    expect(lives.get_by_role("row")).to_have_count(6)
    expect(lives.get_by_role("img").first).to_have_attribute("aria-label", re.compile("^from before to "))
    expect(lives.get_by_role("img").last).to_have_attribute("aria-label", re.compile("^from .* on$"))
    assert_accessible(page)
    page.get_by_role("button", name="Back to live").click()

    page.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("[data-code]").first).to_be_visible()
    assert_accessible(page, "the dialog")
    dialog.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("PAUSED", exact=True)).to_be_visible()
    assert service.state(handle) == "PAUSED"
    page.get_by_role("button", name="Resume").click()
    dialog.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("RUNNING", exact=True)).to_be_visible()
    expect(cells(page)).to_have_count(3)

    page.get_by_role("tab", name="Options").click()
    page.get_by_role("button", name="Change maintenance", exact=True).click()
    page.get_by_label(re.compile("^maintenance")).select_option("eager")
    page.get_by_role("button", name="Apply").click()
    wait_until(
        lambda: service.http.get(f"/queries/{handle}").json()["maintenance"] == "eager", what="it is eager"
    )

    page.get_by_role("tab", name="Plan and cost").click()
    expect(page.get_by_role("region", name="Operators").get_by_role("row")).not_to_have_count(0)
    page.get_by_role("button", name="Use this text").first.click()
    expect(dialog.get_by_label("Text")).to_have_value(re.compile(re.escape("[RANGE 500 ")))
    dialog.get_by_label("Text").fill(f"SELECT idd FROM {stream}")
    expect(dialog.get_by_role("alert")).to_contain_text("idd")
    troubles.allow("status of 400")
    dialog.get_by_label("Text").fill(f"SELECT id FROM {stream} [RANGE 1 SECONDS] WHERE id > 3000")
    expect(dialog.locator("[data-code]").first).to_be_visible()
    dialog.get_by_role("button", name="Apply").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("tab", name="Answer").click()
    expect(cells(page)).to_have_text(["3001", "4000"])

    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    assert_fits(page)
    service.http.delete(f"/queries/{handle}")
    expect(page.get_by_text("This query was dropped while you watched.")).to_be_visible()
    expect(page.get_by_text("DROPPED", exact=True)).to_be_visible()
    expect(cells(page)).to_have_text(["3001", "4000"])
    assert handle not in service.log.read_text()


def test_a_handle_of_somebody_else_opens_nothing(
    service: Broker, stream: str, opened: Callable[..., Page], troubles: Troubles
) -> None:
    troubles.allow(REFUSED)
    handle, other = (service.register(f"SELECT id FROM {stream} WHERE id > {n}") for n in (1, 2))
    page = opened(f"/#/queries/{query_id(handle)}")
    for wrong, told in ((other, "this handle does not open this query"), ("short", "this is no handle")):
        page.get_by_label("Handle").fill(wrong)
        page.get_by_role("button", name="Open the answer").click()
        expect(page.get_by_role("alert")).to_contain_text(told)
        assert page.evaluate("sessionStorage.getItem('handles')") is None
    assert_accessible(page)
    page.get_by_label("Handle").fill(handle)
    page.get_by_role("button", name="Open the answer").click()
    expect(cells(page)).to_have_text(["3000", "2000", "1000"])
    page.get_by_role("button", name="Close the answer").click()
    expect(page.get_by_label("Handle")).to_be_visible()
    page.goto(f"/#/queries/{query_id(new_handle())}")
    expect(page.get_by_role("alert")).to_contain_text("There is no query with this id")


CHOICES: dict[str, tuple[list[tuple[str, str]], int, tuple[str, int | None, int | None, int | None]]] = {
    "lines for each category": (
        [("ts", "TIMESTAMP"), ("s", "STRING"), ("v", "DOUBLE")],
        9,
        ("lines", 0, 2, 1),
    ),
    "one line": ([("id", "BIGINT"), ("v", "DECIMAL(6, 2)"), ("day", "DATE")], 9, ("lines", 2, 1, None)),
    "bars": ([("s", "STRING"), ("user_id", "BIGINT"), ("n", "BIGINT")], 9, ("bars", 0, 2, None)),
    "a number": ([("n", "BIGINT")], 1, ("figure", None, 0, None)),
    "numbers without a category": ([("n", "BIGINT")], 9, ("none", None, 0, None)),
    "no number": ([("s", "STRING"), ("all_v", "ARRAY<DOUBLE>")], 9, ("none", None, None, None)),
    "many categories": ([("ts", "TIMESTAMP"), ("k", "STRING"), ("v", "DOUBLE")], 9, ("lines", 0, 2, None)),
}


def test_a_plot_is_chosen_by_types_and_changes_fold_as_bags(opened: Callable[..., Page]) -> None:
    page = opened("/")
    for kind, (columns, n, expected) in CHOICES.items():
        given = [{"name": name, "type": type_} for name, type_ in columns]
        held = [{"values": [f"{i}" if name == "k" else f"{i % 3}" for name, _ in columns]} for i in range(n)]
        found = page.evaluate(
            "async ([c, r]) => (await import('/page/views/query/plot.js')).choose(c, r)", [given, held]
        )
        assert (found["kind"], found["x"], found["y"], found["series"]) == expected, kind
        assert (found["reason"] is None) == (found["kind"] != "none"), kind
    chance = random.Random(19)
    there: list[list[Any]] = []
    steps = []
    for _ in range(40):
        going = range(chance.randrange(min(len(there), 4) + 1))
        changes = [(-1, 0, there.pop(chance.randrange(len(there)))) for _ in going]
        came = [[chance.choice("ab"), chance.choice([1, 2, None])] for _ in range(chance.randrange(6))]
        there += came
        steps.append(([*changes, *((1, 0, row) for row in came)], sorted(map(repr, there))))
    fold = """async (steps) => {
        const { Bag } = await import('/page/views/query/bag.js');
        const [placed, other, again] = [new Bag(), new Bag(), new Bag()];
        return steps.map((changes) => {
            placed.change(changes, (values) => values[0], 1);
            other.change(changes, null, 1);
            again.become([...other.rows.values()].map((row) => row.values).reverse(), 1);
            return [placed, other, again].map((bag) => [...bag.rows.values()].map((row) => row.values));
        });
    }"""
    for bags, (_, expected_rows) in zip(page.evaluate(fold, [one for one, _ in steps]), steps, strict=True):
        for bag in bags:
            assert sorted(map(repr, bag)) == expected_rows


def test_of_a_large_answer_the_first_rows_are_shown_and_of_one_number_its_curve(
    service: Broker, stream: str, show: Callable[..., Page], troubles: Troubles
) -> None:
    troubles.allow(REFUSED)
    service.send(stream, rows(*range(4_000, 25_000)))
    handle = service.register(f"SELECT id, v, s FROM {stream}")
    counting = service.register(f"SELECT COUNT(*) AS n, ARRAY_AGG(v) AS all_v FROM {stream} WHERE id < 3000")
    wait_until(lambda: service.source(stream)["rows"] > 21_000, 80)
    page = show(handle)
    expect(page.get_by_text("first 1,000 of 21,004 rows", exact=True)).to_be_visible()
    expect(page.get_by_text("it is not followed")).to_be_visible()
    expect(cells(page)).to_have_count(1_000)
    page = show(counting)
    expect(page.get_by_role("cell", name="[0, 500, 1000]", exact=True)).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^n: n 3"))).to_be_visible()


def test_what_is_not_whole_says_so(service: Broker, name: str, show: Callable[..., Page]) -> None:
    """The last row of what was there before stays above NOW; no row has a condition that can be computed."""
    service.admin.ensure_source_topic(name)
    service.send(name, rows(0, 1_000, 2_000))
    service.create(stream_sql(name, columns="id BIGINT, v DOUBLE, s STRING, ts TIMESTAMP"))
    handle = service.register(f"SELECT id FROM {name} WHERE id / 0 > 1")
    page = show(handle)
    expect(
        page.get_by_text(f"Incomplete: {name} is catching up: all 3 records are read, 1 row waits")
    ).to_be_visible(timeout=80_000)
    expect(page.get_by_text("2 rows are not in the answer: their condition could not be")).to_be_visible()
    page.goto(page.url.split("#")[0] + f"#/sources/{name}")
    expect(page.get_by_text(f"{name} is catching up")).to_be_visible()
    for view in ("#/", "#/sources"):
        page.goto(page.url.split("#")[0] + view)
        badge = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
        expect(badge.get_by_text("catching up", exact=True)).to_be_visible()
        expect(badge.get_by_title(f"{name} is catching up")).to_be_visible()
    page.goto(page.url.split("#")[0] + f"#/sources/{name}")
    service.send(name, rows(9_000))
    expect(page.get_by_text(f"{name} is catching up")).to_be_hidden()
