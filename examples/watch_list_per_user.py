"""One standing query for each user: everybody has a watch-list of prices, the broker watches them all.

tureen up && tureen serve &
python examples/watch_list_per_user.py
"""

from __future__ import annotations

import json
import os
import time

from confluent_kafka import Producer

import tureen

URL = os.environ.get("TUREEN_URL", "http://127.0.0.1:8080")
KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")

STREAM = """
CREATE STREAM IF NOT EXISTS quotes (symbol STRING NOT NULL, price DOUBLE)
WITH (topic = 'example-quotes') RETAIN 1 DAY
"""
USERS = {
    "ada": "symbol = 'ACME' AND price < 10",
    "bob": "symbol IN ('ACME', 'INIT') AND price > 90",
    "eve": "symbol LIKE 'I%' AND price BETWEEN 40 AND 60",
}
QUOTES = [("ACME", 12.0), ("ACME", 9.5), ("INIT", 95.0), ("INIT", 55.0), ("INIT", 61.0), ("ACME", 8.0)]


def main() -> None:
    """Register everybody's wish, let quotes come in, show who got what."""
    with tureen.connect(URL) as client:
        client.create(STREAM)
        # One request registers all; a refused one would not keep the others back.
        queries = client.register_many(
            f"SELECT symbol, price FROM quotes [RANGE 1 HOUR] WHERE {wish}" for wish in USERS.values()
        )
        for query in queries:
            if query.error is not None:
                raise query.error

        producer = Producer({"bootstrap.servers": KAFKA, "enable.idempotence": True})
        for symbol, price in QUOTES:
            producer.produce("example-quotes", json.dumps({"symbol": symbol, "price": price}))
        producer.flush()

        deadline = time.monotonic() + 30
        while sum(len(query.snapshot()) for query in queries) < 4 and time.monotonic() < deadline:
            time.sleep(0.1)
        for user, query in zip(USERS, queries, strict=True):
            hits = ", ".join(f"{row['symbol']} at {row['price']}" for row in query.snapshot())
            print(f"{user}: {hits}")
            query.unregister()


if __name__ == "__main__":
    main()
