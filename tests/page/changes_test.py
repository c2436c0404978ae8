"""What runs is changed from the page: settings, options, memory, switches, and plans of queries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tests.page.browsing import Troubles, assert_accessible, assert_fits, new_page
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000
ROWS = 1_800
# A name is left and its expression is typed before the page is drawn anew, as on a slow machine.
TYPED_AT_ONCE = """(form, texts) => {
  const put = (label, text, event) => {
    const field = form.querySelector(`[aria-label="${label}"]`);
    field.value = text;
    field.dispatchEvent(new Event(event, { bubbles: true }));
  };
  put("Name 1", texts[0], "change");
  put("Expression 1", texts[1], "input");
}"""


def registered(one: Broker, sql: str, **options: object) -> str:
    handle = new_handle()
    reply = one.http.post("/queries", json={"sql": sql, "handle": handle, "options": options})
    assert reply.status_code in (200, 201), reply.text
    return handle


def values(one: Broker, id_: str) -> dict[str, Any]:
    entity = one.http.get(f"/entities/{quote(id_)}").json()
    return {attribute["name"]: attribute["value"] for attribute in entity["attributes"]}


@pytest.fixture
def windows(service: Broker, name: str) -> list[str]:
    """The handles of two queries that tolerate less, over a stream each; the second has half of what it asks
    for.
    """
    found = []
    for stream in (name, f"{name}b"):
        service.create(stream_sql(stream, options=", retain = '1 minute'"))
        sql = f"SELECT COUNT(*) AS n FROM {stream} [RANGE 30 MINUTES DOWN TO 1 MINUTE]"
        found.append(registered(service, sql, max_error=1))
        service.send(stream, [{"id": i, "v": i / 2, "ts": BASE_MS + i * 1_000} for i in range(ROWS)])
    for handle in found:
        wait_until(lambda handle=handle: service.rows(handle)[0][0] == ROWS - 1, what="rows are in")  # type: ignore[misc]
    window = {f"window_ms.{name}b": 900_000}
    assert service.http.patch(f"/entities/query/{found[1]}", json=window).status_code == 200
    return found


def region(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


def test_what_an_edit_does_is_said_before_and_two_tabs_do_not_overwrite_each_other(
    service: Broker, name: str, opened: Callable[..., Page], troubles: Troubles
) -> None:
    troubles.allow("409")  # of the edit that comes second
    service.create(stream_sql(name))
    handle = service.register(f"SELECT id FROM {name} WHERE v > 2")
    reads = service.http.get(f"/entities/query/{handle}").json()["reads"]
    (stem,) = (one for one in reads if "/query-stem/" in one)

    def at_policy(page: Page) -> Locator:
        region(page, "Query SteMs").locator("summary", has_text=name).click()
        page.get_by_role("button", name="Change policy").click()
        return page.get_by_role("form", name="Change policy")

    page = opened("/#/changes")
    page.get_by_label("Search by name").fill(name)
    form = at_policy(page)
    other = opened("/#/changes", new_page(page.context.browser, troubles))  # type: ignore[arg-type]
    theirs = at_policy(other)

    form.get_by_label("policy", exact=True).select_option("fixed")
    expect(form.locator("[data-code=answers_stay]")).to_be_visible()
    expect(form.locator("[data-code=order_alone]")).to_contain_text("from tickets to fixed")
    assert values(service, stem)["policy"] == "tickets"  # nothing is done yet
    assert_accessible(page)
    form.get_by_role("button", name="Apply").click()
    expect(form).to_have_count(0)
    expect(region(page, "Query SteMs").get_by_role("row", name="policy")).to_contain_text("fixed")
    assert values(service, stem)["policy"] == "fixed"

    theirs.get_by_label("policy", exact=True).select_option("random")
    theirs.get_by_role("button", name="Apply").click()
    expect(theirs).to_contain_text("Somebody else changed it meanwhile")
    expect(theirs).to_contain_text("policy is fixed now")
    assert values(service, stem)["policy"] == "fixed"
    theirs.get_by_role("button", name="Apply again").click()
    expect(theirs).to_have_count(0)
    assert values(service, stem)["policy"] == "random"

    queries = region(page, "Queries")
    queries.get_by_label("Search in texts").fill(name)
    queries.locator("summary", has_text=name).click()
    queries.get_by_role("button", name="Change weight").click()
    queries.get_by_label("weight", exact=True).fill("5000")
    expect(queries.get_by_role("alert")).to_contain_text("at most 1000")
    expect(queries.get_by_role("button", name="Apply")).to_be_disabled()
    queries.get_by_role("button", name="Cancel").click()
    queries.get_by_role("button", name="Change maintenance").click()
    queries.get_by_label("maintenance", exact=True).select_option("eager")
    expect(queries.locator("[data-code=memory_taken]")).to_be_visible()
    queries.get_by_role("button", name="Apply").click()
    wait_until(lambda: values(service, f"query/{handle}")["maintenance"] == "eager", what="it is eager")

    page.get_by_role("button", name=re.compile("May edit|Read only")).click()
    expect(page.get_by_role("button", name="Change maintenance")).to_have_count(0)


def test_memory_is_moved_by_keys_by_drag_and_by_number(
    service: Broker, name: str, windows: list[str], opened: Callable[..., Page], dark: Page
) -> None:
    page = opened("/#/changes", dark)
    ids = [query_id(handle) for handle in windows]
    form = page.get_by_role("form", name="Move memory")
    chosen = [f"query/{ids[0]} window_ms.{name}", f"query/{ids[1]} window_ms.{name}b"]
    form.get_by_label("Take from").select_option(chosen[0])
    form.get_by_label("Give to").select_option(chosen[1])
    expect(form.locator("#move-why")).to_have_text("Say how many bytes, or draw the divider.")
    form.get_by_label("Give to").select_option(chosen[0])
    expect(form.locator("#move-why")).to_contain_text("Choose two different sizes")
    form.get_by_label("Give to").select_option(chosen[1])
    border = form.get_by_role("slider")
    border.focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowLeft")
    expect(form.locator("[data-code=answers_approximate]").first).to_be_visible()
    expect(form.locator("[data-code=memory_freed]")).to_be_visible()
    by_keys = int(border.get_attribute("aria-valuenow") or 0)
    assert by_keys > 0

    box = border.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 60, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    by_drag = int(border.get_attribute("aria-valuenow") or 0)
    assert by_drag > by_keys
    assert form.get_by_label("Bytes to move").input_value() == str(by_drag)

    form.get_by_label("Bytes to move").fill(str(by_keys))
    expect(border).to_have_attribute("aria-valuenow", str(by_keys))
    assert_accessible(page)
    before = [values(service, f"query/{handle}") for handle in windows]
    form.get_by_role("button", name="Move", exact=True).click()
    expect(form).to_contain_text("It is moved")
    after = [values(service, f"query/{handle}") for handle in windows]
    assert after[0][f"window_ms.{name}"] < before[0][f"window_ms.{name}"]
    assert after[1][f"window_ms.{name}b"] > before[1][f"window_ms.{name}b"]


def test_a_plan_is_edited_applied_altered_and_drawn_anew(
    service: Broker, name: str, opened: Callable[..., Page], troubles: Troubles, phone: Page
) -> None:
    troubles.allow("409|400")  # another query, and a misspelt column
    service.create(stream_sql(name))
    service.send(name, [{"id": i, "v": float(i), "ts": BASE_MS + i} for i in range(20)])
    handle = service.register(f"SELECT id, v FROM {name} WHERE v > 2")
    service.await_rows(handle, 16)
    page = opened(f"/#/changes/plan/{query_id(handle)}")
    text = page.get_by_label("The plan as a file")
    expect(page.get_by_text("The plan is as it runs.")).to_be_visible()
    apply = page.get_by_role("button", name="Apply")
    expect(apply).to_be_disabled()

    plan = json.loads(text.input_value())
    text.fill(json.dumps(plan | {"options": {"weight": 3}}))
    expect(page.locator("[data-code=cost_moves]")).to_be_visible()
    apply.click()
    expect(page.get_by_text("It is applied.")).to_be_visible()
    assert service.http.get(f"/queries/{handle}").json()["weight"] == 3

    page.get_by_role("button", name=re.compile(f"^{name}: scan")).focus()
    page.keyboard.press("Enter")
    where = page.get_by_label("where (optional)")
    where.fill("vv > 10")
    expect(page.get_by_role("region", name=f"Operator {name}").get_by_role("alert").first).to_contain_text(
        "vv"
    )
    where.fill("v > 10")
    expect(page.get_by_text("With this plan it would be another query")).to_be_visible()
    page.get_by_label("Handle").fill(handle)
    page.get_by_role("button", name="Open the answer").click()
    expect(page.locator("[data-code=answers_change]")).to_be_visible()
    assert len(service.rows(handle)) == 16
    assert_accessible(page)
    page.get_by_role("button", name="Apply as another text").click()
    expect(page.get_by_text("The query has the new text.")).to_be_visible()
    wait_until(lambda: len(service.rows(handle)) == 8, what="the answer is of the new text")
    assert handle not in page.url

    page = opened("/#/changes/plan", phone)
    page.get_by_label("Operator", exact=True).select_option("scan")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_label("source", exact=True).fill(name)
    page.get_by_label("Operator", exact=True).select_option("aggregate")
    page.get_by_role("button", name="Add", exact=True).click()
    calls = page.get_by_role("region", name="Operator aggregate")
    calls.get_by_role("button", name="Add").last.click()
    calls.evaluate(TYPED_AT_ONCE, ["n", "COUNT(*)"])
    expect(page.get_by_text("It is right")).to_contain_text("n BIGINT")
    assert_fits(page)
    assert_accessible(page)
    page.get_by_role("button", name="Register as a new query").click()
    link = page.get_by_role("status").get_by_role("link")
    expect(link).to_be_visible()
    made = service.http.get(f"/queries/{(link.get_attribute('href') or '').rpartition('/')[2]}").json()
    assert (made["state"], made["sources"]) == ("RUNNING", [name])


def test_switches_and_the_throttle(service: Broker, name: str, opened: Callable[..., Page]) -> None:
    service.create(stream_sql(name))
    handle = registered(
        service, f"/* switch: {name}: flights come faster */ SELECT COUNT(*) AS n FROM {name}", paused=True
    )
    page = opened("/#/changes")
    switch = page.get_by_role("switch", name=f"Switch {name}")
    expect(switch).to_have_attribute("aria-checked", "false")
    switch.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("While it is on: flights come faster.")
    expect(dialog.locator("[data-code=answer_returns]")).to_be_visible()
    dialog.get_by_role("button", name="Switch on").click()
    expect(switch).to_have_attribute("aria-checked", "true")
    assert service.state(handle) == "RUNNING"

    switches = region(page, "Switches")
    switches.get_by_label("Units of work a second").fill("500")
    switches.get_by_role("button", name="Throttle").click()
    expect(dialog.locator("[data-code=answers_may_be_approximate]")).to_be_visible()
    dialog.get_by_role("button", name="Throttle").click()
    expect(switches).to_contain_text("at most 500 units/s")
    shards = [one["id"] for one in service.http.get("/entities?kind=shard").json()["entities"]]
    assert {values(service, id_)["preference_work_per_s_max"] for id_ in shards} == {500}
    switches.get_by_role("button", name="Lift").click()
    dialog.get_by_role("button", name="Lift").click()
    expect(switches).to_contain_text("not throttled")
