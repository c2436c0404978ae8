"""A module with a queue, as a scheduler sees it: what waits, what a unit of it costs, how much comes out.

Time and size have any unit, the same for all modules of a scheduler: nanoseconds and bytes in the broker.
Estimates are exponentially smoothed; they say when they moved so far that charts have to be redone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SMOOTHING = 1 / 8
"""Share of the last measurement in an estimate."""

MOVED = 0.2
"""An estimate that is so far from the one in the chart changes the chart."""

COST_UNKNOWN = 1.0
"""Cost of a unit of size, before anything was measured."""


class WaitingBatch(NamedTuple):
    """What waits in a queue. origin: number of the batch that it came from, in order of arrival. size: as the
    scheduler counts it. since: when it came to this queue; deadline: when its results are due, None: never.
    """

    origin: int
    size: float
    rows: int
    since: float
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Charted:
    """What the chart has of a module: the estimates it goes by, slope and what remains from here on."""

    cost: float = COST_UNKNOWN
    shares: Mapping[str, float] = field(default_factory=dict)
    slope: float = 0.0
    remaining: float = COST_UNKNOWN


@dataclass(slots=True)
class ScheduledModule:
    """One module. number: in order of coming. plan: whose module it is, for fairness. weight: of that plan.

    cost: time a unit of size; shares: by consumer, size that comes out a unit that goes in.
    """

    name: str
    number: int
    plan: str
    weight: float
    cost: float = COST_UNKNOWN
    shares: dict[str, float] = field(default_factory=dict)
    queue: deque[WaitingBatch] = field(default_factory=deque)
    rows: int = 0
    size: float = 0.0
    spent: float = 0.0
    measured: bool = False
    chart: Charted = field(default_factory=Charted)

    @property
    def own_slope(self) -> float:
        """Size that its own step takes away in a unit of time."""
        taken = 1.0 - sum(self.shares.values())
        return taken / self.cost if self.cost > 0 else taken * float("inf") if taken else 0.0

    def age(self, now: float) -> float:
        """Returns how long the oldest batch has waited; 0 where none waits."""
        return max(0.0, now - self.queue[0].since) if self.queue else 0.0

    def put(self, batch: WaitingBatch) -> None:
        """A batch comes."""
        self.queue.append(batch)
        self.rows += batch.rows
        self.size += batch.size

    def take(self) -> WaitingBatch:
        """The oldest batch goes."""
        batch = self.queue.popleft()
        self.rows -= batch.rows
        self.size = self.size - batch.size if self.queue else 0.0
        return batch

    def measure(self, size: float, spent: float, produced: Mapping[str, float]) -> bool:
        """A batch was run. Returns whether an estimate is now far from the chart's."""
        self.spent += spent
        if size <= 0:
            return False
        weight = SMOOTHING if self.measured else 1.0
        self.measured = True
        was = self.chart.cost
        self.cost = now = self.cost + weight * (spent / size - self.cost)
        moved = abs(now - was) > MOVED * abs(was)
        shares, charted = self.shares, self.chart.shares
        for name, share in shares.items():
            was = charted.get(name, 0.0)
            shares[name] = now = share + weight * (produced.get(name, 0.0) / size - share)
            moved = moved or abs(now - was) > MOVED * abs(was)
        return moved
