"""Summaries of streams: made, altered, shown and dropped over HTTP, waited for, and back after a kill."""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson

import tureen
from broker.base.placement import shard_of
from tests.broker.conftest import stream_sql
from tests.broker.running import SHARDS, Broker
from tests.kafka import wait_until
from tureen.protocol import SUMMARY_KEY, new_handle, query_id

BASE_MS = 1_700_000_000_000


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": i % 7, "v": i, "ts": BASE_MS + 50 * i} for i in range(count)]


def summary_sql(name: str, stream: str, settings: str = "") -> str:
    return f"CREATE SUMMARY {name} ON {stream} (id) WITH GRANULARITY 1 SECOND AND COLLAPSE (2, 3) {settings}"


def settled(one: Broker, sql: str) -> dict[str, Any]:
    """Run a statement until its outcome is known, which may take a second try; return the outcome."""
    found: list[tuple[int, dict[str, Any]]] = []

    def is_known() -> bool:
        found.append(one.run(sql))
        return found[-1][0] != 202

    wait_until(is_known, what=sql)
    return found[-1][1]


def say(one: Broker, key: str, sql: str | None) -> None:
    """A record on the topic of streams."""
    value = None if sql is None else orjson.dumps({"sql": sql})
    one.producer.send(one.names.sources, value, key.encode())
    one.producer.flush()


def test_a_summary_is_made_shown_altered_and_dropped(shared: Broker, name: str) -> None:
    summary = f"{name}_ids"
    shared.create(stream_sql(name))
    shared.send(name, rows(100))
    wait_until(lambda: shared.source(name)["rows"] == 99, what="rows are there")
    made = {"name": summary, "kind": "summary", "stream": name, "attribute": "id", "reach_ms": 7_000}
    made |= {"state": "RUNNING", "error": None}
    assert settled(shared, summary_sql(summary, name)) == made
    assert shared.run(summary_sql(summary, name)) == (200, made)
    again = summary_sql(summary, name, "SETTINGS (buckets = 3)")
    status, refused = shared.run(again)
    assert (status, refused["code"]) == (409, "summary_conflict")
    for asked, differs in ((again, True), (summary_sql(summary, name), False)):
        skipped = made | {"skipped": True, "differs": differs}
        assert shared.run(asked.replace("SUMMARY", "SUMMARY IF NOT EXISTS", 1)) == (200, skipped)

    status, table = shared.run("SHOW SUMMARIES")
    (row,) = (dict(zip(table["columns"], row, strict=True)) for row in table["rows"] if row[0] == summary)
    assert (row["stream"], row["column"], row["state"], row["rows"]) == (name, "id", "RUNNING", 99)
    assert (row["reach"], row["queries"]) == ("7 seconds", 0)
    status, table = shared.run(f"DESCRIBE SUMMARY {summary}")
    assert [row[0] for row in table["rows"]] == ["1 second", "2 seconds", "4 seconds"]
    told = shared.http.get(f"/summaries/{summary}").json()
    assert told == table["summary"]
    with tureen.connect(str(shared.http.base_url)) as client:
        assert client.summary(summary) == told
        assert summary in [one["name"] for one in client.summaries()]
    assert (
        sum(one["rows"] for one in told["granularities"]) == sum(one["rows"] for one in told["listed"]) == 99
    )
    assert {one["cut"] for one in told["listed"]} <= {"open", "change", "length", "granularity"}

    assert settled(shared, f"ALTER SUMMARY {summary} SET (theta = 0.25)") == made
    told = shared.http.get(f"/summaries/{summary}").json()
    assert told["settings"]["theta"] == 0.25
    assert "theta = 0.25" in told["sql"]
    entity = f"{told['shard']}/summary/{summary}"
    edited = shared.http.patch(f"/entities/{entity}", json={"theta": 0.5})
    assert edited.status_code in (200, 202), edited.text
    wait_until(lambda: shared.http.get(f"/summaries/{summary}").json()["settings"]["theta"] == 0.5)
    status, refused = shared.run(f"DROP STREAM {name}")
    assert (status, refused["code"]) == (409, "summary_conflict")
    assert shared.http.delete(f"/summaries/{summary}").status_code in (200, 202)
    wait_until(
        lambda: summary not in [one["name"] for one in shared.http.get("/summaries").json()["summaries"]]
    )
    told = shared.run(f"DROP SUMMARY IF EXISTS {summary}")[1]
    assert (told["state"], told["skipped"]) == ("GONE", True)
    assert shared.run(f"DROP SUMMARY {summary}")[1]["code"] == "unknown_summary"


def test_what_comes_in_another_order_waits(shared: Broker, name: str) -> None:
    summary = f"{name}_ids"
    say(shared, SUMMARY_KEY + summary, summary_sql(summary, name))

    def state() -> str | None:
        listed = shared.http.get("/summaries").json()["summaries"]
        return next((one["state"] for one in listed if one["name"] == summary), None)

    wait_until(lambda: state() == "PENDING", what="the summary waits for its stream")
    sql = f"SELECT v FROM {name} WITH PREFERENCE asc {summary}.Estimate.Count(id)"
    handle = new_handle()
    shared.publish(handle, {"sql": sql})
    wait_until(lambda: shared.state(handle) == "PENDING", what="the query waits for its stream")
    shared.create(stream_sql(name))
    wait_until(lambda: state() == "RUNNING", what="the summary stands")
    wait_until(lambda: shared.state(handle) == "RUNNING", what="the query runs")
    shared.send(name, rows(20))
    shared.await_rows(handle, 19)
    status, refused = shared.run(f"DROP SUMMARY {summary}")
    assert (status, refused["code"]) == (409, "summary_conflict")

    say(shared, SUMMARY_KEY + summary, None)
    wait_until(lambda: shared.state(handle) == "PENDING", what="the query waits for its summary")
    assert state() is None
    assert len(shared.rows(handle)) == 19
    assert shared.snapshot(handle)["approximate"]
    told = shared.http.get(f"/queries/{handle}").json()
    assert told["error"]["code"] == "unknown_summary"
    wait_until(
        lambda: (shared.status_topic()[query_id(handle)][-1] or {}).get("state") == "PENDING",
        what="the status topic has it",
    )
    settled(shared, summary_sql(summary, name))
    wait_until(lambda: shared.state(handle) == "RUNNING", what="the query runs again")
    shared.await_rows(handle, 19)
    status, told = shared.run(f"DROP STREAM {name} CASCADE")
    assert status == 403 or told["summaries"] == [summary]


def test_a_summary_is_where_its_stream_is_a_guest_as_long_as_a_query_uses_it(
    shared: Broker, name: str
) -> None:
    """The join stands on a shard that is the home of neither stream."""
    a = f"{name}_a"
    b = next(
        other
        for other in (f"{name}_b{number}" for number in count())
        if shard_of([a, other], SHARDS) not in (shard_of([a], SHARDS), shard_of([other], SHARDS))
    )
    there = shard_of([a, b], SHARDS)
    for each in (a, b):
        shared.create(stream_sql(each))
        assert settled(shared, summary_sql(f"{each}_ids", each))["state"] == "RUNNING"

    def replicas() -> set[str]:
        (facts,) = (one for one in shared.http.get("/status").json()["shards"] if one["shard"] == there)
        return {one for one in facts["replicas"] if name in one}

    handle = shared.register(
        f"SELECT a.v AS av, b.v AS bv FROM {a} a JOIN {b} b ON a.id = b.id WITH PREFERENCE desc "
        "SUMMARY.Estimate.Count(a.id), SUMMARY.Estimate.Count(b.id) WINDOW 2 SECONDS"
    )
    summaries = {SUMMARY_KEY + f"{each}_ids" for each in (a, b)}
    assert replicas() == {a, b} | summaries
    for each in (a, b):
        shared.send(each, rows(20))
    exact = sum(left["id"] == right["id"] for left in rows(19) for right in rows(19))
    assert len(shared.await_rows(handle, exact)) == exact
    settled(shared, f"ALTER SUMMARY {a}_ids SET (theta = 0.25)")
    for number in (there, shard_of([a], SHARDS)):
        entity = shared.http.get(f"/entities/{number}/summary/{a}_ids").json()
        assert {one["name"]: one["value"] for one in entity["attributes"]}["theta"] == 0.25

    refused = settled(shared, summary_sql(f"{a}_more", a))
    assert refused["code"] == "summary_conflict"  # which of the two would SUMMARY be?

    say(shared, SUMMARY_KEY + f"{a}_ids", None)
    wait_until(lambda: shared.state(handle) == "PENDING", what="the join waits for its summary")
    assert len(shared.rows(handle)) == exact
    assert replicas() == {a, b, SUMMARY_KEY + f"{b}_ids"}
    settled(shared, summary_sql(f"{a}_ids", a))
    wait_until(lambda: shared.state(handle) == "RUNNING", what="the join runs again")
    assert len(shared.await_rows(handle, exact)) == exact
    assert replicas() == {a, b} | summaries
    assert shared.http.delete(f"/queries/{handle}").status_code in (200, 202)
    wait_until(lambda: not replicas(), what="the replicas have left")
