"""A thousand customers for the table `customers`: a record each, under its key.

python examples/customers.py
"""

from __future__ import annotations

import json
import os
import random
import sys

from confluent_kafka import KafkaException, Producer

KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")
TOPIC = os.environ.get("CUSTOMERS_TOPIC", "customers")

CUSTOMERS = 1_000
TIERS = ["gold", "silver", "basic"]
SHARES = [5, 20, 75]


def main() -> None:
    """Send them; the same ones each time. A record without a value would delete its customer."""
    chance = random.Random(2)
    away = f"No Kafka answers at {KAFKA} (TUREEN_KAFKA__BOOTSTRAP_SERVERS): `tureen up` starts one."
    producer = Producer({"bootstrap.servers": KAFKA, "enable.idempotence": True, "log_level": 0})
    try:
        if TOPIC not in producer.list_topics(timeout=10).topics:
            sys.exit(f"There is no topic {TOPIC}: create the table first.")
    except KafkaException:
        sys.exit(away)
    for number in range(CUSTOMERS):
        (tier,) = chance.choices(TIERS, SHARES)
        producer.produce(TOPIC, json.dumps({"tier": tier}), key=str(number))
    if producer.flush(10):
        sys.exit(away)
    print(f"{CUSTOMERS:,} customers are on the topic {TOPIC}")


if __name__ == "__main__":
    main()
