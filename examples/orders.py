"""Twenty thousand orders for the topic `orders`: something to query while getting to know Tureen.

python examples/orders.py
python examples/orders.py 10       # later: ten more, behind those
"""

from __future__ import annotations

import json
import os
import random
import sys

from confluent_kafka import Producer

KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")
TOPIC = os.environ.get("ORDERS_TOPIC", "orders")

ORDERS = 20_000
BEGIN_MS = 1_748_772_000_000  # 2025-06-01 10:00 UTC
STEP_MS = 500
CITIES = ["Basel", "Bern", "Geneva", "Lausanne", "Zug", "Zurich"]
SHARES = [15, 12, 20, 10, 3, 40]


def main() -> None:
    """Send them; the same ones each time."""
    more = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    chance = random.Random(1)
    producer = Producer({"bootstrap.servers": KAFKA})
    for number in range(ORDERS + more):
        (city,) = chance.choices(CITIES, SHARES)
        price = round(chance.expovariate(1 / 40), 2)
        at = BEGIN_MS + number * STEP_MS
        order = {"id": number, "customer": chance.randrange(1_000), "city": city, "price": price, "at": at}
        if more == 0 or number >= ORDERS:
            producer.produce(TOPIC, json.dumps(order))
            producer.poll(0)
    if producer.flush(10):
        sys.exit(f"No Kafka answers at {KAFKA} (TUREEN_KAFKA__BOOTSTRAP_SERVERS): `tureen up` starts one.")
    print(f"{more or ORDERS:,} orders are on the topic {TOPIC}")


if __name__ == "__main__":
    main()
