"""Which sources shed rows while queues are too long: those whose queries lose least by the time that is won.

A source's *load* is the time that its rows would take, in seconds a second; its *price* the weight of its
tolerant queries over that. Where time is short sources shed in the order of price, the cheapest first, until
the load that is left is no more than a second a second; that is the greedy solution of the fractional
knapsack, to lose the least weighted share of rows for the time that is lacking. Loads are estimates, so while
some queue stays as full as shedding begins at, one more sheds each :data:`BETWEEN_S` seconds. With all queues
short again (:mod:`engine.overload.shedding`) none sheds.

Pure: the clock is passed in. O(sources log sources) a look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.overload.shedding import BEGINS_AT, BETWEEN_S, Shedding


@dataclass(frozen=True, slots=True)
class QueueLook:
    """A source's queue. queued_bytes: what it holds. load: as above. weight: of the queries that let rows go;
    None: none of its rows may be shed. share: of its rows that may be shed at most, in [0, 1].
    """

    name: str
    queued_bytes: int
    load: float
    weight: float | None = None
    share: float = 1.0


class ShedOrder:
    """Of one worker thread's sources, each of which has the same reserve. ``shed``: those that shed now."""

    def __init__(self, reserve_bytes: int) -> None:
        self._shedding = Shedding(reserve_bytes)
        self._changed_s = -math.inf
        self.shed: frozenset[str] = frozenset()

    def look(self, queues: Iterable[QueueLook], now_s: float) -> frozenset[str]:
        """The sources that shed from now on. now_s: of a clock that does not go back."""
        seen = list(queues)
        fullest = max((one.queued_bytes for one in seen), default=0)
        willing = sorted((one for one in seen if one.weight is not None), key=_price)
        was_on = self._shedding.is_on
        shed = self.shed.intersection(one.name for one in willing)
        if not self._shedding.observe(fullest, now_s):
            shed = frozenset()
        elif not was_on or not shed:
            shed, self._changed_s = frozenset(_enough(seen, willing)), now_s
        elif now_s - self._changed_s >= BETWEEN_S and fullest >= BEGINS_AT * self._shedding.reserve_bytes:
            more = [one.name for one in willing if one.name not in shed][:1]
            shed, self._changed_s = shed.union(more), now_s
        self.shed = shed
        return shed


def _price(one: QueueLook) -> tuple[float, str]:
    assert one.weight is not None
    return one.weight / max(one.load, 1e-9), one.name


def _enough(seen: Sequence[QueueLook], willing: Sequence[QueueLook]) -> list[str]:
    """Those of the willing that must shed, one at least."""
    left, shed = math.fsum(one.load for one in seen), []
    for one in willing:
        shed.append(one.name)
        left -= one.load * one.share
        if left <= 1:
            break
    return shed
