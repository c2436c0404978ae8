"""What queries are given, set by hand on a running broker: answers, tags, refusals, and a kill in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000
ROWS = 3_000


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": 1.5, "ts": BASE_MS + i} for i in range(start, start + count)]


def patched(one: Broker, handle: str, **values: Any) -> httpx.Response:
    return one.http.patch(f"/entities/query/{handle}", json=values)


def given(one: Broker, handle: str, **values: Any) -> dict[str, Any]:
    reply = patched(one, handle, **values)
    assert reply.status_code == 200, reply.text
    return {attribute["name"]: attribute for attribute in reply.json()["attributes"]}


def tags(one: Broker, handle: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = one.snapshot(handle)["approximation"]
    return found


def registered(one: Broker, sql: str, **options: object) -> str:
    handle = new_handle()
    reply = one.http.post("/queries", json={"sql": sql, "handle": handle, "options": options})
    assert reply.status_code in (200, 201), reply.text
    return handle


def test_a_count_is_given_fewer_rows_and_all_again(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    window = "[RANGE 1 HOUR DOWN TO 1 SECOND]"
    exact = shared.register(f"SELECT COUNT(*) AS n, SUM(v) AS total, MAX(id) AS last FROM {name} {window}")
    counted = registered(shared, f"SELECT COUNT(*) AS n, AVG(v) AS mean FROM {name}", max_error=0.9)
    shared.send(name, rows(ROWS))
    wait_until(lambda: shared.rows(exact)[0][0] == ROWS - 1, what="all rows but the last are in")
    n = ROWS - 1

    found = given(shared, counted, **{f"percent.{name}": 50})
    assert found[f"percent.{name}"]["changes_answers"]
    ((count, mean),) = shared.rows(counted)
    assert count != n
    assert abs(count - n) < 0.15 * n
    assert mean == 1.5
    (tag,) = tags(shared, counted)
    assert (tag["kind"], tag["origin"], tag["amount"], tag["asked"]) == ("sample", "dynamic", 50, 100)
    assert 0 < tag["expected"]["error"] < 0.9
    assert tag["since"]
    told = shared.http.get(f"/queries/{counted}").json()
    assert told["sql"] == f"SELECT COUNT(*) AS n, AVG(v) AS mean FROM {name}"
    (listed,) = told["approximation"]
    assert {**listed, "expected": None} == {**tag, "expected": None}
    assert listed["expected"]["error"] == pytest.approx(tag["expected"]["error"], rel=0.2)  # not measured
    attributes = shared.http.get(f"/entities/query/{counted}").json()["attributes"]
    precision = {one["name"]: one["value"] for one in attributes if one["unit"] == "share"}
    assert precision["error"] == pytest.approx(precision["error_expected"], abs=0.05)
    assert precision["fn"] == precision["fn_expected"] == 0.0
    explained = shared.http.post("/statements", json={"sql": f"EXPLAIN '{counted}'"})
    assert explained.status_code == 200, explained.text

    given(shared, exact, **{f"window_ms.{name}": 1_000})
    assert shared.rows(exact) == [[1_001, 1_001 * 1.5, n - 1]]
    (tag,) = tags(shared, exact)
    assert (tag["kind"], tag["amount"], tag["asked"], tag["unit"]) == ("window", 1_000, 3_600_000, "ms")
    given(shared, exact, **{f"window_ms.{name}": None})
    assert shared.rows(exact)[0][0] == n
    assert tags(shared, exact) == []
    given(shared, counted, **{f"percent.{name}": 100})
    assert shared.rows(counted) == [[n, 1.5]]


def test_what_a_query_does_not_tolerate_is_refused(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    exact = shared.register(f"SELECT id FROM {name} [RANGE 1 HOUR]")
    some = registered(shared, f"SELECT id FROM {name} [RANGE 1 HOUR DOWN TO 10 MINUTES]", max_fn=0.5)
    shared.send(name, rows(20))
    shared.await_rows(exact, 19)
    percent, window = f"percent.{name}", f"window_ms.{name}"
    for handle, values, code in (
        (exact, {percent: 50}, "attribute_refused"),
        (exact, {window: 60_000}, "attribute_refused"),
        (some, {window: 599_999}, "attribute_refused"),
        (some, {window: 3_600_001}, "attribute_refused"),
        (some, {window: 600_000.5}, "attribute_refused"),
        (some, {percent: 0}, "attribute_refused"),
        (some, {percent: -1}, "attribute_refused"),
        (some, {percent: 20}, "allotment_refused"),
        (some, {"percent.gone": 20}, "attribute_refused"),
        (some, {percent: 60, "weight": 2}, "bad_request"),
        (some, {percent: 60, "if_version": 1}, "edit_conflict"),
        (some, {percent: "many"}, "attribute_refused"),
    ):
        reply = patched(shared, handle, **values)
        assert reply.json().get("code") == code, (values, reply.text)
        assert reply.status_code >= 400
        assert reply.json()["hint"] or code == "edit_conflict"
    assert tags(shared, some) == tags(shared, exact) == []
    version = shared.http.get(f"/entities/query/{some}").json()["version"]
    assert patched(shared, some, **{percent: 60, "if_version": version}).status_code == 200
    late = patched(shared, some, **{percent: 70, "if_version": version})
    assert (late.status_code, late.json()["code"]) == (409, "edit_conflict")
    assert [tag["amount"] for tag in tags(shared, some)] == [60]
    less = shared.http.patch(f"/queries/{some}", json={"max_fn": None})
    assert less.status_code == 200, less.text
    assert tags(shared, some) == []


def test_a_query_that_waits_for_its_stream_is_given_nothing(shared: Broker, name: str) -> None:
    handle = new_handle()
    sql = f"SELECT id FROM {name} SAMPLE(100 DOWN TO 5)"
    assert shared.http.post("/queries", json={"sql": sql, "handle": handle}).json()["state"] == "PENDING"
    refused = patched(shared, handle, **{f"percent.{name}": 50})
    assert (refused.status_code, refused.json()["code"]) == (409, "query_not_running")


def test_what_was_set_by_hand_stays_as_long_as_the_bounds_of_the_options_allow_it(
    shared: Broker, name: str
) -> None:
    shared.create(stream_sql(name))
    exact = shared.register(f"SELECT id FROM {name}")
    some = registered(shared, f"SELECT id FROM {name} SAMPLE(100 DOWN TO 5)")
    shared.send(name, rows(20))
    shared.await_rows(exact, 19)
    given(shared, some, **{f"percent.{name}": 60})
    for most, amounts in ((0.45, [60]), (0.3, [])):  # 40 % are missing
        reply = shared.http.patch(f"/queries/{some}", json={"max_fn": most})
        assert reply.status_code == 200, reply.text
        assert [tag["amount"] for tag in tags(shared, some)] == amounts
    assert shared.rows(some) == shared.rows(exact)


def test_an_allotment_outlasts_a_kill_to_the_bit(kafka: str, tmp_path: Path) -> None:
    name = f"s{new_handle()[:10]}"
    with broker(kafka, tmp_path / "data", f"t{new_handle()[:12]}") as one:
        one.create(stream_sql(name))
        every = one.register(f"SELECT id FROM {name}")
        some = registered(one, f"SELECT id FROM {name} EMIT CHANGES", max_fn=0.9)
        one.send(name, rows(500))
        one.await_rows(every, 499)
        given(one, some, **{f"percent.{name}": 30})
        one.send(name, rows(500, 500))
        one.await_rows(every, 999)
        before, tag = one.rows(some), tags(one, some)
        assert 200 < len(before) < 400
        one.kill()
        one.start()
        wait_until(lambda: len(one.rows(every)) == 999, what="it is back")
        assert (one.rows(some), tags(one, some)) == (before, tag)
        with pytest.raises(AssertionError):
            given(one, some, **{f"percent.{name}": 3})
        given(one, some, **{f"percent.{name}": 10})
        assert len(one.rows(some)) < len(before)
        assert query_id(some) in {entry["query_id"] for entry in one.http.get("/queries").json()["queries"]}


def test_short_of_memory_those_who_tolerate_it_are_given_less(kafka: str, tmp_path: Path) -> None:
    """The budget of this broker is short from the beginning, and stays so."""
    name = f"s{new_handle()[:10]}"
    short = {"ALLOCATION_BEGIN": 1e-6, "ALLOCATION_TARGET": 1e-6, "ALLOCATION_END": 1e-7}
    with broker(kafka, tmp_path / "data", f"t{new_handle()[:12]}", ALLOCATION_MS=100, **short) as one:
        one.create(f"{stream_sql(name)} RETAIN 10 MILLISECONDS")
        window = "[RANGE 2 SECONDS DOWN TO 500 MILLISECONDS]"
        exact = one.register(f"SELECT id FROM {name} [RANGE 100 MILLISECONDS]")
        some = one.register(f"SELECT id FROM {name} {window}")
        bound = registered(one, f"SELECT v FROM {name} {window}", max_fn=0.1, weight=3)
        one.send(name, rows(ROWS))
        wait_until(lambda: len(one.rows(exact)) == 101, what="all rows are in")
        for handle in (some, bound):
            wait_until(lambda: [tag["amount"] for tag in tags(one, handle)] == [500], what="less is given")  # noqa: B023
        assert tags(one, exact) == []
        for handle in (some, bound):
            (tag,) = tags(one, handle)
            assert (tag["kind"], tag["amount"], tag["asked"]) == ("window", 500, 2_000)
            assert tag["expected"]["fn"] == pytest.approx(0.75)
        assert len(one.rows(some)) == 501
        told = one.http.get(f"/queries/{bound}").json()["unreachable"]
        assert told["code"] == "precision_unreachable"
        assert one.http.get(f"/queries/{some}").json()["unreachable"] is None
        allocation = one.http.get("/status").json()["allocation"]
        assert (allocation["queries"], allocation["unreachable"]) == (2, [query_id(bound)])
        assert "tureen_allocation_queries 2.0" in one.http.get("/metrics").text
        given(one, some, **{f"window_ms.{name}": 1_000})
        assert [tag["amount"] for tag in tags(one, some)] == [1_000]
        wait_until(lambda: [t["amount"] for t in tags(one, bound)] == [1_000], what="it is given as much")
