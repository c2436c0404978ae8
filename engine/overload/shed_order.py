"""Which sources shed rows while queues are too long, and which share: so that queries lose least by weight.

A source's *load* is the time that its rows would take, in seconds a second; its *price* the weight of its
tolerant queries over what shedding wins of that. Where time is short sources shed in the order of price, the
cheapest first, each as much as it may and the last as much as it takes, until the load that is left is
TARGET: the greedy solution of the fractional knapsack, to lose the least weighted share of rows for the time
that is lacking. Loads are estimates, so while some queue stays as full as shedding begins at, the load that
is to be left falls by STEP each :data:`BETWEEN_S` seconds. With all queues short again
(:mod:`engine.overload.shedding`) none sheds. In between nothing changes.

Pure: the clock is passed in. O(sources log sources) a look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.overload.shedding import BEGINS_AT, BETWEEN_S, Shedding

TARGET = 0.95
STEP = 0.15
LEAST = 0.05
"""A second a second, each."""


@dataclass(frozen=True, slots=True)
class QueueLook:
    """A source's queue. queued_bytes: what it holds. load: as above. weight: of the queries that let rows go;
    None: none of its rows may be shed. share: of its rows that may be shed at most, in (0, 1]. won: of the
    time of a row what is won by shedding it, in (0, 1].
    """

    name: str
    queued_bytes: int
    load: float
    weight: float | None = None
    share: float = 1.0
    won: float = 1.0


class ShedOrder:
    """Decides which of one worker thread's sources shed rows; each source has the same reserve. shares: the
    share of rows to shed, in (0, 1], for each source that sheds now.
    """

    def __init__(self, reserve_bytes: int) -> None:
        self.shares: Mapping[str, float] = {}
        self._shedding = Shedding(reserve_bytes)
        self._changed_s = -math.inf
        self._target = TARGET

    def look(self, queues: Iterable[QueueLook], now_s: float) -> Mapping[str, float]:
        """What is shed from now on. now_s: of a clock that does not go back."""
        seen = list(queues)
        fullest = max((one.queued_bytes for one in seen), default=0)
        willing = [one for one in seen if one.weight is not None]
        names = {one.name for one in willing}
        was_on = self._shedding.is_on
        if not self._shedding.observe(fullest, now_s):
            self.shares, self._target = {}, TARGET
        elif not was_on or not names.issuperset(self.shares):
            self.shares, self._changed_s = self.split(seen, willing, self._target), now_s
        elif now_s - self._changed_s >= BETWEEN_S and fullest >= BEGINS_AT * self._shedding.reserve_bytes:
            self._target = max(LEAST, self._target - STEP)
            self.shares, self._changed_s = self.split(seen, willing, self._target), now_s
        return self.shares

    def split(
        self, seen: Sequence[QueueLook], willing: Sequence[QueueLook], target: float
    ) -> Mapping[str, float]:
        """The share of rows of each of the willing, so that no more load is left than ``target``; one of them
        sheds at least.
        """
        lacking, shares = math.fsum(one.load for one in seen) - target, dict[str, float]()
        for one in sorted(willing, key=_price):
            wins = one.load * one.won
            if shares and lacking <= 0:
                break
            shares[one.name] = min(one.share, max(lacking / wins, 0.0)) if wins and lacking > 0 else one.share
            lacking -= wins * shares[one.name]
        return shares


def _price(one: QueueLook) -> tuple[float, str]:
    assert one.weight is not None
    return one.weight / max(one.load * one.won, 1e-9), one.name
