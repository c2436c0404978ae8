"""Batches at explicit positions: every record once, positions past markers, and what can go wrong."""

from __future__ import annotations

import random

import pytest

from tests.kafka import Node, await_ended, wait_until
from tests.topics.consumer import START, read_until, settings, values_of, write
from topics.admin import Admin
from topics.consumer import BatchConsumer, OffsetLost, Polled
from topics.producer import TransactionalProducer
from tureen.errors import KafkaUnavailable, TopicMissing


def test_every_record_once_over_partitions_and_topics(kafka: str, service_id: str) -> None:
    admin = Admin(settings(kafka))
    topics = {f"{service_id}-a": 3, f"{service_id}-b": 1}
    consumer = BatchConsumer(settings(kafka))
    for topic, partitions in topics.items():
        admin.ensure_source_topic(topic, partitions)
        for partition in range(partitions):
            write(kafka, topic, [b"%d-%d" % (partition, n) for n in range(1000)], partition)
        consumer.add(topic, dict.fromkeys(range(partitions), -1))
    polled = read_until(consumer, lambda all_: len(values_of(all_)) >= 4000)
    for topic, partitions in topics.items():
        mine = [one for one in polled if one.topic == topic]
        for partition in range(partitions):
            offsets = [o for one in mine for o in one.offset[one.partition == partition].tolist()]
            assert offsets == list(range(1000))
        for one in mine:
            assert sum(r.count for r in one.ranges) == len(one)
            assert len(one.ranges) <= partitions
            for run in one.ranges:
                assert one.next_offsets[run.partition] == run.last + 1
    wait_until(lambda: consumer.poll(10, 0.01) or all(not consumer.lagging(topic) for topic in topics))
    assert consumer.next_offsets(f"{service_id}-a") == {0: 1000, 1: 1000, 2: 1000}
    consumer.close()


def test_no_partition_waits_for_the_end_of_another(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id, 2)
    for partition in range(2):
        write(kafka, service_id, [random.randbytes(200) for _ in range(50_000)], partition)
    consumer = BatchConsumer({**settings(kafka), "queued.min.messages": 5_000})
    consumer.add(service_id, {0: -1, 1: -1}, append_times=False)
    read_until(consumer, lambda all_: len(values_of(all_)) >= 40_000)
    assert min(consumer.next_offsets(service_id).values()) > 5_000
    consumer.close()


def test_records_max_is_kept_and_the_rest_lags(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    write(kafka, service_id, [b"%d" % n for n in range(100)])
    consumer = BatchConsumer(settings(kafka))
    consumer.add(service_id, {0: 40})
    first = read_until(consumer, bool)[0]
    assert first.offset[0] == 40
    consumer.add(service_id, {0: 40})  # again from the same place
    wait_until(lambda: (polled := consumer.poll(7, 0.05)) and len(polled[0]) == 7)
    assert consumer.next_offsets(service_id) == {0: 47}
    assert consumer.lagging(service_id) == {0}
    consumer.close()


def test_transactions_are_seen_whole_and_markers_passed(kafka: str, service_id: str) -> None:
    admin = Admin(settings(kafka))
    admin.ensure_source_topic(service_id, 2)
    producer = TransactionalProducer(settings(kafka), service_id)
    with producer.transaction() as transaction:
        transaction.send(service_id, b"1", partition=0)
    with pytest.raises(KeyError), producer.transaction() as transaction:  # noqa: PT012
        transaction.send(service_id, b"never", partition=0)
        producer._producer.flush(10)  # in the log before it is aborted
        raise KeyError
    with producer.transaction() as transaction:
        transaction.send(service_id, b"2", partition=0)
    await_ended(kafka, service_id)
    consumer = BatchConsumer(settings(kafka))
    consumer.add(service_id, {0: -1, 1: -1})
    both = [b"1", b"2"]
    polled = read_until(consumer, lambda got: values_of(got) == both and not consumer.lagging(service_id))
    ends = admin.end_offsets(service_id)
    assert ends[1] == 0
    assert consumer.next_offsets(service_id) == {0: ends[0], 1: 0}
    assert ends[0] > 3  # markers stand behind the last record
    assert polled[-1].lagging == frozenset()
    with producer.transaction() as transaction:
        transaction.send(service_id, b"3", partition=0)
        assert values_of(consumer.poll(10, 0.2)) == []  # open: not to be seen
    assert values_of(read_until(consumer, values_of)) == [b"3"]
    await_ended(kafka, service_id)
    ends = admin.end_offsets(service_id)
    read_until(
        consumer, lambda _: consumer.next_offsets(service_id) == ends and not consumer.lagging(service_id)
    )
    consumer.close()
    producer.close()


def test_topics_to_their_ends_past_what_is_not_seen(kafka: str, service_id: str) -> None:
    admin = Admin(settings(kafka))
    plain, written = f"{service_id}-plain", f"{service_id}-written"
    admin.ensure_source_topic(plain, 2)
    admin.ensure_source_topic(written)
    write(kafka, plain, [b"%d" % n for n in range(100)])
    producer = TransactionalProducer(settings(kafka), service_id)
    with producer.transaction() as transaction:
        transaction.send(written, b"last", partition=0)
    producer.close()
    wait_until(lambda: admin.end_offsets(written) == {0: 2}, what="the marker is written")
    ends = {topic: admin.end_offsets(topic) for topic in (plain, written)}
    assert (ends[plain][1], ends[written]) == (0, {0: 2})  # nothing at all, and a marker behind the record
    consumer = BatchConsumer(settings(kafka))
    for topic, until in ends.items():
        consumer.add(topic, dict.fromkeys(until, -1), append_times=False)
    assert not consumer.has_read(ends)
    polled = list(consumer.until(lambda: consumer.has_read(ends), 30.0, records_max=30))
    assert sorted(values_of(polled), key=str) == sorted([b"%d" % n for n in range(100)] + [b"last"], key=str)
    assert max(len(one) for one in polled) <= 30
    assert list(consumer.until(lambda: consumer.has_read(ends), 30.0)) == []
    with pytest.raises(KafkaUnavailable, match=plain):
        list(consumer.until(lambda: False, 0.0))
    consumer.close()


def test_going_on_from_where_another_stopped(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    producer = TransactionalProducer(settings(kafka), service_id)
    seen: list[bytes | None] = []
    position = START
    for n in range(3):
        with producer.transaction() as transaction:
            transaction.send(service_id, b"%d" % n)
        await_ended(kafka, service_id)
        consumer = BatchConsumer(settings(kafka))
        consumer.add(service_id, position)
        seen += values_of(read_until(consumer, lambda _, c=consumer: not c.lagging(service_id)))
        position = consumer.next_offsets(service_id)
        consumer.close()
    assert seen == [b"0", b"1", b"2"]
    producer.close()


def test_a_deleted_topic_is_told_and_harms_no_other(kafka: str, service_id: str) -> None:
    admin = Admin(settings(kafka))
    doomed, other = f"{service_id}-doomed", f"{service_id}-other"
    consumer = BatchConsumer(settings(kafka))
    for topic in (doomed, other):
        admin.ensure_source_topic(topic)
        write(kafka, topic, [b"1"])
        consumer.add(topic, START)
    read_until(consumer, lambda all_: len(values_of(all_)) == 2)
    admin.delete_topics([doomed])

    def told() -> bool:
        try:
            consumer.poll(10, 0.05)
        except TopicMissing as error:
            return error.topic == doomed
        return False

    wait_until(told)
    consumer.remove(doomed)
    write(kafka, other, [b"2"])
    assert values_of(read_until(consumer, values_of)) == [b"2"]
    assert consumer.topics() == {other}
    consumer.close()


def test_a_topic_that_was_made_again_is_not_taken_for_the_first(kafka: str, service_id: str) -> None:
    admin = Admin(settings(kafka))
    admin.ensure_source_topic(service_id)
    consumer = BatchConsumer(settings(kafka))
    consumer.add(service_id, START)
    wait_until(lambda: not consumer.lagging(service_id) or consumer.poll(10, 0.05))
    wait_until(lambda: consumer.poll(10, 0.05) or consumer._watch._ids)
    admin.delete_topics([service_id])
    wait_until(lambda: service_id not in admin.topics())
    admin.ensure_source_topic(service_id)

    def told() -> bool:
        try:
            consumer.poll(10, 0.05)
        except TopicMissing:
            return True
        return False

    wait_until(told)
    consumer.close()


def test_an_offset_that_is_not_there_is_never_replaced_by_another(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    write(kafka, service_id, [b"1"])
    consumer = BatchConsumer(settings(kafka))
    consumer.add(service_id, {0: 77})

    def told() -> bool:
        try:
            assert consumer.poll(10, 0.05) == []
        except OffsetLost as error:
            return (error.topic, error.partition, error.offset) == (service_id, 0, 77)
        return False

    wait_until(told)
    consumer.close()


def test_a_kafka_that_goes_and_comes_back(kafka_node: Node, service_id: str) -> None:
    own = settings(kafka_node.bootstrap)
    Admin(own).ensure_source_topic(service_id)
    write(kafka_node.bootstrap, service_id, [b"1"])
    consumer = BatchConsumer(own)
    consumer.add(service_id, START)
    assert values_of(read_until(consumer, values_of)) == [b"1"]
    kafka_node.stop()
    wait_until(lambda: consumer.poll(10, 0.05) or consumer.unavailable)
    kafka_node.start()
    write(kafka_node.bootstrap, service_id, [b"2"])
    assert values_of(read_until(consumer, values_of)) == [b"2"]
    assert not consumer.unavailable
    assert consumer.next_offsets(service_id) == {0: 2}
    consumer.close()


def test_after_a_pause_no_partition_counts_as_read_before_its_end_was_asked(
    kafka: str, service_id: str
) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id, 2)
    consumer = BatchConsumer(settings(kafka), pause_s=-1.0)  # any time between two polls is a pause
    consumer.add(service_id, {0: -1, 1: -1})
    for partition in (0, 1):
        write(kafka, service_id, [b"first"], partition)
    read_until(consumer, lambda all_: len(values_of(all_)) == 2)
    wait_until(lambda: consumer.poll(10, 0.01) == [] and not consumer.lagging(service_id))
    for partition in (0, 1):
        write(kafka, service_id, [b"second"], partition)
    polled: list[Polled] = []
    wait_until(lambda: polled.extend(consumer.poll(1, 0.05)) or values_of(polled))
    assert len(values_of(polled)) == 1
    (read,) = polled[0].partition.tolist()
    assert consumer.lagging(service_id) == {1 - read}
    assert polled[0].lagging == {1 - read}
    read_until(consumer, lambda all_: len(values_of(all_)) == 1)
    wait_until(lambda: consumer.poll(10, 0.01) == [] and not consumer.lagging(service_id))
    consumer.close()
