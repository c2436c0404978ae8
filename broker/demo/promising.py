"""The demo's query with a preference: flights to the rarest destinations first, while its work is limited.

A summary of the destinations tells which are rare. The shard of the flights is given fewer units of work a
second than there are rows, so the answer has the rare ones, and is marked as approximate. When the limit
goes, at the end of the replay, the rest is found and the mark goes too.
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
SUMMARY = (
    "CREATE SUMMARY destinations ON flights (dest) WITH GRANULARITY 6 HOURS AND COLLAPSE(4, 3)"
    " SETTINGS (buckets = 128)"
)
"""There are a hundred destinations or so: a rare one seldom shares its cells with a frequent one."""
LIMIT = "preference_work_per_s_max"
UNITS_PER_S = 300
"""Far fewer than flights come a second."""
WHOLE_MAX_S = 30.0
EXACT_S = 3.0
"""Seconds for which the screen has the exact answer at the end."""


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
    """How the query went. seen: how often its answer was looked at, and of that as an approximate one. rows,
    whole_rows: of the answer, with the limit and without it.
    """

    seen: int = 0
    approximate: int = 0
    rows: int = 0
    whole_rows: int = 0


class Promising:
    """The query and the limit of the work for it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.audience = Audience(client, [RARE])
        self.entity = ""
        """The shard of the flights."""
        self.units_per_s: int | None = 0
        """The limit that the demo set last; None: none."""
        self.found = Limited()
        self._lifted_s = 0.0
        self._exact_s: float | None = None
        """When it was seen to be exact, after the limit had gone."""

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

    def ends(self) -> bool:
        """The replay is over, and the limit goes: whether the exact answer was to be seen for a while, or is
        not to be expected any more. Called again and again.
        """
        now = time.monotonic()
        if self.units_per_s is not None:
            self._release()
            self._lifted_s = now
        if self._exact_s is None:
            if not self.look().approximate:
                self._exact_s = now
            return now > self._lifted_s + WHOLE_MAX_S
        return now > self._exact_s + EXACT_S

    def hold(self) -> None:
        """Nothing is found any more while there is a limit: what is left stays left."""
        if self.units_per_s is not None:
            self.limit(0)

    def _release(self) -> None:
        """What the limit left unfound is seen once more before it goes."""
        self.look()
        self.limit(None)

    def limit(self, units_per_s: int | None) -> None:
        """Set the limit in units of work a second; None: no limit."""
        self._client.set_entity(self.entity, {LIMIT: units_per_s})
        self.units_per_s = units_per_s

    def look(self) -> Snapshot:
        """The answer as it is."""
        snapshot = self.audience.look(0)
        self.found.seen += 1
        self.found.approximate += snapshot.approximate
        if self.units_per_s is None:
            self.found.whole_rows = len(snapshot)
        else:
            self.found.rows = len(snapshot)
        return snapshot

    def lift(self) -> bool:
        """No limit from now on: whether the answer is exact soon."""
        began = time.monotonic()
        if self.units_per_s is not None:
            self._release()
        while self.look().approximate:
            if time.monotonic() - began > WHOLE_MAX_S:
                return False
            time.sleep(0.02)
        return True

    def commands(self, command: str) -> list[str]:
        """To try it: nothing is done any more, and everything is."""
        return [
            f"{command} entity set {self.entity} {LIMIT}=0",
            f"{command} snapshot {self.audience.handles[0]}",
            f"{command} entity set {self.entity} {LIMIT}=NULL",
        ]
