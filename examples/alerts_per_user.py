"""An alert for each of ten thousand users, all from one template; those who are online are told at once.

tureen up && tureen serve &
python examples/alerts_per_user.py
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from typing import Any

from confluent_kafka import Producer

import tureen
from tureen.errors import UnknownQuery

URL = os.environ.get("TUREEN_URL", "http://127.0.0.1:8080")
KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")
SERVICE = os.environ.get("TUREEN_SERVICE_ID", "tureen")
USERS = int(os.environ.get("USERS", "10000"))
ONLINE = USERS // 100
PAYMENTS = 2 * USERS
FIRST = int(time.time()) % 200_000 * 10_000
"""The account of the first user, another one in each run: so none sees the payments of an earlier one."""

STREAM = """
CREATE STREAM IF NOT EXISTS payments (account INTEGER NOT NULL, shop STRING, amount DOUBLE)
WITH (topic = 'example-payments') RETAIN 1 DAY
"""
ALERT = "SELECT shop, amount FROM payments [RANGE 1 DAY] WHERE account = ? AND amount > ?"
SHOPS = ["baker", "garage", "jeweller", "cinema", "grocer"]


async def main() -> None:
    """Register everybody's alert, let payments come in, tell those who are online."""
    chance = random.Random(1)
    limits = [100.0 * chance.randint(1, 9) for _ in range(USERS)]
    payments: list[dict[str, Any]] = [
        {
            "account": FIRST + chance.randrange(USERS),
            "shop": chance.choice(SHOPS),
            "amount": chance.randrange(1_000),
        }
        for _ in range(PAYMENTS)
    ]
    wanted = [0] * USERS
    for payment in payments:
        user = payment["account"] - FIRST
        wanted[user] += payment["amount"] > limits[user]
    async with tureen.connect_async(URL, timeout=120.0) as client:
        await client.create(STREAM)
        began = time.monotonic()
        alerts = await client.register_many(
            tureen.Template(ALERT, [FIRST + user, limit]) for user, limit in enumerate(limits)
        )
        for alert in alerts:
            if alert.error is not None:
                raise alert.error
        print(f"{USERS:,} alerts are running after {time.monotonic() - began:.1f} s")

        online = [user for user in range(USERS) if wanted[user]][:ONLINE]
        told = [asyncio.create_task(listen(alerts[user], wanted[user])) for user in online]
        await asyncio.to_thread(send, payments)
        async with asyncio.timeout(60):
            hits = await asyncio.gather(*told)
        print(f"{len(online)} users are online and were notified {sum(map(len, hits))} times")
        busiest = max(online, key=wanted.__getitem__)
        shops = ", ".join(f"{row['shop']} {row['amount']:.0f}" for row in hits[online.index(busiest)])
        print(f"user {busiest}, notified of payments above {limits[busiest]:.0f}: {shops}")

        # And without being kept: who would be told of this one?
        record = {"account": FIRST + busiest, "shop": "jeweller", "amount": 999}
        (found,) = await client.match("payments", [record])
        noun = "query" if found.total == 1 else "queries"
        own = "the user's own among them" if alerts[busiest].query_id in found.query_ids else "not the user's"
        print(f"a payment of 999 satisfies {found.total} {noun}, {own}")
    # Ten thousand goodbyes are quickest as records on a topic: nobody waits for an answer to each.
    with tureen.connect(URL, kafka={"bootstrap.servers": KAFKA}, service_id=SERVICE) as goodbye:
        for alert in alerts:
            goodbye.unregister(alert.handle)


async def listen(alert: tureen.AsyncQuery, count: int) -> list[dict[str, Any]]:
    """Follow one's own query until so many payments were told. Through breaks of the connection, too."""
    hits: list[dict[str, Any]] = []
    async with alert.changes() as feed:
        async for event in feed:
            if isinstance(event, tureen.SnapshotEvent):
                hits = event.dicts()  # the answer so far: at first, or again where changes were missed
            elif isinstance(event, tureen.ChangesEvent):
                hits += event.came()  # here an app would be notified
            if len(hits) >= count:
                return hits
    raise UnknownQuery


def send(payments: list[dict[str, Any]]) -> None:
    """Write them to the topic."""
    producer = Producer({"bootstrap.servers": KAFKA, "enable.idempotence": True})
    for payment in payments:
        producer.produce("example-payments", json.dumps(payment))
        producer.poll(0)
    producer.flush()


if __name__ == "__main__":
    asyncio.run(main())
