"""The view of statements: what a person types is completed, checked, drawn, run and registered."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.broker.running import Broker
from tests.kafka import wait_until
from tests.page.browsing import Troubles, assert_accessible, assert_fits
from tureen.protocol import query_id

Open = Callable[..., Page]
COLUMNS = "id BIGINT NOT NULL, delay DOUBLE, dest STRING, ts TIMESTAMP"


def create(service: Broker, name: str, columns: str = COLUMNS) -> None:
    service.create(f"CREATE STREAM {name} ({columns}) WITH (timestamp = 'ts')")


def editor(page: Page) -> Page:
    """The view with the caret in its editor, which knows the sources."""
    page.goto("/#/statements")
    page.get_by_role("textbox", name="SQL statements").click()
    expect(page.get_by_role("button", name=re.compile("^Describe"))).to_be_visible()
    return page


def write(page: Page, text: str) -> None:
    """Put a text in as a paste does, and close what completion offers, so that keys mean what they say."""
    page.keyboard.insert_text(text)
    page.keyboard.press("Escape")


def test_a_query_is_typed_with_completion_mended_by_a_click_drawn_and_registered(
    page: Page, service: Broker, name: str
) -> None:
    create(service, name)
    service.register(f"SELECT id FROM {name} WHERE delay > 30")
    editor(page)
    page.keyboard.insert_text("-- 😀 wide\nSELECT dest, MAX(dely) AS worst ")
    page.keyboard.type(f"FROM {name[:3]}")
    page.get_by_role("option", name=name).click()  # the source is completed
    page.keyboard.type(" [RANGE 1 HOUR")
    page.keyboard.press("End")
    page.keyboard.type(" WHERE del")
    page.get_by_role("option", name=re.compile("^delay")).click()  # a column of the stream in FROM
    write(page, " > 30 GROUP BY dest")

    expect(page.locator(".cm-lintRange-error")).to_have_text("dely")
    refusal = page.get_by_role("alert")
    expect(refusal).to_contain_text("there is no column named 'dely' (line 2, column 18)")
    expect(refusal).to_contain_text("did you mean delay?")
    page.get_by_role("button", name="Write delay").click()
    expect(page.locator(".cm-line").nth(1)).to_contain_text(
        f"MAX(delay) AS worst FROM {name} [RANGE 1 HOUR] WHERE"
    )
    plan = page.get_by_role("region", name="Plan")
    expect(plan).to_contain_text("aggregate")
    expect(plan).to_contain_text("shares its predicate (delay > 30.0::DOUBLE) with 1 query")
    expect(refusal).to_have_count(0)
    page.get_by_role("button", name="Changes", exact=True).click()
    expect(plan).to_contain_text("group")
    assert_accessible(page)

    page.get_by_role("button", name="Register …").click()
    dialog = page.get_by_role("dialog", name="Register a query")
    dialog.get_by_text("Options").click()
    dialog.get_by_label("weight").fill("3")
    dialog.get_by_label("maintenance").select_option("eager")
    dialog.get_by_label("Handle").fill("too short")
    expect(dialog.get_by_role("button", name="Register")).to_be_disabled()
    dialog.get_by_label("Handle").fill("")
    assert_accessible(page)
    dialog.get_by_role("button", name="Register").click()
    handle = page.locator(".handle code").inner_text()
    link = page.locator(".result a")
    assert query_id(handle) == link.inner_text()
    standing = service.http.get(f"/queries/{handle}").json()
    assert (standing["weight"], standing["options"]["maintenance"]) == (3.0, "eager")
    assert handle in page.evaluate("sessionStorage.getItem('handles')")
    assert handle not in page.evaluate("sessionStorage.getItem('statements')")
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("link", name="Statements").click()
    expect(page.locator(".result a")).to_have_text(query_id(handle))
    expect(page.get_by_text(handle)).to_have_count(0)  # it was shown once


def test_statements_are_run_one_by_one_and_together_until_one_is_refused(
    page: Page, troubles: Troubles, service: Broker, name: str
) -> None:
    troubles.allow("400 .*/statements")
    create(service, name)
    handle = service.register(f"SELECT id FROM {name}")
    editor(page)
    write(
        page,
        f"DESCRIBE {name};\nPAUSE '{handle}';\nSELECT id FROM {name} WHERE dest = ';' ;\n"
        "DESCRIBE nowhere;\nSHOW SOURCES",
    )
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+Enter")
    result = page.locator(".result").first
    expect(result.get_by_role("row")).to_have_count(5)
    expect(result).to_contain_text("TIMESTAMP")

    page.get_by_role("button", name="Run all 5").click()
    asked = page.get_by_role("dialog")
    expect(asked).to_contain_text("Each SELECT is registered")
    asked.get_by_role("button", name="Run all").click()
    expect(page.locator(".result.refused")).to_contain_text("there is no stream named 'nowhere'")
    expect(page.locator(".result")).to_have_count(5)  # the last one did not run
    assert service.state(handle) == "PAUSED"
    assert handle not in page.evaluate("sessionStorage.getItem('statements')")
    expect(page.locator(".result", has_text="PAUSE")).to_contain_text("'handle'")

    page.keyboard.press("Escape")
    page.get_by_role("textbox", name="SQL statements").focus()
    page.keyboard.press("Control+a")
    write(page, f"SELECT id FROM {name} WHERE delay > :least AND dest = :to")
    expect(page.get_by_text("Fill in the parameters")).to_be_visible()
    page.get_by_label(":least").fill("2.5")
    page.get_by_label(":to").fill("LAX")
    expect(page.get_by_role("region", name="Plan")).to_contain_text("delay > 2.5")
    page.get_by_role("button", name="Register …").click()
    page.get_by_role("dialog").get_by_role("button", name="Register").click()
    result = page.locator(".result").first
    expect(result).to_contain_text(":least")
    registered = result.locator(".handle code").inner_text()
    found = service.http.get(f"/queries/{registered}").json()
    assert found["parameters"] == {"least": 2.5, "to": "LAX"}

    page.get_by_role("textbox", name="SQL statements").focus()
    page.keyboard.press("Control+a")
    write(page, f"DROP STREAM {name} CASCADE")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_contain_text("What is dropped is gone")
    page.get_by_role("button", name="Cancel").click()
    assert name in service.sources()


@pytest.mark.parametrize("look", ["phone", "dark"])
def test_names_of_users_are_text_and_the_keyboard_gets_out_of_the_editor(
    look: str, request: pytest.FixtureRequest, service: Broker, name: str
) -> None:
    hostile = '<img src=x onerror="alert(1)">'
    quoted = '"' + hostile.replace('"', '""') + '"'
    create(service, name, f"{quoted} STRING, ts TIMESTAMP")
    page: Page = request.getfixturevalue(look)
    editor(page)
    write(page, f"SELECT {quoted} FROM {name} [ROWS 5];\nSHOW SOURCES")
    page.keyboard.press("Control+Home")
    expect(page.get_by_role("region", name="Plan")).to_contain_text(quoted)
    expect(page.locator(".columns code")).to_have_text(hostile)
    assert page.locator("img").count() == 0
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".result table")).to_contain_text(quoted)
    assert_fits(page)
    assert_accessible(page)
    page.get_by_role("textbox", name="SQL statements").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.closest('.cm-editor') !== null")


def test_a_select_is_asked_once_and_nothing_of_it_stays(page: Page, service: Broker, name: str) -> None:
    create(service, name)
    rows = [{"id": i, "delay": i * 10.0, "dest": "LAX", "ts": 1_700_000_000_000 + i} for i in range(5)]
    service.send(name, rows)
    wait_until(lambda: service.source(name)["rows"] == 4, what="four rows have entered")
    before = {one["query_id"] for one in service.http.get("/queries").json()["queries"]}
    editor(page)
    expect(page).to_have_title("Statements · Tureen")
    write(page, f"SELECT id FROM {name} WHERE delay = NULL OR delay > 10")
    expect(page.get_by_text("= NULL is never true")).to_be_visible()
    page.keyboard.press("Control+Enter")
    result = page.locator(".result").first
    expect(result).to_contain_text("answered")
    expect(result.locator("tbody tr")).to_have_text(["2", "3"])
    expect(page.get_by_role("dialog")).to_have_count(0)
    wait_until(
        lambda: {one["query_id"] for one in service.http.get("/queries").json()["queries"]} == before,
        what="it is gone",
    )
    assert_accessible(page)
    page.get_by_role("textbox", name="SQL statements").focus()
    page.keyboard.press("Control+a")
    write(page, f"SELECT id FROM {name} EMIT CHANGES")  # it would write to a topic
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog", name="Register a query")).to_be_visible()


def test_queries_of_an_address_with_their_handles_are_open(page: Page, service: Broker, name: str) -> None:
    create(service, name)
    handle, other = (service.register(f"SELECT id FROM {name} WHERE id > {n}") for n in (1, 2))
    page.goto(f"/#/queries/{query_id(handle)}?handles={handle},{other}")
    expect(page.get_by_role("region", name="Answer", exact=True)).to_contain_text("NOW")
    expect(page).to_have_title(f"Query {query_id(handle)} · Tureen")
    assert "handles" not in page.url
    page.goto(f"/#/queries/{query_id(other)}")
    expect(page.get_by_label("Handle")).to_have_count(0)
    expect(page.get_by_role("heading", name="Answer")).to_be_visible()


def test_completion_closes_with_a_run_and_when_the_caret_leaves(
    page: Page, troubles: Troubles, service: Broker, name: str
) -> None:
    troubles.allow("404|409|400")
    create(service, name)
    editor(page)
    offered = page.locator(".cm-tooltip-autocomplete")
    page.keyboard.type(f"SELECT delay FROM {name[:4]}")
    expect(offered).to_have_count(1)
    page.keyboard.press("Control+Enter")
    expect(offered).to_have_count(0)
    expect(page.locator(".result")).to_have_count(1)
    expect(offered).to_have_count(0)
    page.keyboard.type(name[4:7])
    page.evaluate("document.activeElement.blur()")  # before what is offered comes
    page.get_by_role("textbox", name="SQL statements").focus()
    page.keyboard.press("Control+Home")
    expect(offered).to_have_count(0)


def test_what_is_to_be_dropped_and_is_not_there_is_told_before_it_runs(
    page: Page, service: Broker, name: str
) -> None:
    create(service, name)
    editor(page)
    write(page, f"DROP STREAM {name}x")
    expect(page.get_by_role("alert")).to_contain_text(f"there is no stream named '{name}x'")
    expect(page.get_by_role("alert")).to_contain_text(f"did you mean {name}?")
    page.keyboard.press("Control+a")
    write(page, f"DROP STREAM IF EXISTS {name}x")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("a statement of the kind drop")).to_be_visible()
