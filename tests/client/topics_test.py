"""The client by topics alone, against a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tureen
from tests.client.conftest import Broker
from tests.kafka import wait_until
from topics.admin import Admin
from topics.newest import facts_of, newest
from tureen.errors import KafkaUnavailable, UnknownColumn, UnknownQuery
from tureen.protocol import TopicNames


@pytest.fixture
def by_topic(broker: Broker) -> Iterator[tureen.Client]:
    """No HTTP: the address is one where nothing listens."""
    kafka = {"bootstrap.servers": broker.bootstrap}
    with tureen.connect("http://127.0.0.1:1", kafka, broker.service_id) as connected:
        yield connected


def test_register_and_fetch_without_http(by_topic: tureen.Client, trades: str) -> None:
    query = by_topic.register(f"SELECT symbol, price FROM {trades} WHERE price > 7")

    assert query.state == "RUNNING"
    answer = query.snapshot()
    assert answer.rows() == [{"symbol": "a", "price": 8.0}, {"symbol": "b", "price": 9.0}]
    assert answer.now_ms == 1_009_000
    assert answer.position
    assert query.snapshot(at=1_008_000).rows() == [{"symbol": "a", "price": 8.0}]
    assert query.status().state == "RUNNING"


def test_both_ways_open_the_same_answer(by_topic: tureen.Client, client: tureen.Client, trades: str) -> None:
    sql = f"SELECT price FROM {trades} WHERE price = 2"
    assert client.snapshot(by_topic.register(sql).handle).rows() == [{"price": 2.0}]
    assert by_topic.snapshot(client.register(sql).handle).rows() == [{"price": 2.0}]


def test_a_refusal_comes_back_on_the_status_topic(by_topic: tureen.Client, trades: str) -> None:
    with pytest.raises(UnknownColumn) as refused:
        by_topic.register(f"SELECT prize FROM {trades}")
    assert refused.value.column == 8


def test_an_unknown_handle(by_topic: tureen.Client, broker: Broker) -> None:
    with pytest.raises(UnknownQuery):
        by_topic.snapshot(tureen.new_handle())
    with pytest.raises(UnknownQuery):
        by_topic.status(tureen.new_handle())


def test_published_without_waiting_it_stands_soon(
    by_topic: tureen.Client, client: tureen.Client, trades: str
) -> None:
    queries = [by_topic.register(f"SELECT price FROM {trades} WHERE price = {i}", wait=0) for i in range(3)]

    assert {query.state for query in queries} == {"PUBLISHED"}
    for query in queries:
        wait_until(lambda q=query: q.query_id in {one.query_id for one in client.queries()}, what="it stands")


def test_the_same_registration_again_is_told_as_it_stands(by_topic: tureen.Client, trades: str) -> None:
    handle = tureen.new_handle()
    sql = f"SELECT price FROM {trades} WHERE price = 6"

    assert by_topic.register(sql, handle).state == "RUNNING"
    assert by_topic.register(sql, handle, wait=8).state == "RUNNING"


def test_unregistering_removes_it_for_everybody(
    by_topic: tureen.Client, client: tureen.Client, trades: str
) -> None:
    query = by_topic.register(f"SELECT price FROM {trades}")

    query.unregister()

    wait_until(lambda: query.query_id not in {one.query_id for one in client.queries()}, what="it is gone")


def test_records_of_a_query_are_in_one_partition_whoever_wrote_them(
    by_topic: tureen.Client, client: tureen.Client, broker: Broker, trades: str
) -> None:
    sql = f"SELECT price FROM {trades}"
    queries = [way.register(sql) for way in (client, by_topic) for _ in range(8)]
    for number, query in enumerate(queries):
        (client if number % 2 else by_topic).unregister(query.handle)
    ids = {query.query_id for query in queries}
    wait_until(lambda: ids.isdisjoint(one.query_id for one in client.queries()), what="they are gone")

    topic = TopicNames(broker.service_id).queries
    settings = {"bootstrap.servers": broker.bootstrap}
    places = facts_of(Admin(settings), topic)
    found: dict[str, set[int]] = {}
    for one in newest(settings, topic, places, count=10_000):
        if (key := one.key().decode()) in ids:
            found.setdefault(key, set()).add(one.partition())
    assert places.partitions > 1
    assert {key: len(partitions) for key, partitions in found.items()} == dict.fromkeys(ids, 1)
    assert ids.isdisjoint(one.query_id for one in by_topic.queries())


def test_an_answer_of_many_chunks(by_topic: tureen.Client, broker: Broker, client: tureen.Client) -> None:
    name = f"wide_{tureen.new_handle()[:8]}"
    client.create(f"CREATE STREAM {name} (n BIGINT, text STRING) WITH (topic = '{name}')")
    broker.produce(name, [{"n": n, "text": f"{n:0500}"} for n in range(4_000)])
    query = by_topic.register(f"SELECT n, text FROM {name}")
    wait_until(lambda: len(client.snapshot(query.handle)) == 4_000, what="the rows are in")

    answer = query.snapshot()

    assert answer.to_arrow().nbytes > 1_500_000
    assert sorted(row["n"] for row in answer) == list(range(4_000))


def test_an_incomplete_answer_says_so_by_topic_as_well(
    by_topic: tureen.Client, broker: Broker, client: tureen.Client
) -> None:
    name = f"short_{tureen.new_handle()[:8]}"
    client.create(
        f"CREATE STREAM {name} (v BIGINT, at TIMESTAMP) WITH (topic = '{name}', timestamp = 'at', "
        "idle_timeout = '100 milliseconds') RETAIN 1 SECOND"
    )
    query = client.register(f"SELECT v FROM {name}")
    broker.produce(name, [{"v": v, "at": 1_000_000 + 1_000 * v} for v in range(10)])
    wait_until(lambda: query.snapshot().now_ms == 1_009_000, what="the rows are in")

    for answer in (query.snapshot(), by_topic.snapshot(query.handle)):
        assert not answer.complete
        assert answer.complete_from_ms == 1_008_000
        assert [row["v"] for row in answer] == [8, 9]


def test_no_kafka_at_the_address() -> None:
    with (
        tureen.connect(kafka={"bootstrap.servers": "127.0.0.1:1"}, timeout=1.0) as client,
        pytest.raises(KafkaUnavailable),
    ):
        client.register("SELECT 1 FROM s", wait=0)
