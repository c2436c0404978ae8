"""Data and helpers that ``job_test.py`` shares with other tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from spark_jobs.sources.declaring import declared_stream
from tests.kafka import wait_until
from topics.admin import Admin
from topics.codec import decode

STARTED = datetime(2025, 1, 1, tzinfo=UTC)

COLUMNS = "id BIGINT NOT NULL, city STRING, price DECIMAL(9, 2), paid BOOLEAN, day DATE, at TIMESTAMP"


def orders(service_id: str, **options: str) -> str:
    settings = {"topic": f"{service_id}-orders", "timestamp": "at"} | options
    listed = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    return f"CREATE STREAM orders ({COLUMNS}) WITH ({listed})"


def messages_of(kafka: str, topic: str) -> list[Message]:
    """Every committed record of a topic, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end of a partition is told by a fetch that found nothing
        }
    )
    try:
        ends = Admin({"bootstrap.servers": kafka}).end_offsets(topic)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        found: list[Message] = []
        ended: set[int | None] = set()

        def complete() -> bool:
            for message in consumer.consume(1_000, 0.02):
                error = message.error()
                if error is None:
                    found.append(message)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended.add(message.partition())
            return ended == set(ends)

        wait_until(complete, what=f"the ends of {topic}")
        return sorted(found, key=lambda m: (m.partition(), m.offset()))
    finally:
        consumer.close()


def rows_of(kafka: str, sql: str) -> list[Mapping[str, Any]]:
    """The stream's rows as the broker decodes them, in the order of the topic."""
    stream = declared_stream(sql).stream
    messages = messages_of(kafka, stream.topic)
    decoded = decode(
        stream,
        [message.value() for message in messages],
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        [message.timestamp()[1] for message in messages],
    )
    assert not decoded.bad
    columns = [column.to_arrow().to_pylist() for column in decoded.batch.columns]
    names = [field.name for field in stream.schema]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
