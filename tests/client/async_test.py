"""The asynchronous client, against a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import tureen
from tests.client.conftest import Broker
from tureen.errors import (
    BrokerUnavailable,
    NotSupported,
    QueryPaused,
    SyntaxRefused,
    UnknownColumn,
    UnknownQuery,
    UnknownSource,
)


def run(broker: Broker, work: Callable[[tureen.AsyncClient], Awaitable[None]]) -> None:
    async def connected() -> None:
        async with tureen.connect_async(broker.url) as client:
            await work(client)

    asyncio.run(connected())


def test_a_query_from_its_registration_to_its_end(broker: Broker, trades: str) -> None:
    async def work(client: tureen.AsyncClient) -> None:
        query = await client.register(f"SELECT symbol, price FROM {trades} WHERE price > 7")
        assert (query.state, (await query.status()).state) == ("RUNNING", "RUNNING")
        answer = await query.snapshot()
        assert answer.rows() == [{"symbol": "a", "price": 8.0}, {"symbol": "b", "price": 9.0}]
        assert (await query.snapshot(at=1_008_000)).rows() == [{"symbol": "a", "price": 8.0}]
        assert (await query.plan())["query_id"] == query.query_id
        assert (await query.set_maintenance("eager")).state == "RUNNING"
        assert (await query.set_strategy("upa", partitions="auto")).facts["strategy"] == "upa"
        assert query.query_id in {one.query_id for one in await client.queries()}
        (found,) = await client.match(trades, [{"symbol": "a", "price": 99, "at": 1_010_000}])
        assert query.query_id in found.query_ids
        await query.pause()
        with pytest.raises(QueryPaused):
            await query.snapshot()
        assert (await query.resume()).state == "RUNNING"
        await query.unregister()
        with pytest.raises(UnknownQuery):
            await client.query(query.handle).snapshot()

    run(broker, work)


def test_sources_statements_and_figures(broker: Broker, trades: str) -> None:
    async def work(client: tureen.AsyncClient) -> None:
        view = f"view_{tureen.new_handle()[:8]}"
        await client.create(f"CREATE VIEW {view} AS SELECT price FROM {trades} WHERE price > 8")
        assert {view, trades} <= {one.name for one in await client.sources()}
        assert (await client.ask(f"SELECT price FROM {view}")).rows() == [{"price": 9.0}]
        described = await client.execute(f"DESCRIBE {view}")
        assert [row["column"] for row in described] == ["price"]
        await client.drop(view)
        assert "queries" in await client.service()

    run(broker, work)


def test_many_at_once_and_many_calls_at_once(broker: Broker, trades: str) -> None:
    async def work(client: tureen.AsyncClient) -> None:
        told: list[int] = []
        text = f"SELECT price FROM {trades} WHERE price = ?"
        queries = await client.register_many(
            [*(tureen.Template(text, [number]) for number in range(4, 10)), "nonsense"], progress=told.append
        )
        assert told[-1] == 7
        assert isinstance(queries[-1].error, SyntaxRefused)
        answers = await asyncio.gather(*(query.snapshot() for query in queries[:-1]))
        assert [answer.rows()[0]["price"] for answer in answers] == [4, 5, 6, 7, 8, 9]

    run(broker, work)


def test_refusals_are_those_of_the_other_client(broker: Broker, trades: str) -> None:
    async def work(client: tureen.AsyncClient) -> None:
        with pytest.raises(UnknownColumn) as refused:
            await client.register(f"SELECT prize FROM {trades}")
        assert (refused.value.line, refused.value.column) == (1, 8)
        with pytest.raises(TypeError):
            await client.register()

    run(broker, work)


def test_asked_once_nothing_stays(broker: Broker, client: tureen.Client, trades: str) -> None:
    before = {one.query_id for one in client.queries()}

    async def work(other: tureen.AsyncClient) -> None:
        answer = await other.ask(template=f"SELECT price FROM {trades} WHERE price > ?", parameters=[8])
        assert answer.rows() == [{"price": 9.0}]
        with pytest.raises(UnknownSource):
            await other.ask("SELECT v FROM nowhere_at_all")

    run(broker, work)
    assert client.ask(f"SELECT price FROM {trades} WHERE price > 8", at=1_008_000).rows() == []
    for text in ("SELECT v FROM nowhere_at_all", f"SELECT prize FROM {trades}", "nonsense"):
        with pytest.raises(tureen.TureenError):
            client.ask(text)
    for text in ("SHOW STREAMS", f"DESCRIBE {trades}", f"CREATE STREAM {trades}_b (v BIGINT)"):
        with pytest.raises(NotSupported) as refused:
            client.ask(text)
        assert refused.value.message == "only a SELECT can be asked or registered"
        assert "client.execute(...)" in str(refused.value)
    assert {one.query_id for one in client.queries()} <= before


def test_nobody_at_the_address() -> None:
    async def work() -> None:
        async with tureen.connect_async("http://127.0.0.1:1") as client:
            with pytest.raises(BrokerUnavailable, match="tureen serve"):
                await client.sources()

    asyncio.run(work())
    with pytest.raises(BrokerUnavailable):
        tureen.connect_async("http://host:port")
