"""Data and helpers that ``results_test.py`` shares with other tests."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PARTITIONS = 3


class Writer:
    """Transactions on a service's result topics."""

    def __init__(self, kafka: str, service_id: str) -> None:
        self.settings = {"bootstrap.servers": kafka}
        self.service_id = service_id
        self.producer = Producer({**self.settings, "transactional.id": service_id, "linger.ms": 1})
        self.producer.init_transactions(60)

    def topic(self, name: str) -> str:
        topic = f"{self.service_id}.{name}"
        admin = AdminClient(self.settings)
        (done,) = admin.create_topics([NewTopic(topic, PARTITIONS)]).values()
        done.result(60)
        return topic

    def write(self, topic: str, records: list[tuple[Any, Any]], *, partition: int | None = None) -> None:
        """Records (key, value) in the transaction that is open."""
        for place, (key, value) in enumerate(records):
            self.producer.produce(
                topic,
                None if value is None else json.dumps(value),
                json.dumps(key),
                partition=place % PARTITIONS if partition is None else partition,
                headers={"tureen-position": b"1-7", "tureen-at-ms": b"1000"},
            )
        self.producer.flush(60)

    def commit(self, topic: str, records: list[tuple[Any, Any]], *, partition: int | None = None) -> None:
        self.producer.begin_transaction()
        self.write(topic, records, partition=partition)
        self.producer.commit_transaction(60)


def key(city: str, query: str = "q") -> dict[str, Any]:
    return {"query": query, "key": {"city": city}}
