"""An alert for each of ten thousand users, all of them from one template: nothing is parsed twice.

tureen up && tureen serve &
python examples/alerts_per_user.py
"""

from __future__ import annotations

import json
import os
import random
import time
from typing import Any

from confluent_kafka import Producer

import tureen

URL = os.environ.get("TUREEN_URL", "http://127.0.0.1:8080")
KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")
USERS = int(os.environ.get("USERS", "10000"))
PAYMENTS = 20_000
FIRST = int(time.time()) % 200_000 * 10_000
"""The account of the first user, another one in each run: so none sees the payments of an earlier one."""

STREAM = """
CREATE STREAM IF NOT EXISTS payments (account INTEGER NOT NULL, shop STRING, amount DOUBLE)
WITH (topic = 'example-payments') RETAIN 1 DAY
"""
ALERT = "SELECT shop, amount FROM payments [RANGE 1 DAY] WHERE account = ? AND amount > ?"
SHOPS = ["baker", "garage", "jeweller", "cinema", "grocer"]


def main() -> None:
    """Register everybody's alert, let payments come in, show who is told what."""
    chance = random.Random(1)
    limits = [100.0 * chance.randint(1, 9) for _ in range(USERS)]
    with tureen.connect(URL, timeout=120.0) as client:
        client.create(STREAM)
        began = time.monotonic()
        alerts = client.register_many(
            tureen.Template(ALERT, [FIRST + user, limit]) for user, limit in enumerate(limits)
        )
        for alert in alerts:
            if alert.error is not None:
                raise alert.error
        print(f"{USERS:,} alerts stand after {time.monotonic() - began:.1f} s")

        payments: list[dict[str, Any]] = [
            {
                "account": FIRST + chance.randrange(USERS),
                "shop": chance.choice(SHOPS),
                "amount": chance.randrange(1_000),
            }
            for _ in range(PAYMENTS)
        ]
        send(payments)
        wanted = [0] * USERS
        for payment in payments:
            user = payment["account"] - FIRST
            wanted[user] += payment["amount"] > limits[user]
        counted = client.register(f"SELECT COUNT(*) AS n FROM payments WHERE account >= {FIRST}")
        deadline = time.monotonic() + 60
        while counted.snapshot().rows()[0]["n"] < PAYMENTS and time.monotonic() < deadline:
            time.sleep(0.1)

        # Whoever comes back shows the handle; nobody else's answer is looked at for that.
        busiest = max(range(USERS), key=wanted.__getitem__)
        answer = alerts[busiest].snapshot()
        hits = ", ".join(f"{row['shop']} {row['amount']:.0f}" for row in answer)
        print(f"user {busiest}, told above {limits[busiest]:.0f}: {hits}")
        if len(answer) != wanted[busiest]:
            raise SystemExit(f"{wanted[busiest]} payments should be there")

        # And without being kept: who would be told of this one?
        (found,) = client.match("payments", [{"account": FIRST + busiest, "shop": "jeweller", "amount": 999}])
        own = "the user's own among them" if alerts[busiest].query_id in found.query_ids else "not the user's"
        print(f"a payment of 999 satisfies {found.total} queries, {own}")
        counted.unregister()
    # Ten thousand goodbyes are quickest as records on a topic: nobody waits for an answer to each.
    with tureen.connect(URL, kafka={"bootstrap.servers": KAFKA}) as client:
        for alert in alerts:
            client.unregister(alert.handle)


def send(payments: list[dict[str, Any]]) -> None:
    """Write them to the topic."""
    producer = Producer({"bootstrap.servers": KAFKA})
    for payment in payments:
        producer.produce("example-payments", json.dumps(payment))
        producer.poll(0)
    producer.flush()


if __name__ == "__main__":
    main()
