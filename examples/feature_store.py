"""A feature store: what is known of each customer, kept current in memory and looked up in microseconds.

tureen up && tureen serve &
python examples/feature_store.py
"""

from __future__ import annotations

import json
import os
import random
import time

from confluent_kafka import Producer

import tureen

URL = os.environ.get("TUREEN_URL", "http://127.0.0.1:8080")
KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")
CUSTOMERS = 1_000
PURCHASES = int(os.environ.get("PURCHASES", "20000"))
LOOKUPS = 100_000
FIRST = int(time.time()) % 2_000_000 * 1_000
"""The first customer, another one in each run."""

STREAM = """
CREATE STREAM IF NOT EXISTS purchases (customer INTEGER NOT NULL, shop STRING, amount DOUBLE)
WITH (topic = 'example-purchases') RETAIN 1 DAY
"""
FEATURES = """
SELECT customer, COUNT(*) AS purchases, AVG(amount) AS mean, MAX(amount) AS largest,
       COUNT(DISTINCT shop) AS shops
FROM purchases [RANGE 1 HOUR] WHERE customer >= ? GROUP BY customer
"""


def main() -> None:
    """Follow the features, let purchases come in, score payments by what is known of their customers."""
    chance = random.Random(1)
    with tureen.connect(URL) as client:
        client.create(STREAM)
        query = client.register(template=FEATURES, parameters=[FIRST], options={"maintenance": "eager"})
        # A thread folds every change; the key makes rows found at once.
        with query.follow(key=["customer"]) as features:
            send(chance)
            if not features.wait_for(lambda: total(features) == PURCHASES, timeout=60):
                raise SystemExit(f"{total(features)} of {PURCHASES} purchases came")
            print(f"{len(features):,} customers are known, {features.to_arrow().nbytes:,} bytes as Arrow")

            began = time.perf_counter()
            odd = sum(
                score(features.get(FIRST + chance.randrange(CUSTOMERS)), chance.expovariate(1 / 40)) > 5
                for _ in range(LOOKUPS)
            )
            each_us = (time.perf_counter() - began) / LOOKUPS * 1e6
            print(f"{LOOKUPS:,} payments scored, {odd:,} are odd, {each_us:.1f} us each")

            # What is served is the answer at a position, to the last digit.
            answer = query.snapshot()
            same = sorted(answer.rows(), key=str) == sorted(features.dicts(), key=str)
            print(f"at position {features.position} it {'equals' if same else 'DIFFERS FROM'} the snapshot")
        query.unregister()


def score(known: dict[str, float] | None, amount: float) -> float:
    """How far a payment is from what its customer usually does."""
    return amount / max(1.0, known["mean"]) if known else 0.0


def total(features: tureen.LiveAnswer) -> int:
    """How many purchases the answer counts."""
    return sum(row["purchases"] for row in features.dicts())


def send(chance: random.Random) -> None:
    """Purchases of all customers."""
    producer = Producer({"bootstrap.servers": KAFKA, "enable.idempotence": True})
    for _ in range(PURCHASES):
        purchase = {
            "customer": FIRST + chance.randrange(CUSTOMERS),
            "shop": chance.choice(["baker", "garage", "cinema"]),
            "amount": round(chance.expovariate(1 / 40), 2),
        }
        producer.produce("example-purchases", json.dumps(purchase))
        producer.poll(0)
    producer.flush()


if __name__ == "__main__":
    main()
