"""A client that is away most of the time. It keeps one thing between two runs: a handle.

python examples/come_back_later.py       # registers, writes the handle to a file
python examples/come_back_later.py       # fetches what has come in since, however long it was
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from confluent_kafka import Producer

import tureen
from tureen.errors import UnknownQuery

URL = os.environ.get("TUREEN_URL", "http://127.0.0.1:8080")
KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")

_arguments = argparse.ArgumentParser(description="A client that is away most of the time.")
_arguments.add_argument(
    "file", nargs="?", default="alarms.handle", help="file for the handle  [default: alarms.handle]"
)
KEPT = Path(_arguments.parse_args().file)

STREAM = """
CREATE STREAM IF NOT EXISTS sensors (room STRING NOT NULL, celsius DOUBLE)
WITH (topic = 'example-sensors') RETAIN 7 DAYS
"""


def register() -> None:
    """The first run: register, keep the handle, go."""
    with tureen.connect(URL) as client:
        client.create(STREAM)
        query = client.register("SELECT room, celsius FROM sensors [RANGE 7 DAYS] WHERE celsius > 30")
    # Whoever has the handle reads the answer, so it is kept as a password is.
    KEPT.touch(mode=0o600)
    KEPT.write_text(query.handle)
    print(f"registered; the handle is in {KEPT}, and this client stops")

    producer = Producer({"bootstrap.servers": KAFKA, "enable.idempotence": True})
    for room, celsius in [("cellar", 12.5), ("attic", 34.0), ("kitchen", 21.0), ("attic", 36.5)]:
        producer.produce("example-sensors", json.dumps({"room": room, "celsius": celsius}))
    producer.flush()


def come_back() -> None:
    """Every later run: the answer of now, by the handle."""
    with tureen.connect(URL) as client:
        try:
            answer = client.snapshot(KEPT.read_text())
        except UnknownQuery:
            KEPT.unlink()
            sys.exit("the broker does not know this query any more; run again to register")
        if answer.now is None:
            print("nothing has come in yet; come back in a moment")
            return
        print(f"{len(answer)} alarms, true at position {answer.position}, NOW {answer.now}")
        for row in answer:
            print(f"  {row['room']}: {row['celsius']} degrees")


if __name__ == "__main__":
    come_back() if KEPT.exists() else register()
