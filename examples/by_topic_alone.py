"""Kafka is all that a client needs: any language that can produce and consume can register and fetch.

python examples/by_topic_alone.py
"""

from __future__ import annotations

import json
import os
import time

from confluent_kafka import Producer

import tureen
from tureen.errors import TureenError
from tureen.protocol import TopicNames

KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")
SERVICE = os.environ.get("TUREEN_SERVICE_ID", "tureen")

STREAM = """
CREATE STREAM IF NOT EXISTS logins (account STRING NOT NULL, failed BOOLEAN)
WITH (topic = 'example-logins') RETAIN 1 DAY
"""
LOGINS = [("root", True), ("ada", False), ("root", True)]


def main() -> None:
    """Publish a stream and a query as records, then fetch the answer over topics."""
    topics = TopicNames(SERVICE)
    handle = tureen.new_handle()  # 160 random bits: the secret
    query_id = tureen.query_id(handle)  # derived from it: the public key of the record

    # As records, to show that there is nothing else to it. Keys are partitioned as Java's clients do.
    producer = Producer(
        {"bootstrap.servers": KAFKA, "partitioner": "murmur2_random", "enable.idempotence": True}
    )
    producer.produce(topics.sources, key="logins", value=json.dumps({"sql": STREAM}))
    sql = "SELECT account FROM logins [RANGE 1 HOUR] WHERE failed"
    producer.produce(topics.queries, key=query_id, value=json.dumps({"sql": sql}))
    producer.flush()

    # The client does the same by `kafka=`, and puts the chunks of a reply together.
    with tureen.connect(kafka={"bootstrap.servers": KAFKA}, service_id=SERVICE) as client:
        deadline = time.monotonic() + 30
        while not stands(client, handle) and time.monotonic() < deadline:
            time.sleep(0.1)
        for account, failed in LOGINS:
            producer.produce("example-logins", json.dumps({"account": account, "failed": failed}))
        producer.flush()
        while len(answer := client.snapshot(handle)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        print(f"{len(answer)} failed logins: {', '.join(row['account'] for row in answer)}")
        client.unregister(handle)


def stands(client: tureen.Client, handle: str) -> bool:
    """Whether the broker has read the registration and accepted it."""
    try:
        return client.status(handle).state == "RUNNING"
    except TureenError:
        return False


if __name__ == "__main__":
    main()
