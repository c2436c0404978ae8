"""``GET /queries`` searched, sorted and paged, and ``GET /shapes``, of a broker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000


def listed(one: Broker, **parameters: Any) -> dict[str, Any]:
    reply = one.http.get("/queries", params=parameters)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [one["query_id"] for one in found["queries"]]


@pytest.fixture
def handles(shared: Broker, name: str) -> list[str]:
    """Queries over a stream with 50 rows: four of one shape, one that counts all, one that waits."""
    shared.create(stream_sql(name))
    found = [shared.register(f"SELECT id FROM {name} WHERE v > {limit}") for limit in (2, 12, 20, 24)]
    found.append(shared.register(f"SELECT COUNT(*) AS n FROM {name}"))
    shared.http.post("/queries", json={"sql": f"SELECT 'Straße' AS t FROM missing_{name}"})
    shared.send(name, [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(50)])
    shared.await_rows(found[0], 44)
    wait_until(lambda: listed(shared, source=name)["total"] == 5, what="all are listed")
    return found


def test_queries_are_searched_filtered_and_sorted_with_figures(
    shared: Broker, name: str, handles: list[str]
) -> None:
    first = query_id(handles[0])

    def figures() -> dict[str, dict[str, Any]]:
        return {one["query_id"]: one["statistics"] for one in listed(shared, source=name)["queries"]}

    def matches() -> list[int | None]:
        found = figures()
        return [found.get(query_id(handle), {}).get("matches") for handle in handles]

    wait_until(lambda: matches() == [44, 24, 8, 0, 49], what="matches are counted")
    told = figures()
    assert told.keys() == set(map(query_id, handles))
    assert all(one["memory_bytes"] > 0 and one["cpu_share"] < 1 for one in told.values())
    wait_until(lambda: all(one["cpu_share"] > 0 for one in figures().values()), what="time is measured")
    assert all(one["age_ms"] > 10**6 for one in told.values())
    wait_until(lambda: figures()[first]["rows_per_s"] is not None, what="two readings")

    by_matches = listed(shared, source=name, sort="matches", order="desc")
    assert ids(by_matches) == [query_id(handles[place]) for place in (4, 0, 1, 2, 3)]
    assert by_matches["total"] == 5
    assert isinstance(by_matches["as_of_ms"], int)
    found = ids(listed(shared, search=f"V>24 {name}".replace(">", " > ")))
    # Names and ids are searched, too, and may have the digits by chance.
    assert [one for one in found if "24" not in one + name] == [
        one for one in [query_id(handles[3])] if "24" not in one + name
    ]
    assert query_id(handles[3]) in found
    assert ids(listed(shared, search=first.upper())) == [first]
    assert ids(listed(shared, search="STRASSE", state="PENDING"))
    assert not ids(listed(shared, search=name, state="ERROR"))
    assert shared.http.patch(f"/queries/{handles[0]}", json={"paused": True}).status_code == 200
    wait_until(
        lambda: ids(listed(shared, source=name, state="PAUSED")) == [first], what="the pause is listed"
    )
    (paused,) = listed(shared, source=name, state="PAUSED")["queries"]
    assert paused["statistics"]["matches"] is None
    assert paused["sql"].startswith("SELECT id")
    assert first not in str(listed(shared, source=name, state="RUNNING"))


def test_who_asks_for_the_same_page_is_answered_alike_until_a_query_changes(
    shared: Broker, name: str, handles: list[str]
) -> None:
    def same() -> bool:
        pages = [listed(shared, source=name, sort="matches") for _ in range(2)]
        return pages[0] == pages[1]

    wait_until(same, what="two answers of the same figures")
    assert shared.http.patch(f"/queries/{handles[1]}", json={"paused": True}).status_code == 200
    states = {one["query_id"]: one["state"] for one in listed(shared, source=name, sort="matches")["queries"]}
    assert states[query_id(handles[1])] == "PAUSED"


def test_queries_are_grouped_by_shape(shared: Broker, name: str, handles: list[str]) -> None:
    reply = shared.http.get("/shapes", params={"source": name})
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert found["total"] == 2
    assert found["queries_total"] == 5
    most, least = found["shapes"]
    assert (most["sql"], most["queries"]) == (f"SELECT id FROM {name} WHERE v > ?", 4)
    assert (least["sql"], least["running"]) == (f"SELECT COUNT(*) AS n FROM {name}", 1)
    of_shape = listed(shared, shape=most["shape"])
    assert set(ids(of_shape)) == set(map(query_id, handles[:4]))
    assert {one["shape"] for one in of_shape["queries"]} == {most["shape"]}
    assert listed(shared, shape="nothing")["total"] == 0
    second = shared.http.get("/shapes", params={"source": name, "offset": 1, "sort": "sql", "order": "asc"})
    assert [one["sql"] for one in second.json()["shapes"]] == [most["sql"]]


def test_pages_are_of_one_list_while_queries_come_and_go(
    shared: Broker, name: str, handles: list[str]
) -> None:
    first = listed(shared, source=name, sort="id", limit=2)
    order = sorted(map(query_id, handles))
    assert ids(first) == order[:2]
    gone = next(handle for handle in handles if query_id(handle) == order[3])
    assert shared.http.delete(f"/queries/{gone}").status_code == 200
    coming = query_id(shared.register(f"SELECT v FROM {name}"))
    wait_until(lambda: coming in ids(listed(shared, source=name, sort="text")), what="it is listed")
    second = listed(shared, source=name, sort="id", offset=2, limit=10, paging=first["paging"])
    assert second["total"] == 5
    assert ids(second) == [order[2], None, order[4]]
    assert second["queries"][1] == {"query_id": None, "state": "ENDED"}
    anew = listed(shared, source=name, sort="id")
    assert coming in ids(anew)  # no answer from before it came
    assert ids(anew) == sorted({*order, coming} - {order[3]})
    unknown = listed(shared, source=name, sort="id", paging="no such")
    assert ids(unknown) == ids(anew)
    assert unknown["paging"] != "no such"


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"sort": "price"}, "sort"),
        ({"state": "running"}, "state"),
        ({"offset": -1}, "offset"),
        ({"search": "x", "limit": 1_001}, "at most 1,000"),
        ({"search": "x", "after": "y"}, "after"),
        ({"search": " a" * 17}, "at most 16 words"),
        ({"search": "a" * 1_001}, "search"),
    ],
    ids=["sort", "state", "offset", "limit", "after", "words", "length"],
)
def test_what_cannot_be_listed_is_refused_with_the_reason(
    shared: Broker, parameters: dict[str, Any], told: str
) -> None:
    reply = shared.http.get("/queries", params=parameters)
    assert reply.status_code == 400
    assert reply.json()["code"] == "bad_request"
    assert told in reply.text


def test_how_far_behind_is_told_by_the_newest_record_of_streams(shared: Broker, name: str) -> None:
    """A table in arrival time is years later than a stream of the past, and holds NOW back no more for it."""
    shared.create(
        f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts', lateness = '1 minute')"
    )
    shared.create(f"CREATE TABLE {name}_t (k BIGINT PRIMARY KEY, v BIGINT)")
    handle = shared.register(f"SELECT a.k, b.v FROM {name} [RANGE 1 HOUR] a JOIN {name}_t b ON a.k = b.k")
    shared.producer.send_many(f"{name}_t", [b'{"v": 1}'], [b"1"])
    shared.producer.flush()
    shared.send(name, [{"k": 1, "ts": 1_300_000_000_000 + i} for i in range(3)])

    def behind() -> int | None:
        listed = shared.http.get("/queries", params={"search": query_id(handle)}).json()["queries"]
        return listed[0]["statistics"]["behind_ms"] if listed else None  # the list is made now and then

    wait_until(lambda: behind() == 60_001, what="NOW is a minute behind the newest record")
    wait_until(lambda: shared.source(name)["behind_ms"] == 60_001, what="the list of sources says so, too")
