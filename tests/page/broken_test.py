"""Addresses, tokens and streams that are broken: the page goes on, and says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tests.page.browsing import Troubles
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000


def test_an_address_that_names_no_query_says_so(opened: Callable[..., Page], troubles: Troubles) -> None:
    troubles.allow("status of 404")
    for address in ("%", "constructor", "%E0%A4%A", "__proto__", "a%2F..%2Fb"):
        page = opened(f"/#/queries/{address}")
        if address == "%":
            page.reload()
        expect(page.get_by_role("alert")).to_contain_text("There is no query with this id")
        page.get_by_role("link", name="Statements").click()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_token_that_no_request_can_carry_is_asked_for_again(opened: Callable[..., Page]) -> None:
    page = opened("/")
    page.evaluate("sessionStorage.setItem('token', 'пароль')")
    page.reload()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("the token is not accepted")
    dialog.get_by_label("Token").fill("a-token")  # this broker takes any
    dialog.get_by_role("button", name="Use it").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


def test_an_answer_whose_stream_is_cut_between_two_lines_has_each_row_once(
    service: Broker, name: str, opened: Callable[..., Page], page: Page
) -> None:
    service.create(stream_sql(name, columns="id BIGINT, ts TIMESTAMP"))
    handle = service.register(f"SELECT id FROM {name}")
    service.send(name, [{"id": id_, "ts": BASE_MS + id_} for id_ in range(4)])
    wait_until(lambda: service.source(name)["rows"] == 3, what="the rows are there")
    facts = {"columns": [{"name": "id", "type": "BIGINT"}], "operator": "changes", "complete_from_ms": None}
    line = {"type": "snapshot", **facts, "rows": [[0], [1]], "more": True}
    cut: list[str] = []

    def broken(route: Route) -> None:
        """The first time the stream ends behind a line that is true with the next one alone."""
        if cut:
            route.continue_()
            return
        cut.append(route.request.url)
        route.fulfill(content_type="text/event-stream", body=f"event: snapshot\ndata: {json.dumps(line)}\n\n")

    page.route("**/changes", broken)
    opened(f"/#/queries/{query_id(handle)}")
    page.get_by_label("Handle").fill(handle)
    page.get_by_role("button", name="Open the answer").click()
    cells = page.get_by_role("region", name="Rows of the answer", exact=True).locator("tbody td")
    expect(page.get_by_text("3 rows", exact=True)).to_be_visible()
    expect(cells).to_have_text(["2", "1", "0"])
    assert len(cut) == 1


def test_windows_beside_each_other_leave_a_connection_for_requests(
    opened: Callable[..., Page], page: Page, troubles: Troubles
) -> None:
    """A browser has six connections to one address: streams of all windows take five at most."""
    windows = [page, page.context.new_page(), page.context.new_page(), page.context.new_page()]
    for window in windows[1:]:
        troubles.watch(window)
    for window in windows[:2]:  # two streams each
        opened("/#/plan", window)
        expect(window.get_by_text("live", exact=True)).to_be_visible()
    first, second, third, last = windows
    opened("/#/queries", third)
    expect(third.get_by_text("live", exact=True)).to_be_visible()
    opened("/#/sources", last)
    expect(last.get_by_role("alert")).to_contain_text("other windows of this browser")
    expect(last.get_by_role("heading", name="Sources", level=1)).to_be_visible()
    assert last.evaluate("fetch('status').then((told) => told.status)") == 200
    first.close()
    expect(last.get_by_text("live", exact=True)).to_be_visible()
    expect(last.get_by_role("alert")).to_have_count(0)
    expect(second.get_by_text("live", exact=True)).to_be_visible()
