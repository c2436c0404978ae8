"""The client by HTTP, against a real broker."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

import tureen
from tests.client.conftest import Broker
from tests.kafka import wait_until
from tureen.errors import (
    HandleInUse,
    HandleNeeded,
    InstantOutOfRange,
    InstantRefused,
    NotSupported,
    SourceConflict,
    SyntaxRefused,
    UnknownColumn,
    UnknownQuery,
)


def test_an_answer_as_rows_arrow_pandas_and_polars(client: tureen.Client, trades: str) -> None:
    query = client.register(f"SELECT symbol, price FROM {trades} WHERE price > 6")

    answer = query.snapshot()

    rows = [{"symbol": "b", "price": 7.0}, {"symbol": "a", "price": 8.0}, {"symbol": "b", "price": 9.0}]
    assert answer.rows() == rows
    assert list(answer) == rows
    assert len(answer) == 3
    assert answer.columns == ["symbol", "price"]
    assert answer.to_arrow().to_pylist() == rows
    assert answer.to_pandas().to_dict("records") == rows
    assert answer.to_polars().to_dicts() == rows
    assert answer.complete
    assert not answer.approximate
    assert answer.now_ms == 1_009_000
    assert answer.now == datetime(1970, 1, 1, 0, 16, 49, tzinfo=UTC)
    assert answer.position


def test_the_handle_alone_opens_the_answer_from_another_connection(
    broker: Broker, client: tureen.Client, trades: str
) -> None:
    handle = client.register(f"SELECT price FROM {trades} WHERE price = 5").handle

    with tureen.connect(broker.url) as other:
        assert other.snapshot(handle).rows() == [{"price": 5.0}]
        assert other.query(handle).status().state == "RUNNING"


def test_an_earlier_instant(client: tureen.Client, trades: str) -> None:
    query = client.register(f"SELECT price FROM {trades} [RANGE 2 SECONDS]")

    assert [row["price"] for row in query.snapshot(at=1_002_000)] == [0.0, 1.0, 2.0]
    assert [row["price"] for row in query.snapshot(at=datetime.fromtimestamp(1_001, UTC))] == [0.0, 1.0]
    with pytest.raises(InstantOutOfRange):
        query.snapshot(at=99_000_000)
    for same in ("1970-01-01T00:16:41", "1001000", datetime(1970, 1, 1, 0, 16, 41)):
        assert [row["price"] for row in query.snapshot(at=same)] == [0.0, 1.0]
    for day in ("1970-01-01", date(1970, 1, 1)):
        assert query.snapshot(at=day).rows() == []
    with pytest.raises(InstantRefused, match="not an instant"):
        query.snapshot(at="yesterday")


def test_text_is_altered_and_queries_end_in_one_call(client: tureen.Client, trades: str) -> None:
    query = client.register(f"SELECT price FROM {trades} WHERE price > 7")
    with query.follow() as live:
        status = query.alter(f"SELECT price FROM {trades} WHERE price > 6")
        assert (status.state, status.facts["changes"]) == ("RUNNING", "continue")
        live.wait_for(lambda: len(live) == 3, timeout=30)
        query.alter(template=f"SELECT price FROM {trades} WHERE price > ?", parameters=[8])
        live.wait_for(lambda: len(live) == 1, timeout=30)
    with pytest.raises(UnknownColumn):
        query.alter(f"SELECT prize FROM {trades}")
    assert query.snapshot().rows() == [{"price": 9.0}]
    other = client.register(f"SELECT price FROM {trades}")
    with pytest.raises(HandleNeeded):
        client.snapshot(other.query_id)
    ended = client.unregister_many([query.handle, tureen.new_handle(), other.query_id])
    assert ended.query_ids == (query.query_id, other.query_id)
    assert [(place, error.code) for place, error in ended.unknown] == [(1, "unknown_query")]


def test_registering_twice_under_one_handle_is_one_query(client: tureen.Client, trades: str) -> None:
    handle = tureen.new_handle()
    sql = f"SELECT price FROM {trades} WHERE price = 1"

    first, second = client.register(sql, handle), client.register(sql, handle)

    assert first.query_id == second.query_id == tureen.query_id(handle)
    with pytest.raises(HandleInUse):
        client.register(f"SELECT price FROM {trades} WHERE price = 2", handle)
    assert client.snapshot(handle).rows() == [{"price": 1.0}]


def test_a_refusal_is_an_error_of_its_kind_with_its_place(client: tureen.Client, trades: str) -> None:
    with pytest.raises(UnknownColumn) as refused:
        client.register(f"SELECT prize FROM {trades}")
    assert (refused.value.line, refused.value.column) == (1, 8)
    assert "price" in (refused.value.hint or "")
    with pytest.raises(SyntaxRefused):
        client.register("SELEC price")
    with pytest.raises(NotSupported):
        client.register(f"SELECT price FROM {trades} TABLESAMPLE (5)")
    with pytest.raises(SourceConflict):
        client.create(f"CREATE STREAM {trades} (other BIGINT)")


def test_many_at_once_where_one_is_refused(client: tureen.Client, trades: str) -> None:
    handle = tureen.new_handle()

    queries = client.register_many(
        [
            f"SELECT price FROM {trades} WHERE price = 1",
            "nonsense",
            (f"SELECT price FROM {trades} WHERE price = 2", handle),
        ]
    )

    assert [query.state for query in queries] == ["RUNNING", "ERROR", "RUNNING"]
    assert isinstance(queries[1].error, SyntaxRefused)
    assert queries[2].handle == handle
    assert queries[2].snapshot().rows() == [{"price": 2.0}]


def test_a_thousand_at_once(client: tureen.Client, trades: str) -> None:
    queries = client.register_many(f"SELECT price FROM {trades} WHERE price = {i}" for i in range(1_000))

    assert {query.state for query in queries} == {"RUNNING"}
    assert queries[7].snapshot().rows() == [{"price": 7.0}]
    listed = {one.query_id for one in client.queries()}
    assert {query.query_id for query in queries} <= listed


def test_progress_is_told_while_outcomes_come(client: tureen.Client, trades: str) -> None:
    told: list[int] = []
    texts = [f"SELECT price AS p{i} FROM {trades} WHERE price = {i}" for i in range(1_500)]
    queries = client.register_many(texts, progress=told.append)
    assert {query.state for query in queries} == {"RUNNING"}
    assert len(told) > 1
    assert told == sorted(set(told))
    assert told[-1] == len(texts)


def test_unregistered_the_handle_opens_nothing(client: tureen.Client, trades: str) -> None:
    query = client.register(f"SELECT price FROM {trades}")

    query.unregister()

    wait_until(lambda: query.query_id not in {one.query_id for one in client.queries()}, what="it is gone")
    for call in (query.snapshot, query.status, query.unregister):
        with pytest.raises(UnknownQuery):
            call()


def test_a_query_before_its_stream_waits_for_it(client: tureen.Client) -> None:
    name = f"later_{tureen.new_handle()[:8]}"
    query = client.register(f"SELECT v FROM {name}")
    assert query.state == "PENDING"

    client.create(f"CREATE STREAM {name} (v BIGINT) WITH (topic = '{name}')")

    wait_until(lambda: query.status().state == "RUNNING", what="the query stands")


def test_lists_tell_queries_and_sources_but_no_handles(client: tureen.Client, trades: str) -> None:
    query = client.register(f"SELECT price FROM {trades} WHERE price = 4")

    listed = next(one for one in client.queries() if one.query_id == query.query_id)
    source = next(one for one in client.sources() if one.name == trades)

    assert listed.sql == query.sql
    assert listed.sources == (trades,)
    assert query.handle not in repr(listed) + repr(listed.facts)
    assert (source.rows, source.pending, source.late) == (10, 0, 0)
