"""The view of sources: the list, one source with what its partitions do, a new one from a topic."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.broker.running import Broker
from tests.kafka import wait_until
from tests.page.browsing import Troubles, assert_accessible, assert_fits

HOSTILE = '"><img src=x onerror=alert(1)>'
BASE_MS = 1_700_000_000_000


def create(one: Broker, name: str, *, partitions: int = 1) -> None:
    """Years in the past: NOW follows the rows, whatever the clock is."""
    options = f"timestamp = 'ts', lateness = '1 second', idle_timeout = '1 hour', partitions = {partitions}"
    one.create(f"CREATE STREAM {name} (id BIGINT, ts TIMESTAMP NOT NULL) WITH ({options})")


def rows(*after_ms: int) -> list[dict[str, int]]:
    return [{"id": ms, "ts": BASE_MS + ms} for ms in after_ms]


def test_source_is_created_from_a_topic_with_inferred_columns(
    service: Broker, opened: Callable[..., Page], page: Page, troubles: Troubles, name: str
) -> None:
    troubles.allow("400 .*/sources")
    now_ms = int(time.time() * 1_000)
    service.admin.ensure_source_topic(name, 1)
    service.send(
        name,
        [
            {
                "deviceId": at,
                HOSTILE: HOSTILE,
                "at": now_ms + at,
                "nested": {"a": [1]},
                "odd": at if at % 2 else "x",
            }
            for at in range(30)
        ],
    )
    opened("/#/sources")
    page.get_by_role("button", name="Create a source").click()
    page.get_by_label("Search").fill(name)
    page.get_by_role("button", name=f"Infer columns of {name}").click()
    expect(page.get_by_text("The proposal reads 100 %")).to_be_visible()
    expect(page.get_by_role("table").filter(has_text="deviceid")).to_contain_text(HOSTILE)
    expect(page.get_by_role("region", name="Table of members that are left out")).to_contain_text(
        "numbers and strings are mixed"
    )
    text = page.get_by_label("CREATE STREAM or CREATE TABLE")
    expect(text).to_have_value(re.compile(r"at TIMESTAMP NOT NULL[\s\S]*timestamp = 'at'"))
    page.get_by_label("Type of deviceid").select_option("STRING")
    page.get_by_label("Type of deviceid").select_option("BIGINT")
    page.get_by_label("deviceid is NOT NULL").check()
    expect(text).to_have_value(re.compile("deviceid BIGINT NOT NULL,"))
    assert_accessible(page, "the form of a new source")
    right = text.input_value()
    text.fill(right.replace("BIGINT", "BIGNIT"))
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("pre.caret")).to_have_text(re.compile(r"deviceid BIGNIT NOT NULL,\n +\^"))
    expect(page.get_by_role("alert")).to_contain_text("BIGNIT")
    page.get_by_role("button", name="From the form again").click()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="is RUNNING")).to_be_visible()
    page.get_by_role("link", name=name, exact=True).first.click()
    expect(page.get_by_role("region", name="Table of columns")).to_contain_text(HOSTILE)
    expect(page.get_by_role("region", name="Table of records")).to_contain_text(HOSTILE)
    assert page.locator("img").count() == 0
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop").click()
    expect(page.get_by_role("heading", name="Sources")).to_be_visible()
    wait_until(lambda: name not in service.sources(), what="the source is gone")


def test_source_shows_what_holds_now_back_and_why_records_gave_no_row(
    service: Broker, opened: Callable[..., Page], page: Page, phone: Page, name: str
) -> None:
    create(service, name, partitions=2)
    service.register(f"SELECT id FROM {name}")
    service.send(name, rows(5_000, 9_000), 0)
    service.send(name, rows(2_000), 1)
    wait_until(lambda: service.source(name)["now_ms"] == BASE_MS + 999, what="both partitions were read")
    service.send(name, [{"id": HOSTILE, "ts": BASE_MS + 9_000}, {"id": 1, "ts": BASE_MS - 60_000}], 0)
    wait_until(
        lambda: (service.source(name)["late"], service.source(name)["dead_letters"]) == (1, 1),
        what="all was read",
    )
    opened(f"/#/sources/{name}")
    expect(page.get_by_text("Partition 1 holds NOW back: without it NOW could be 7 s later.")).to_be_visible()
    page.get_by_role("tab", name="Dead letters (1)").click()
    letters = page.get_by_role("region", name="Table of records")
    expect(letters).to_contain_text("expected BIGINT")
    expect(letters).to_contain_text("onerror=alert(1)")
    expect(letters.get_by_role("link", name="0:2")).to_have_attribute("href", f"#/plan?trace={name}%3A0%3A2")
    page.get_by_role("tab", name="Dead letters (1)").press("ArrowLeft")
    expect(page.get_by_role("tab", name="Late (1)")).to_be_focused()
    expect(page.get_by_role("region", name="Table of records")).to_contain_text("0:3")
    assert_accessible(page, "one source")
    page.get_by_role("button", name="Heartbeat for partition 1").click()
    page.get_by_label("Instant (UTC, or ms since 1970)").fill(str(BASE_MS + 8_001))
    page.get_by_role("button", name="Promise it").click()
    expect(page.get_by_text("Promised for partition 1; NOW is")).to_be_visible()
    expect(page.get_by_text("Partition 1 holds NOW back")).to_have_count(0)
    assert page.locator("img").count() == 0
    opened(f"/#/sources/{name}", phone)
    expect(phone.get_by_role("heading", name=name)).to_be_visible()
    expect(phone.get_by_text("NOW (UTC)")).to_be_visible()
    assert_fits(phone)
    opened("/#/sources", phone)
    expect(phone.get_by_role("link", name=name)).to_be_visible()
    assert_fits(phone)
    assert_accessible(phone, "the list of sources")
