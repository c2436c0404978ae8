"""How long a shard waits before it takes up more, where records come few at a time.

A transaction costs the same for one record as for hundreds. Records that come after a few were taken up are
therefore taken up together, some ms after those. The first after a pause wait for nothing; where many come,
or more wait than were taken up, nobody waits.

The time from few records to the next is as set, and longer where a turn (steps and transaction) takes much
of the processor: :data:`REST` times what turns took of it lately, at most :data:`LONGEST` times as long as
set. It is no longer than half of what a query allows a row to wait.

Records that Kafka gathers come together, to all shards at the same instant, and have waited already. They
are waited for half of what is set, which takes up with them what comes just then; where turns take much of
the processor, whoever reads them is to bring what two fetches brought together (:attr:`Linger.rest_s`).

Otherwise the wait ends at a multiple of the time that is set, by a clock that all shards of a process have:
they make their small turns one right after the other (:mod:`broker.shard.small_turns`), so that the code and
the tables that these need are still in the caches.

Pure: clocks are passed in. O(1).
"""

from __future__ import annotations

import math

ROWS_MAX = 1_024
"""Least rows for which a transaction costs less than the rows do."""
REST = 5.0
"""From few records to the next, in times that turns take of the processor."""
LONGEST = 2.0
"""The longest time from few records to the next, in times that are set."""
GATHERED = 0.5
"""From few records that were gathered to the next, in times that are set; these come once in such a time."""
GATHERING = 1.5
"""The longest time from one fetch to the next, in times that are set: Kafka answers somewhat late."""
HURRIED = 4
"""Streams whose records may wait no longer than so many times that are set are not gathered."""
RECENT = 0.2
"""Weight of the last turn in what turns took lately."""


class Linger:
    """Says how long records of one shard wait for others. linger_s: the time from few records to the next,
    where turns are short.
    """

    def __init__(self, linger_s: float) -> None:
        self._linger_s = linger_s
        self._turn_cpu_s = 0.0
        """What turns with few records took of the processor lately."""
        self._began_s = self._began_cpu_s = self._until_s = 0.0
        self._is_measured = False
        """Whether the turn at hand is one with few records."""
        self._left = False

    def takes(self) -> None:
        """Nothing waits, or some of it is taken up."""
        self._left = False

    def leaves(self) -> bool:
        """Something that came is left for now; whether for the first time since some was taken."""
        first, self._left = not self._left, True
        return first

    @property
    def has_few(self) -> bool:
        """Whether few records came last."""
        return self._until_s > 0.0

    @property
    def rest_s(self) -> float:
        """How long records that were gathered are to wait for those of the next fetch."""
        return GATHERING * self._linger_s if REST * self._turn_cpu_s > self._linger_s else 0.0

    def hurries(self, latency_ms_max: int | None) -> bool:
        """Whether records are not to be gathered, since a query allows a row to wait no longer than this."""
        return latency_ms_max is not None and latency_ms_max < HURRIED * 1_000 * self._linger_s

    def begins(self, now_s: float, cpu_s: float) -> None:
        """Something is taken up. cpu_s: what the shard's thread had of the processor so far."""
        self._began_s, self._began_cpu_s = now_s, cpu_s

    def took(
        self, rows: int, left: int, latency_ms_max: int | None = None, *, gathered: bool = False
    ) -> None:
        """Note that rows were taken up. left: how many wait. latency_ms_max: the least that a query over
        these allows a row to wait; None: none says. gathered: all came together with those of other streams.
        """
        self._until_s = 0.0
        self._is_measured = 0 < rows < ROWS_MAX and left <= rows
        if self._is_measured:
            allowed_s = math.inf if latency_ms_max is None else latency_ms_max / 2_000
            if gathered:
                until_s = self._began_s + GATHERED * self._linger_s
            else:
                longer_s = min(REST * self._turn_cpu_s, LONGEST * self._linger_s)
                until_s = self._together(self._began_s + max(self._linger_s, longer_s))
            self._until_s = min(until_s, self._began_s + allowed_s)

    def _together(self, instant_s: float) -> float:
        """The instant next to this one at which all shards of a process take up records."""
        if not self._linger_s:
            return instant_s
        return round(instant_s / self._linger_s) * self._linger_s

    def written(self, cpu_s: float) -> None:
        """The transaction is written."""
        if self._is_measured:
            self._is_measured = False
            self._turn_cpu_s += RECENT * (cpu_s - self._began_cpu_s - self._turn_cpu_s)

    def left_s(self, now_s: float) -> float:
        """How long records that have come meanwhile still wait."""
        return max(0.0, self._until_s - now_s)
