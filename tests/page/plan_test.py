"""The view Plan in a real browser: the graph, a query's way, a node, a record's way, many nodes folded."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import orjson
from playwright.sync_api import Page, expect

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tests.page.browsing import Troubles, assert_accessible, assert_fits
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000


def node(words: str) -> str:
    """What finds a node of the graph by the beginning of what it is called."""
    return f'.plan-graph [role="button"][aria-label^="{words}"]'


def test_query_node_and_record_light_up_in_the_graph(
    service: Broker, name: str, opened: Callable[..., Page], phone: Page, troubles: Troubles
) -> None:
    other = f"{name}_b"
    for each in (name, other):
        service.create(stream_sql(each))
    lone = service.register(f"SELECT id, COUNT(*) AS n FROM {name} [RANGE 1 HOUR] GROUP BY id EMIT CHANGES")
    joined = service.register(
        f"SELECT a.id FROM {name} [RANGE 1 HOUR] AS a JOIN {other} [RANGE 1 HOUR] AS b ON a.id = b.id"
    )
    service.send(name, [{"id": i % 3, "v": i, "ts": BASE_MS + i} for i in range(20)] + [b"{nonsense"])
    service.send(other, [{"id": 1, "v": 0, "ts": BASE_MS + i} for i in range(2)])
    service.await_rows(lone, 3)
    wait_until(lambda: service.source(name)["dead_letters"] == 1, what="the dead letter")

    page = opened("/#/plan")
    group = page.locator(node(f"group {name},"))
    expect(group).to_be_visible()
    expect(page.locator(node(f"source {other},")).first).to_be_visible()
    assert_accessible(page)

    # A query is found by its text, in a list that fits and closes, and its way lights up.
    expect(page).to_have_title("Plan · Tureen")
    search = page.get_by_label("Pick a query, by its text or id")
    for leave in ("Escape", "Shift+Tab"):
        search.fill(name)
        found = page.locator(".plan-found")
        expect(found.get_by_role("button").first).to_be_visible()
        box, window = found.bounding_box(), page.viewport_size
        assert box is not None
        assert window is not None
        assert box["height"] <= 0.6 * window["height"] + 2
        page.keyboard.press(leave)
        expect(found).to_have_count(0)
    search.fill(f"{name} group")
    page.locator(".plan-found button").first.click()
    expect(page).to_have_url(f"{service.url}/#/plan?query={query_id(lone)}")
    expect(page.locator(f"{node(f'group {name},')}.lit")).to_be_visible()
    expect(page.locator(f"{node(f'source {other},')}.dimmed").first).to_be_attached()
    expect(page.locator(".plan-edge .pattern").first).to_contain_text("WKS")
    page.get_by_text("Its plan, with estimates").click()
    page.get_by_role("button", name="Analyze").click()
    expect(page.locator(".plan-picked details[open]")).to_be_visible()

    # Keys go along edges, and Enter opens a node.
    group.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(f"{node(f'changes {name},')}:focus")).to_be_attached()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    panel = page.locator(".plan-panel")
    expect(panel.get_by_role("heading")).to_contain_text(f"group {name}")
    panel.get_by_role("tab", name="Queries").click()
    expect(panel.get_by_role("link").first).to_have_attribute("href", f"#/plan?query={query_id(lone)}")
    panel.get_by_role("tab", name="Attributes").click()
    expect(panel.get_by_text("memory_bytes").first).to_be_attached()
    assert_accessible(page, "the panel")
    page.get_by_role("button", name="All plans").click()
    page.locator(node("join ")).first.click()
    panel.get_by_role("tab", name="Modules").click()
    expect(panel.get_by_role("cell", name=f"{name}#0")).to_be_visible()
    page.get_by_role("button", name="Close the panel").click()

    # The way of a record.
    form = page.get_by_role("form", name="Trace a record")
    form.get_by_label("Source").select_option(name)
    form.get_by_label("Offset").fill("0")
    form.get_by_role("button", name="Trace").click()
    trace = page.locator(".plan-trace")
    expect(trace.locator(".badge").first).to_have_text("held")
    expect(trace.get_by_role("link", name=query_id(lone)[:8])).to_be_visible()
    expect(page.locator(f"{node(f'group {name},')}.lit")).to_be_visible()
    assert_accessible(page, "the trace")
    page.evaluate(f"location.hash = '#/plan?trace={name}:0:20'")
    expect(trace.locator(".badge").first).to_have_text("dead letter")
    troubles.allow(r"404 .*/trace\?")  # the browser tells of each refusal
    page.evaluate(f"location.hash = '#/plan?trace={name}:9:0'")
    expect(trace.get_by_role("alert")).to_contain_text("has no partition 9")

    # An entity by its id: a node of the graph, or one beside it.
    source = service.http.get("/entities", params={"kind": "source"}).json()["entities"]
    (own,) = [one["id"] for one in source if one["id"].endswith(f"source/{other}")][:1]
    page.evaluate(f"location.hash = '#/plan?entity={own}'")
    expect(panel.get_by_role("heading")).to_contain_text(f"source {other}")
    page.evaluate("location.hash = '#/plan?entity=state-buffers'")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()

    # The same as a table, and on a phone.
    page.evaluate(f"location.hash = '#/plan?query={query_id(joined)}'")
    page.get_by_role("button", name="As a table").click()
    expect(page.get_by_role("button", name=f"source {other}", exact=True).first).to_be_visible()
    opened(f"/#/plan?query={query_id(lone)}", phone)
    expect(phone.locator(node(f"group {name},"))).to_be_attached()
    assert_fits(phone)


def test_many_nodes_are_folded_with_their_like(
    service: Broker, name: str, opened: Callable[..., Page]
) -> None:
    columns = ", ".join(f"c{i} BIGINT" for i in range(23))
    service.create(stream_sql(name, columns=f"{columns}, ts TIMESTAMP"))
    lines = [
        {"sql": f"SELECT {keys}, COUNT(*) AS n FROM {name} [RANGE 1 HOUR] GROUP BY {keys} EMIT CHANGES"}
        for keys in (f"c{i}, c{j}" for i, j in combinations(range(23), 2))
    ]
    reply = service.http.post(
        "/queries",
        content=b"\n".join(orjson.dumps(line) for line in lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert reply.status_code == 200, reply.text

    def nodes() -> int:
        page = service.http.get("/entities", params={"limit": 10_000}).json()["entities"]
        return sum(f"/operator/{name}/" in one["id"] or f"/sink/{name}/" in one["id"] for one in page)

    wait_until(lambda: nodes() >= 500, what="the operators")
    page = opened("/#/plan")
    many = page.locator('.plan-graph [aria-label^="253 × group"]')
    expect(many).to_be_visible()
    assert page.locator(".plan-graph .plan-node").count() <= 150
    many.focus()
    page.keyboard.press("Enter")  # opened: its nodes stand apart
    expect(page.locator(f'.plan-graph [aria-label^="group {name}"]').nth(100)).to_be_attached()
    page.get_by_role("button", name="Fold again").click()
    expect(many).to_be_visible()
