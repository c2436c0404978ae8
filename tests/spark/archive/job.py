"""Data and helpers that ``job_test.py`` shares with other tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import Stream
from topics.admin import Admin, Policies, service_topics
from tureen.protocol import HEADER_HEARTBEAT, TopicNames

DAY_MS = 86_400_000

Sent = tuple[str, int, Any, Any]
"""Topic, partition, key, value as JSON (bytes as they are, None as null)."""


class Kafka:
    """Topics of one service."""

    def __init__(self, bootstrap: str, service_id: str) -> None:
        self.settings = {"bootstrap.servers": bootstrap}
        self.service_id = service_id
        self.names = TopicNames(service_id)
        self.admin = Admin(self.settings)
        wanted = service_topics(self.names, Policies())
        self.admin.ensure(policy for policy in wanted if policy.name == self.names.sources)
        self._client = AdminClient(self.settings)

    def declare(self, name: str, columns: str, options: str = "timestamp = 'at'") -> Stream:
        sql = f"CREATE STREAM {name} ({columns}) WITH (topic = '{self.service_id}-{name}', {options})"
        statement = parse(sql, {}, Limits())
        assert isinstance(statement, CreateStream)
        self.send([(self.names.sources, 0, name.encode(), {"sql": sql})])
        return statement.stream

    def make(self, topic: str, partitions: int = 1) -> str:
        self._client.create_topics([NewTopic(topic, partitions)])[topic].result()
        return topic

    def send(
        self,
        records: Iterable[Sent],
        *,
        abort: bool = False,
        transaction: str | None = None,
        heartbeat: str | None = None,
    ) -> None:
        """heartbeat: what the header says, of records that are to be heartbeats."""
        headers = None if heartbeat is None else {HEADER_HEARTBEAT: heartbeat}
        transactional = (
            {} if transaction is None else {"transactional.id": f"{self.service_id}-{transaction}"}
        )
        producer = Producer(self.settings | transactional)
        if transaction is not None:
            producer.init_transactions(30)
            producer.begin_transaction()
        for topic, partition, key, value in records:
            producer.produce(topic, _bytes(value), _bytes(key), partition, headers=headers)
        assert producer.flush(30) == 0
        if transaction is not None:
            (producer.abort_transaction if abort else producer.commit_transaction)(30)

    def forget(self, topic: str, before: int) -> None:
        self._client.delete_records([TopicPartition(topic, 0, before)])[TopicPartition(topic, 0)].result()


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def orders(stream: Stream, ids: Sequence[int], partition: int = 0) -> list[Sent]:
    return [(stream.topic, partition, None, {"id": n, "city": "bern", "at": n * DAY_MS}) for n in ids]


COLUMNS = "id BIGINT, city STRING, at TIMESTAMP"
