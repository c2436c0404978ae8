"""Eager answers that are put off, and when each is tried again beside the shard.

At once where nobody knows what it takes; else now and then, and where its sources have far fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.model.source import SourceName
from engine.queries.attempts import Attempt
from engine.queries.upkeep import Cost, Upkeep
from engine.standing.query import StandingQuery

TRIES = 2
"""It is tried so often at once: code that is compiled, and a busy machine, make the first time longer."""
REST = 100
"""Then it rests for so many times as long as it took, a hundredth of a core."""
REST_NS_MIN = 1_000_000_000
FEWER = 2
"""It is tried at once where its sources have so many times fewer rows than the last time."""
SHARE = 20
"""Those that were tried before have one of so many parts of the time, all together."""


@dataclass(slots=True)
class Off:
    """A query that is put off. query: as it stands while its answer is kept. cost: of keeping it. begin:
    begins an attempt at its answer as the sources stand. count: how many rows they have.
    """

    query: StandingQuery
    cost: Cost
    begin: Callable[[], Attempt[Any]]
    count: Callable[[], int]
    again_ns: float = 0.0
    tries: int = 0
    rows: int = 0
    attempt: Attempt[Any] | None = None

    def is_due(self, now_ns: float, *, rests: bool) -> bool:
        """Whether it is to be tried. rests: those are not that were tried before."""
        if self.attempt is not None:
            return False
        if self.tries < TRIES:
            return self.count() > 0  # nothing is learnt from no rows
        return not rests and (now_ns >= self.again_ns or self.count() * FEWER <= self.rows)

    def tried(self) -> Attempt[Any] | None:
        """The attempt that is over, which is then done with; None: there is none."""
        if self.attempt is None or not self.attempt.is_over:
            return None
        attempt, self.attempt = self.attempt, None
        return attempt

    def give_up(self) -> None:
        """What is being tried is of no use."""
        if self.attempt is not None:
            self.attempt.give_up()
            self.attempt = None


class PutOffs:
    """Those of one engine. changed: queries that stand otherwise than before since they were put off, or are
    kept again, which the engine is still to be told.
    """

    def __init__(self, upkeep: Upkeep) -> None:
        self.upkeep = upkeep
        self.changed: dict[str, StandingQuery] = {}
        self._off: dict[str, Off] = {}
        self._rest_until_ns = 0.0

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._off

    def put(self, off: Off, took_ns: float | None) -> None:
        """A query is put off. took_ns: what its answer takes; None: that is to be found out at once."""
        self._off[off.query.query_id] = off
        if took_ns is not None:
            off.tries, off.rows = TRIES, off.count()
            self.waits(off, took_ns)

    def remove(self, query_id: str) -> None:
        """A query is kept, stands in another way, or goes."""
        off = self._off.pop(query_id, None)
        if off is not None:
            off.give_up()
        self.changed.pop(query_id, None)

    def get(self, query_id: str) -> Off | None:
        """Returns one that is put off."""
        return self._off.get(query_id)

    def next(self) -> Attempt[Any] | None:
        """What is to be tried now, the least tried first; it is then to be run. O(put off)."""
        if not self._off:
            return None
        now_ns = self.upkeep.now_ns
        rests = now_ns < self._rest_until_ns
        due = [one for one in self._off.values() if one.is_due(now_ns, rests=rests)]
        if not due:
            return None
        off = min(due, key=lambda one: (one.tries, one.again_ns))
        off.rows, off.tries = off.count(), off.tries + 1
        off.attempt = off.begin()
        return off.attempt

    def waits(self, off: Off, took_ns: float) -> None:
        """One was tried, for so long, and stays put off."""
        now_ns = self.upkeep.now_ns
        off.again_ns = now_ns + max(REST_NS_MIN, REST * took_ns)
        if off.tries > TRIES:
            self._rest_until_ns = now_ns + SHARE * took_ns

    def ready(self) -> set[SourceName]:
        """The sources of queries of which an attempt is over that nobody has looked at. O(put off)."""
        return {
            name
            for one in self._off.values()
            if one.attempt is not None and one.attempt.is_over
            for name in one.query.sources
        }
