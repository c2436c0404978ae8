"""A mobile app, offline most of the time: it keeps rows and a position, and fetches what changed since.

python examples/offline_client.py             # registers, fetches the answer, goes offline
python examples/offline_client.py             # back again: only what came and went meanwhile

What the device keeps is in deliveries.json where it is run; remove that file to begin anew.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

import tureen
from tureen.errors import UnknownQuery

URL = os.environ.get("TUREEN_URL", "http://127.0.0.1:8080")
KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")

_arguments = argparse.ArgumentParser(description="A mobile app, offline most of the time.")
_arguments.add_argument(
    "file", nargs="?", default="deliveries.json", help="file of the device  [default: deliveries.json]"
)
KEPT = Path(_arguments.parse_args().file)

STREAM = """
CREATE STREAM IF NOT EXISTS parcels (parcel INTEGER NOT NULL, van STRING, stop STRING)
WITH (topic = 'example-parcels') RETAIN 7 DAYS
"""
MINE = "SELECT parcel, MAX(stop) AS stop FROM parcels [RANGE 7 DAYS] WHERE van = ? GROUP BY parcel"


class App:
    """What the device holds: a handle, a position, and the rows as of it. Written together, so they agree."""

    def __init__(self, handle: str, position: str | None = None, rows: list[list[Any]] | None = None) -> None:
        self.handle = handle
        self.position = position
        self.rows = rows or []

    def save(self) -> None:
        """As one file, with the handle: whoever has that reads the answer, so it is kept as a password is."""
        KEPT.touch(mode=0o600)
        KEPT.write_text(json.dumps(vars(self)))

    def take(self, event: tureen.SnapshotEvent | tureen.ChangesEvent) -> None:
        """The whole answer instead of what is there, or the rows that came and went."""
        if isinstance(event, tureen.SnapshotEvent):
            if event.reset:
                print("away for longer than changes are kept: here is the whole answer")
            self.rows = [list(row) for row in event.rows]
            return
        for change in event:
            if change.weight > 0:
                self.rows.append(list(change.row))
            else:
                self.rows.remove(list(change.row))
        print(f"{len(event.went())} rows went and {len(event.came())} came")

    def synchronise(self) -> None:
        """Fetch what there is, once. Cut off in the middle, the next time goes on behind what was saved."""
        with tureen.connect(URL) as client, client.changes(self.handle, self.position, live=False) as feed:
            for event in feed:
                if isinstance(event, tureen.SnapshotEvent | tureen.ChangesEvent):
                    self.take(event)
                self.position = event.position
                self.save()


def install() -> None:
    """The first run: register under a handle of the device's own making."""
    with tureen.connect(URL) as client:
        client.create(STREAM)
        van = f"van {time.time_ns()}"
        app = App(client.register(template=MINE, parameters=[van]).handle)
    app.synchronise()
    print(f"{len(app.rows)} parcels; going offline")

    # While it is away:
    producer = Producer({"bootstrap.servers": KAFKA, "enable.idempotence": True})
    for parcel, stop in [(1, "1 depot"), (2, "1 depot"), (1, "2 road"), (1, "3 door")]:
        producer.produce("example-parcels", json.dumps({"parcel": parcel, "van": van, "stop": stop}))
    producer.flush()


def come_back() -> None:
    """Every later run."""
    app = App(**json.loads(KEPT.read_text()))
    try:
        app.synchronise()
    except UnknownQuery:
        KEPT.unlink()
        sys.exit("the broker does not know this query any more; run again to register")
    for parcel, stop in sorted(app.rows):
        print(f"parcel {parcel}: {stop}")


if __name__ == "__main__":
    come_back() if KEPT.exists() else install()
