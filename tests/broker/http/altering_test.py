"""Another text under the same handle, over HTTP and by topic: the feed goes on, or says that it cannot."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.following import Feed, folded, once, row
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000


def rows(first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": i, "v": i % 5 / 2, "ts": BASE_MS + i * 100} for i in range(first, first + count)]


def alter(one: Broker, handle: str, sql: str, status: int = 200) -> dict[str, Any]:
    reply = one.http.patch(f"/queries/{handle}", json={"sql": sql})
    assert reply.status_code == status, reply.text
    facts: dict[str, Any] = reply.json()
    return facts


def answer(one: Broker, handle: str) -> Counter[str]:
    return Counter(row(values) for values in one.rows(handle))


def filled(one: Broker, name: str, sql: str) -> str:
    one.create(stream_sql(name))
    one.send(name, rows(0, 11))
    handle = one.register(sql)
    one.await_rows(handle, 1)
    wait_until(lambda: one.source(name)["rows"] == 10, what="ten rows are in")
    return handle


def test_feed_goes_on_with_the_difference(shared: Broker, name: str) -> None:
    handle = filled(shared, name, f"SELECT id, v FROM {name} WHERE v > 1")
    with Feed(shared, handle) as feed:
        first = feed.line()
        assert first is not None
        facts = alter(shared, handle, f"SELECT id, v FROM {name} WHERE v < 1.5")
        assert (facts["state"], facts["changes"]) == ("RUNNING", "continue")
        changed = feed.event()
        assert Counter(weight for weight, _, _ in changed["changes"]) == {-1: 4, 1: 6}
        shared.send(name, rows(11, 5))
        more = feed.until(BASE_MS + 1_499)
        *_, (_, left) = folded([first, changed, *more])
        assert left == answer(shared, handle)
    # A reader that was away meanwhile misses nothing.
    again = once(shared, handle, first["position"])
    *_, (_, left) = folded([first, *again])
    assert left == answer(shared, handle)
    assert len(shared.http.get("/queries", params={"limit": 10_000}).json()["queries"]) >= 1
    assert shared.http.get(f"/queries/{handle}").json()["sql"].endswith("v < 1.5")


def test_other_columns_end_the_feed_with_a_reason(shared: Broker, name: str) -> None:
    handle = filled(shared, name, f"SELECT id, v FROM {name} WHERE v > 1")
    with Feed(shared, handle) as feed:
        first = feed.line()
        assert first is not None
        assert alter(shared, handle, f"SELECT id FROM {name} WHERE v > 1")["changes"] == "must_refetch"
        end = feed.event()
        assert (end["type"], end["reason"]) == ("end", "must_refetch")
        assert "text" in end["error"]["hint"]
    reply = shared.http.get(f"/queries/{handle}/changes", params={"since": first["position"]})
    assert (reply.status_code, reply.json()["code"]) == (410, "must_refetch"), reply.text


def test_text_over_other_sources_ends_the_feed_and_answers_from_there(shared: Broker, name: str) -> None:
    handle = filled(shared, name, f"SELECT id, v FROM {name} WHERE v > 1")
    for place in range(6):  # some of them live on other shards
        other = f"{name}_{place}"
        shared.create(stream_sql(other))
        shared.send(other, rows(20, 2))
        with Feed(shared, handle) as feed:
            assert feed.line() is not None
            alter(shared, handle, f"SELECT id, v FROM {other} [RANGE {place + 1} DAYS]")
            *_, end = feed.lines()
            assert (end["type"], end["reason"]) == ("end", "must_refetch")
        assert shared.await_rows(handle, 1) == [[20, 0.0]]


def test_refused_text_leaves_the_query_running(shared: Broker, name: str) -> None:
    sql = f"SELECT id, v FROM {name} WHERE v > 1"
    handle = filled(shared, name, sql)
    before = answer(shared, handle)
    assert alter(shared, handle, f"SELECT nothing FROM {name}", 400)["code"] == "unknown_column"
    assert alter(shared, handle, "SELECT id FROM not_there", 400)["code"] == "unknown_source"
    assert alter(shared, handle, f"DROP STREAM {name}", 400)["code"] == "not_supported"
    # Refused by the worker: the topic of INTO has been taken by another form.
    shared.register(f"SELECT id FROM {name} EMIT CHANGES INTO {name} WITH (format = 'diff')")
    into = f"SELECT v, COUNT(*) AS n FROM {name} GROUP BY v EMIT CHANGES INTO {name}"
    assert alter(shared, handle, into, 400)["code"] == "output_conflict"
    facts = shared.http.get(f"/queries/{handle}").json()
    assert (facts["state"], facts["sql"]) == ("RUNNING", sql)
    assert answer(shared, handle) == before
    last = [one for one in shared.records(shared.names.queries) if one.key().decode() == query_id(handle)][-1]
    assert json.loads(last.value())["sql"] == sql
    assert shared.http.patch(f"/queries/{new_handle()}", json={"sql": sql}).json()["code"] == "unknown_query"


def test_template_and_options_change_with_it(shared: Broker, name: str) -> None:
    handle = filled(shared, name, f"SELECT id, v FROM {name} WHERE v > 1")
    shared.http.patch(f"/queries/{handle}", json={"weight": 3})
    body = {"template": f"SELECT id, v FROM {name} WHERE v > ?", "parameters": [1.5], "maintenance": "eager"}
    facts = shared.http.patch(f"/queries/{handle}", json=body).json()
    assert (facts["parameters"], facts["weight"], facts["maintenance"]) == ([1.5], 3, "eager")
    assert len(shared.rows(handle)) == 2
    reply = shared.http.post("/statements", json={"sql": f"ALTER QUERY '{handle}' AS SELECT id FROM {name}"})
    assert reply.status_code == 200, reply.text
    assert shared.http.get(f"/queries/{handle}").json()["sql"] == f"SELECT id FROM {name}"


def test_text_that_is_refused_by_topic_leaves_the_query_running_and_status_says_so(
    shared: Broker, name: str
) -> None:
    sql = f"SELECT id, v FROM {name} WHERE v > 1"
    handle = filled(shared, name, sql)
    shared.publish(handle, {"sql": f"SELECT nothing FROM {name}"})

    def told() -> dict[str, Any]:
        return (shared.status_topic()[query_id(handle)] or [None])[-1] or {}

    wait_until(lambda: (told().get("error") or {}).get("code") == "unknown_column", what="it is told")
    assert told()["state"] == "RUNNING"
    assert shared.http.get(f"/queries/{handle}").json()["sql"] == sql


@pytest.mark.slow
def test_result_topic_folds_to_the_answer_through_alterations_and_kills(kafka: str, tmp_path: Path) -> None:
    name = f"s{new_handle()[:10]}"
    counts = f"SELECT v, COUNT(*) AS n FROM {name} GROUP BY v EMIT CHANGES"
    with broker(kafka, tmp_path / "data", f"t{new_handle()[:12]}") as one:
        handle = filled(one, name, counts)
        assert alter(one, handle, counts.replace("GROUP", "WHERE id > 3 GROUP"))["changes"] == "continue"
        one.kill()
        one.start()
        wait_until(lambda: _results(one, handle) == answer(one, handle), what="the topic has the answer")
        altered = alter(one, handle, f"SELECT id, v FROM {name} [RANGE 1 DAY] WHERE v > 1 EMIT CHANGES")
        assert altered["changes"] == "must_refetch"
        one.send(name, rows(11, 5))
        wait_until(lambda: one.source(name)["rows"] == 15, what="fifteen rows are in")
        one.kill()
        one.start()
        wait_until(lambda: _results(one, handle) == answer(one, handle), what="the topic has the answer")


def _results(one: Broker, handle: str) -> Counter[str]:
    left: dict[bytes, bytes] = {}
    for record in one.records(one.names.results):
        if json.loads(record.key())["query"] != query_id(handle):
            continue
        left.pop(record.key(), None)
        if record.value() is not None:
            left[record.key()] = record.value()
    return Counter(row(list(json.loads(value).values())) for value in left.values())
