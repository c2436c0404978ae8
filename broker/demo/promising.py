"""The demo's query with a preference: flights to the rarest destinations first, while its work is limited.

A summary of the destinations tells which are rare. The shard of the flights is given fewer units of work a
second than there are rows, so the answer has the rare ones, and is marked as approximate. When the limit
goes, the rest is found and the mark goes too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa

from broker.demo.audience import Audience
from broker.demo.board import Tile
from broker.demo.flights import Replayed
from broker.demo.plain import last
from tureen.client import Client
from tureen.snapshot import Snapshot

DAY_MS = 86_400_000
SUMMARY = "CREATE SUMMARY destinations ON flights (dest) WITH GRANULARITY 6 HOURS AND COLLAPSE(4, 3)"
LIMIT = "preference_work_per_s_max"
UNITS_PER_S = 300
"""Far fewer than flights come a second."""
WHOLE_MAX_S = 30.0


def _day(stream: Replayed, now_ms: int) -> pa.Table:
    return last(stream, now_ms, DAY_MS).select(["departs", "carrier", "flight", "dest"])


RARE = Tile(
    "flights to rare destinations first, last day",
    "SELECT departs, carrier, flight, dest FROM flights"
    " WITH PREFERENCE asc SUMMARY.Estimate.Count(dest) WINDOW 1 DAY",
    _day,
    drawn="table",
)


@dataclass(slots=True)
class Limited:
    """How the query went. seen: how often its answer was looked at, and of that as an approximate one."""

    seen: int = 0
    approximate: int = 0
    rows: int = 0
    whole_rows: int = 0
    whole_s: float = 0.0


class Promising:
    """The query and the limit of the work for it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.audience = Audience(client, [RARE])
        self.entity = ""
        """The shard of the flights."""
        self.found = Limited()

    def begin(self) -> None:
        """Create the summary, allow no work, register the query. The streams are there."""
        self._client.create(SUMMARY)
        (source,) = (one for one in self._client.entities(kind="source") if one["id"].endswith("/flights"))
        self.entity = f"{source['shard']}/shard"
        self.limit(0)
        self.audience.register(1)

    def start(self) -> None:
        """Some rows are to be found from now on."""
        self.limit(UNITS_PER_S)

    def hold(self) -> None:
        """None is any more: what is left stays left."""
        self.limit(0)

    def limit(self, units_per_s: int | None) -> None:
        """None: none."""
        self._client.set_entity(self.entity, {LIMIT: units_per_s})

    def look(self) -> Snapshot:
        """The answer as it is."""
        snapshot = self.audience.look(0)
        self.found.seen += 1
        self.found.approximate += snapshot.approximate
        self.found.rows = len(snapshot)
        return snapshot

    def lift(self) -> bool:
        """No limit from now on: whether the answer is exact soon."""
        began = time.monotonic()
        self.look()
        rows = self.found.rows
        self.limit(None)
        while self.look().approximate:
            if time.monotonic() - began > WHOLE_MAX_S:
                return False
            time.sleep(0.02)
        self.found.whole_rows, self.found.rows = self.found.rows, rows
        self.found.whole_s = time.monotonic() - began
        return True

    def commands(self, command: str) -> list[str]:
        """To try it: nothing is done any more, and everything is."""
        return [
            f"{command} entity set {self.entity} {LIMIT}=0",
            f"{command} snapshot {self.audience.handles[0]}",
            f"{command} entity set {self.entity} {LIMIT}=NULL",
        ]
