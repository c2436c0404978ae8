"""A dashboard that follows its queries: the broker tells what changed, nothing is asked for again.

tureen up && tureen serve &
python examples/live_dashboard.py            # for 15 seconds
python examples/live_dashboard.py 60
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import threading
import time

from confluent_kafka import Producer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

import tureen

URL = os.environ.get("TUREEN_URL", "http://127.0.0.1:8080")
KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")

STREAM = """
CREATE STREAM IF NOT EXISTS requests (path STRING NOT NULL, status INTEGER, ms DOUBLE)
WITH (topic = 'example-requests') RETAIN 1 HOUR
"""
PATHS = {"/": 8.0, "/search": 60.0, "/cart": 25.0, "/checkout": 120.0}
QUESTIONS = {
    "the last ten seconds": """
        SELECT path, COUNT(*) AS requests, AVG(ms) AS mean, APPROX_QUANTILE(ms, 0.99) AS slow,
               COUNT(*) FILTER (WHERE status >= 500) AS failed
        FROM requests [RANGE 10 SECONDS] GROUP BY path""",
    "each second, once it is over": """
        SELECT window_start AS second, COUNT(*) AS requests
        FROM TUMBLE(requests, INTERVAL '1' SECOND) [RANGE 5 SECONDS] GROUP BY window_start""",
    "the slowest of each path in a minute": """
        SELECT path, ms, status FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY path ORDER BY ms DESC) AS place
            FROM requests [RANGE 1 MINUTE]) WHERE place = 1""",
}


def main() -> None:
    """Register, follow, send requests from a thread, draw the answers as they are now."""
    arguments = argparse.ArgumentParser(description="A dashboard that follows its queries.")
    arguments.add_argument("seconds", nargs="?", type=float, default=15.0, help="how long  [default: 15]")
    seconds = arguments.parse_args().seconds
    over = threading.Event()
    sender = threading.Thread(target=send, args=(over,))
    with tureen.connect(URL) as client:
        client.create(STREAM)
        queries = {
            title: client.register(sql, options={"maintenance": "eager"}) for title, sql in QUESTIONS.items()
        }
        with contextlib.ExitStack() as following:
            answers = {title: following.enter_context(query.follow()) for title, query in queries.items()}
            sender.start()
            try:
                for one in answers.values():
                    one.wait_for(lambda one=one: len(one), timeout=60)
                with Live(console=Console(), auto_refresh=False) as screen:
                    deadline, seen = time.monotonic() + seconds, -1
                    while time.monotonic() < deadline:
                        # Nothing is asked for this: the answers are here, and as current as can be.
                        if (told := sum(one.version for one in answers.values())) != seen:
                            tables = [drawn(title, one) for title, one in answers.items()]
                            screen.update(Group(*tables), refresh=True)
                        seen = told
                        time.sleep(0.5)
            finally:
                over.set()
                sender.join()
            told = sum(one.version for one in answers.values())
        for query in queries.values():
            query.unregister()
    print(f"\n{told} events came, without polling")


def drawn(title: str, answer: tureen.LiveAnswer) -> Table:
    """An answer as a table. What is folded has no order, so that is made here."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in answer.columns:
        table.add_column(column.name)
    for row in sorted(answer.rows(), key=lambda row: str(row[0])):
        table.add_row(*(f"{one:.1f}" if isinstance(one, float) else str(one) for one in row))
    return table


def send(over: threading.Event) -> None:
    """Some two hundred requests a second."""
    chance = random.Random(1)
    producer = Producer({"bootstrap.servers": KAFKA, "enable.idempotence": True})
    while not over.wait(0.05):
        for _ in range(10):
            path, usual = chance.choice(list(PATHS.items()))
            status = 500 if chance.random() < 0.02 else 200
            request = {"path": path, "status": status, "ms": chance.expovariate(1 / usual)}
            producer.produce("example-requests", json.dumps(request))
        producer.flush()


if __name__ == "__main__":
    main()
