"""A shop's records as other systems write them: customers by Debezium, orders in Avro with a schema registry.

python examples/debezium_and_avro/send.py

Customers are change events of a table of a database, in JSON beside their schema, in the compacted topic
`shop.public.customers`: some are read by the snapshot, then one moves and one is deleted. Orders are in the
topic `shop.orders`, written by Confluent's serializer, which registers their schema.
"""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")
REGISTRY = os.environ.get("TUREEN_SCHEMA_REGISTRY_URL", "http://127.0.0.1:8081")
CUSTOMERS, ORDERS = "shop.public.customers", "shop.orders"
BEGIN_MS = 1_748_772_000_000  # 2025-06-01 10:00 UTC

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer_id", "type": "long"},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "delivery", "type": {"type": "record", "name": "Delivery", "fields": [
            {"name": "express", "type": "boolean"}]}},
    ],
}  # fmt: skip
ROW = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int64"},
        {"field": "name", "type": "string"},
        {"field": "city", "type": "string"},
        {"field": "since", "type": "int32", "name": "io.debezium.time.Date"},
    ],
}
EVENT = {"type": "struct", "fields": [{"field": side, **ROW} for side in ("before", "after")]}


def customer(number: int, city: str) -> dict[str, Any]:
    """A row of the database; a DATE is days since 1970 in Debezium's events."""
    return {"id": number, "name": f"customer {number}", "city": city, "since": 19_000 + number}


def events() -> list[tuple[int, dict[str, Any] | None]]:
    """Changes by the customer whose they are; None: the tombstone behind a delete."""
    cities = ["Basel", "Bern", "Zug"]
    rows = [customer(number, cities[number % 3]) for number in range(1, 10)]
    found: list[tuple[int, dict[str, Any] | None]] = [
        (row["id"], {"before": None, "after": row, "op": "r"}) for row in rows
    ]
    found.append((4, {"before": rows[3], "after": customer(4, "Zug"), "op": "u"}))
    return [*found, (9, {"before": rows[8], "after": None, "op": "d"}), (9, None)]


def make_topics() -> None:
    """Those that are not there."""
    topics = [NewTopic(CUSTOMERS, 1, config={"cleanup.policy": "compact"}), NewTopic(ORDERS, 1)]
    admin = AdminClient({"bootstrap.servers": KAFKA})
    for made in admin.create_topics(topics).values():
        try:
            made.result()
        except KafkaException as failed:
            if failed.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def main() -> None:
    """Send them."""
    make_topics()
    producer = Producer({"bootstrap.servers": KAFKA, "enable.idempotence": True})
    for number, event in events():
        key = json.dumps(
            {"schema": {"type": "struct", "fields": ROW["fields"][:1]}, "payload": {"id": number}}
        )
        value = (
            None if event is None else json.dumps({"schema": EVENT, "payload": event | {"ts_ms": BEGIN_MS}})
        )
        producer.produce(CUSTOMERS, value, key)
    serialize = AvroSerializer(SchemaRegistryClient({"url": REGISTRY}), json.dumps(ORDER))
    for number in range(300):
        order = {
            "id": number,
            "customer_id": 1 + number % 9,
            "total": Decimal(100 + number % 50) / 4,
            "placed_at": BEGIN_MS + number * 1_000,
            "delivery": {"express": number % 4 == 0},
        }
        producer.produce(ORDERS, serialize(order, SerializationContext(ORDERS, MessageField.VALUE)))
    if producer.flush(60):
        raise SystemExit(f"Kafka at {KAFKA} does not take the records")
    print(f"{len(events())} events in {CUSTOMERS}, 300 orders in {ORDERS}")


if __name__ == "__main__":
    main()
