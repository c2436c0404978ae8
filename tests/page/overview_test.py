"""The Overview: figures that move, troubles with what to do, ways to what is behind them."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.page.browsing import assert_accessible, assert_fits

BASE_MS = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(start, start + count)]


def test_the_overview_shows_what_happens_and_leads_to_it(
    service: Broker, opened: Callable[..., Page], dark: Page, phone: Page, name: str
) -> None:
    service.create(stream_sql(name))
    service.register(f"SELECT id FROM {name} WHERE v > 2")
    broken = service.http.post("/queries", json={"sql": f"SELECT id FROM {name}_later"})
    assert broken.json()["state"] == "PENDING"
    page = opened("/#/")
    health = page.get_by_role("region", name="Health")
    expect(health).to_contain_text("1 query waits for a source")
    sources = page.get_by_role("region", name="Table of sources")
    line = sources.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
    expect(line).to_contain_text("RUNNING")
    service.send(name, [*rows(400), b"no record"])
    expect(line.get_by_role("cell").nth(3)).to_have_text("399")
    expect(line.get_by_role("link", name="1 dead letters")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Rows in, last hour: read .*"))).to_be_visible()
    memory = page.get_by_role("region", name="Memory", exact=True)
    expect(memory).to_contain_text(re.compile("of a budget of .* enough"))
    users = page.get_by_role("region", name="What uses most")
    expect(users.get_by_role("link", name=re.compile(f"data-stem.{name}"))).to_be_visible()
    users.get_by_role("button", name="CPU").press("Enter")
    service.send(name, rows(5_000, 1_000))
    expect(users.get_by_role("link").first).to_be_visible()
    assert_accessible(page)

    for other in (dark, phone):
        opened("/#/", other)
        expect(other.get_by_role("region", name="Table of shards")).to_contain_text("live")
        expect(other.get_by_role("img", name=re.compile("^Memory, last hour"))).to_be_visible()
        assert_fits(other)
    assert_accessible(dark)

    head = sources.get_by_role("button", name="Dead letters")
    head.focus()
    head.press("Enter")
    expect(sources.get_by_role("columnheader", name="Dead letters")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(sources.get_by_role("rowheader").first).to_contain_text(name)
    for link, address in (
        (line.get_by_role("link", name=name, exact=True), f"#/sources/{name}"),
        (page.get_by_role("link", name="1 pending"), "#/queries?state=PENDING"),
    ):
        assert (link.get_attribute("href") or "") == address
    service.http.delete(f"/queries/{broken.json()['handle']}")
    expect(health).not_to_contain_text("waits for a source")
