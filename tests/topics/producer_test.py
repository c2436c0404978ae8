"""Transactions end in one of four ways, each told apart; batches say what was not written."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from tests.broker.running import read_all
from tests.kafka import Node, await_ended, free_ports, wait_until
from tests.topics.consumer import START, read_until, settings, values_of
from topics import produce_loop
from topics.admin import Admin, TopicPolicy
from topics.consumer import BatchConsumer, Polled
from topics.letters import forwarded
from topics.produce_loop import FEW_RECORDS
from topics.producer import (
    BatchProducer,
    CommitUnknown,
    TransactionAborted,
    TransactionalProducer,
)
from tureen.errors import Fenced, KafkaUnavailable, TopicMissing
from tureen.protocol import HEADER_OFFSET, HEADER_PARTITION, HEADER_REASON, HEADER_TOPIC


def everything(bootstrap: str, topic: str) -> list[Polled]:
    await_ended(bootstrap, topic)
    consumer = BatchConsumer(settings(bootstrap))
    consumer.add(topic, START)
    polled = read_until(consumer, lambda _: not consumer.lagging(topic))
    consumer.close()
    return polled


def test_a_second_owner_fences_the_first(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    old = TransactionalProducer(settings(kafka), service_id)
    with old.transaction() as transaction:
        transaction.send(service_id, b"old")
    new = TransactionalProducer(settings(kafka), service_id)
    with pytest.raises(Fenced), old.transaction() as transaction:
        transaction.send(service_id, b"too late")
    with pytest.raises(Fenced), old.transaction() as transaction:
        transaction.send(service_id, b"still too late")
    with new.transaction() as transaction:
        transaction.send(service_id, b"new")
    assert values_of(everything(kafka, service_id)) == [b"old", b"new"]
    old.close()
    new.close()


def refusal(
    producer: TransactionalProducer, good: str, small: str, value: bytes, partition: int
) -> TransactionAborted:
    try:
        with producer.transaction(reporting=True) as transaction:
            transaction.send(good, b"never seen")
            transaction.send_many(small, large([value]), large([b"key"]), [], np.array([partition], np.int32))
    except TransactionAborted as aborted:
        return aborted
    raise AssertionError("it was written")


def test_what_a_topic_refuses_is_told_of_it(kafka: str, service_id: str) -> None:
    small = f"{service_id}.small"
    Admin(settings(kafka)).ensure([TopicPolicy(small, 1, {"max.message.bytes": "1000"}, verified=())])
    Admin(settings(kafka)).ensure_source_topic(service_id)
    producer = TransactionalProducer(settings(kafka), service_id)
    wide = random.Random(0).randbytes(2_000)
    for partition, value in ((0, wide), (7, b"in no partition")):
        aborted = refusal(producer, service_id, small, value, partition)
        assert aborted.topics.keys() == {small}
    with producer.transaction() as transaction:
        transaction.send(service_id, b"seen")
    assert values_of(everything(kafka, service_id)) == [b"seen"]
    assert values_of(everything(kafka, small)) == []
    producer.close()


def test_an_open_transaction_of_a_dead_owner_is_rolled_back(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    dead = TransactionalProducer(settings(kafka), service_id)
    dead._producer.begin_transaction()
    dead._producer.produce(service_id, b"unfinished")
    dead._producer.flush(10)
    heir = TransactionalProducer(settings(kafka), service_id)
    with heir.transaction() as transaction:
        transaction.send(service_id, b"heir")
    assert values_of(everything(kafka, service_id)) == [b"heir"]
    heir.close()


def test_a_transaction_that_cannot_be_written_is_rolled_back_and_the_next_goes_on(
    kafka: str, service_id: str
) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    producer = TransactionalProducer({**settings(kafka), "message.timeout.ms": 2000}, service_id)
    with pytest.raises(TransactionAborted), producer.transaction() as transaction:  # noqa: PT012
        transaction.send(service_id, b"with it")
        transaction.send(f"{service_id}-never-made", b"x")
    with producer.transaction() as transaction:
        transaction.send(service_id, b"after")
    assert values_of(everything(kafka, service_id)) == [b"after"]
    producer.close()


def test_a_commit_without_an_answer_is_unknown(kafka_node: Node, service_id: str) -> None:
    own = settings(kafka_node.bootstrap)
    Admin(own).ensure_source_topic(service_id)
    producer = TransactionalProducer(own, service_id, timeout_s=3)
    with pytest.raises(CommitUnknown), producer.transaction() as transaction:  # noqa: PT012
        transaction.send(service_id, b"?")
        producer._producer.flush(10)
        kafka_node.stop()
    producer.close()
    kafka_node.start()
    heir = TransactionalProducer(own, service_id)
    with heir.transaction() as transaction:
        transaction.send(service_id, b"heir")
    assert values_of(everything(kafka_node.bootstrap, service_id))[-1] == b"heir"
    heir.close()


def test_nobody_answers() -> None:
    nowhere = settings(f"127.0.0.1:{free_ports(1)[0]}")
    with pytest.raises(KafkaUnavailable):
        TransactionalProducer(nowhere, "x", timeout_s=0.5)
    producer = BatchProducer(nowhere)
    producer.send_many("x", [b"1", b"2"])
    with pytest.raises(KafkaUnavailable, match="2 records"):
        producer.flush(0.2)


def test_what_was_not_written_is_counted(kafka: str, service_id: str) -> None:
    producer = BatchProducer({**settings(kafka), "topic.metadata.propagation.max.ms": 500})
    producer.send_many(f"{service_id}-never-made", [b"1", b"2", b"3"])
    with pytest.raises(TopicMissing) as caught:
        producer.flush(60)
    assert "3 records were not written" in str(caught.value.hint)
    producer.flush(1)


def test_keys_and_nulls(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    producer = BatchProducer(settings(kafka))
    producer.send_many(service_id, [b"1", None], [b"a", b"b"])
    producer.close()
    polled = everything(kafka, service_id)
    assert values_of(polled) == [b"1", None]
    assert [m.key() for one in polled for m in one.messages] == [b"a", b"b"]


# --- many records, by the compiled loop and one by one --------------------------------------------

MANY = 3 * FEW_RECORDS


def large(texts: list[bytes | None]) -> pa.LargeBinaryArray:
    return pa.array(texts, pa.large_binary())


@pytest.fixture(params=["loop", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "one by one":
        monkeypatch.setattr(produce_loop, "library", lambda: None)
    return str(request.param)


def made(kafka: str, name: str, **more: int) -> TransactionalProducer:
    producer = TransactionalProducer({**settings(kafka), **more}, name)
    assert (producer._loop is None) == (produce_loop.library() is None)
    return producer


def test_the_client_library_is_bound_here() -> None:
    assert produce_loop.library() is not None


def test_many_records_of_a_transaction_have_keys_headers_and_partitions(
    way: str, kafka: str, service_id: str
) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id, 3)
    producer = made(kafka, service_id)
    values: list[bytes | None] = [
        None if i % 7 == 0 else b"" if i % 7 == 1 else b"%d" % i for i in range(MANY)
    ]
    keys: list[bytes | None] = [b"" if i % 5 == 0 else b"key\0%d" % i for i in range(MANY)]
    at: list[bytes | None] = [b"\0%d" % i if i % 3 else b"" for i in range(MANY)]
    numbers = np.arange(MANY, dtype=np.int32) % 3
    whole = large([b"before", *values]).slice(1), large([b"x", *keys]).slice(1), large([b"y", *at]).slice(1)
    with producer.transaction() as transaction:
        transaction.send_many(
            service_id, whole[0], whole[1], [("first", b"1\0"), ("at", whole[2]), ("last", b"")], numbers
        )
        transaction.send_many(service_id, whole[0][:0], whole[1][:0], [], numbers[:0])
    found = read_all(kafka, Admin(settings(kafka)), service_id)
    told = [(m.partition(), m.key(), m.value(), m.headers()) for m in found]
    for number in range(3):  # in order
        assert [one for one in told if one[0] == number] == [
            (number, keys[i], values[i], [("first", b"1\0"), ("at", at[i]), ("last", b"")])
            for i in range(number, MANY, 3)
        ]
    producer.close()


def test_the_key_chooses_the_partition_on_either_way(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id, 4)
    producer = made(kafka, service_id)
    keys = [b"%d" % i for i in range(MANY)]
    with producer.transaction() as transaction:
        transaction.send_many(service_id, large([b"many"] * MANY), large(list(keys)), [])
        for key in keys:
            transaction.send(service_id, b"one", key)
    where: dict[bytes, set[tuple[int, bool]]] = {}
    for m in read_all(kafka, Admin(settings(kafka)), service_id):
        where.setdefault(m.key(), set()).add((m.partition(), bool(m.headers())))
    assert len(where) == MANY
    assert {len(places) for places in where.values()} == {1}
    producer.close()


def test_a_full_queue_is_waited_for(way: str, kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    producer = made(kafka, service_id, **{"queue.buffering.max.messages": FEW_RECORDS})
    values: list[bytes | None] = [b"%d" % i for i in range(MANY)]
    with producer.transaction() as transaction:
        transaction.send_many(service_id, large(values), large([b"k"] * MANY), [])
    assert values_of(everything(kafka, service_id)) == values
    producer.close()


def test_a_record_that_is_too_large_for_the_client_is_told(way: str, kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    producer = made(kafka, service_id, **{"message.max.bytes": 10_000})
    values: list[bytes | None] = [b"%d" % i for i in range(MANY)]
    values[MANY // 2] = bytes(20_000)
    too_large = pytest.raises(TransactionAborted, match="Message size too large")
    with too_large as caught, producer.transaction() as transaction:
        transaction.send_many(service_id, large(values), large([b"k"] * MANY), [])
    assert caught.value.topics.keys() == {service_id}
    with producer.transaction() as transaction:
        transaction.send_many(service_id, large(values[:3]), large([b"k"] * 3), [])
    assert values_of(everything(kafka, service_id)) == values[:3]
    producer.close()


def test_a_partition_that_is_not_there_ends_the_transaction(way: str, kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    producer = made(kafka, service_id)
    values, keys = large([b"v"] * MANY), large([b"k"] * MANY)
    for _ in range(2):  # what is known of the topic makes a difference
        with pytest.raises(TransactionAborted), producer.transaction() as transaction:
            transaction.send_many(service_id, values, keys, [], np.full(MANY, 7, np.int32))
    with producer.transaction() as transaction:
        transaction.send_many(service_id, values, keys, [], np.zeros(MANY, np.int32))
    assert values_of(everything(kafka, service_id)) == [b"v"] * MANY
    producer.close()


def test_many_records_of_a_fenced_owner(way: str, kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    values, keys = large([b"v"] * MANY), large([b"k"] * MANY)
    old = made(kafka, service_id)
    with old.transaction() as transaction:
        transaction.send_many(service_id, values, keys, [])
    new = made(kafka, service_id)
    for _ in range(2):
        with pytest.raises(Fenced), old.transaction() as transaction:
            transaction.send_many(service_id, values, keys, [])
    new.close()
    old.close()
    assert values_of(everything(kafka, service_id)) == [b"v"] * MANY


def test_a_transaction_that_cannot_begin_is_told(kafka: str, service_id: str) -> None:
    producer = made(kafka, service_id)
    assert producer._loop is not None
    assert producer._loop.begin_transaction()
    assert not producer._loop.begin_transaction()
    with pytest.raises(CommitUnknown, match="beginning"), producer.transaction():
        pass
    producer.close()


def test_another_layout_of_the_client_library_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    other = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    assert produce_loop.ProduceLoop.of(producer) is not None
    for wrong in (0, 8, produce_loop._client(other)):
        monkeypatch.setattr(produce_loop, "_client", lambda _, at=wrong: at)
        assert produce_loop.ProduceLoop.of(producer) is None


def test_a_forwarded_record_is_untouched(kafka: str, service_id: str) -> None:
    letters = f"{service_id}-letters"
    admin = Admin(settings(kafka))
    admin.ensure_source_topic(service_id)
    admin.ensure_source_topic(letters)
    producer = TransactionalProducer(settings(kafka), service_id)
    with producer.transaction() as transaction:
        transaction.send(service_id, b"\xff{", b"key", headers=[("own", b"\x00")])
    [bad] = [m for one in everything(kafka, service_id) for m in one.messages]
    with producer.transaction() as transaction:
        value, key, headers = forwarded(bad, "not JSON: é")
        transaction.send(letters, value, key, headers=headers)
    [letter] = [m for one in everything(kafka, letters) for m in one.messages]
    assert (letter.value(), letter.key()) == (b"\xff{", b"key")
    assert letter.headers() == [
        ("own", b"\x00"),
        (HEADER_REASON, "not JSON: é".encode()),
        (HEADER_TOPIC, service_id.encode()),
        (HEADER_PARTITION, b"0"),
        (HEADER_OFFSET, b"0"),
    ]
    producer.close()


def test_a_short_outage_is_waited_out(kafka_node: Node, service_id: str) -> None:
    own = settings(kafka_node.bootstrap)
    Admin(own).ensure_source_topic(service_id)
    producer = TransactionalProducer(own, service_id, timeout_s=30)
    with producer.transaction() as transaction:
        transaction.send(service_id, b"1")
    kafka_node.stop()
    kafka_node.start()
    sent: list[bytes] = []

    def write() -> bool:
        try:
            with producer.transaction() as transaction:
                transaction.send(service_id, b"2")
        except TransactionAborted:
            return False
        sent.append(b"2")
        return True

    wait_until(write)
    assert values_of(everything(kafka_node.bootstrap, service_id)) == [b"1", *sent]
    producer.close()
