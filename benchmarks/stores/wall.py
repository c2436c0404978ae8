"""The join by an engine in measured time: rows are offered at a rate, grants come from the time that is left.

The rows of the two stores come at a steady rate, whatever the engine does; what is due at a tick is a step
of each store. The second step carries a grant: the units that fit into what is left of the tick by the time
that a unit took until now; heartbeats with grants follow while there is time. Each pair that was found goes
through a function that takes 20 us. A row's delay is from when it was due to the end of the step that took
it in, with the function for what that step found.

Time is the processor's, so that other processes do not count; waiting, and the function, are added to it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from benchmarks.stores.exact import Output, output_of
from benchmarks.stores.promising import (
    RATE,
    STORES,
    STREAM_SQL,
    T1_MS,
    Collected,
    batch_of,
    join_text,
    places_of,
    stream,
)
from benchmarks.stores.sales import FloatArray, Sales
from engine.engine import Engine
from engine.language.preference import PreferenceOrder
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import Heartbeat, Records
from engine.promising.found import FoundPairs

FUNCTION_US = 20.0
DELAY_S = 0.05
"""How old a row may be at the end of its tick."""
SHARE = 0.6
"""Share of the time that is left which a grant is given at once."""
REST_S = 0.003
"""Less time than this is no step's."""
SMOOTHING = 0.2
"""Weight of the last tick in what is known of times."""
ROOM = Limits(snapshot_rows_max=100_000_000)


def at_distinct_instants(sales: Sales) -> Sales:
    """Move sales so that no two rows of a store are at one ms, and no row is late behind another."""
    at = sales.at.copy()
    for store in (0, 1):
        mine = sales.store == store
        number = np.arange(int(mine.sum()))
        at[mine] = np.maximum.accumulate(np.floor(at[mine]).astype(np.int64) - number) + number
    order = np.argsort(at, kind="stable")
    return Sales(at[order], sales.store[order], sales.item[order], sales.price[order], sales.items)


def engine_of(sales: Sales, text: str, *, summarised: bool = True) -> Engine:
    """An engine with both stores and one query, q, which follows nothing."""
    engine = Engine(ROOM, timer=time.process_time_ns)
    for name in STORES:
        engine.create(STREAM_SQL.format(name=name, seconds=int(sales.at[-1] / 1_000) + 1))
        if summarised:
            engine.create(
                f"CREATE SUMMARY {name}_items ON {name} (item) "
                f"WITH GRANULARITY {T1_MS} MILLISECONDS AND COLLAPSE ({RATE}, 3)"
            )
    engine.register("q", text)
    return engine


class Clock:
    """Seconds of the processor, and those that were let pass."""

    def __init__(self) -> None:
        self._passed_s = -time.process_time()

    def now(self) -> float:
        """Since it was made."""
        return time.process_time() + self._passed_s

    def let_pass(self, seconds: float) -> None:
        """Without work."""
        self._passed_s += seconds


@dataclass(slots=True)
class Feed:
    """The rows of the stores on their way into an engine."""

    engine: Engine
    sales: Sales
    parts: tuple[Sales, ...] = field(init=False)
    streams: tuple[Stream, ...] = field(init=False)
    taken: list[int] = field(default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        self.parts = tuple(self.sales.of(store) for store in (0, 1))
        self.streams = tuple(stream(name, int(self.sales.at[-1] / 1_000) + 1) for name in STORES)

    def enter(self, until: float, grant: int = 0) -> int:
        """The rows before an instant come, with a grant at last; returns the units that were spent."""
        self.enter_store(0, until)
        return self.enter_store(1, until, grant)

    def enter_store(self, store: int, until: float, grant: int = 0) -> int:
        """Those of one store."""
        part = self.parts[store]
        first, end = self.taken[store], int(np.searchsorted(part.at, until))
        self.taken[store] = end
        batch = batch_of(part.part(slice(first, end)), self.streams[store], first)
        return self.engine._now(Records(SourceName(STORES[store]), batch, {}, grant=grant), int(until)).spent

    def beat(self, grant: int) -> int:
        """No row comes, and units may be spent; returns how many were."""
        return self.engine._now(Heartbeat(SourceName(STORES[1]), grant=grant), 0).spent

    def found(self) -> FoundPairs:
        """What the group of the query holds."""
        ((_, numbered),) = self.engine._parts.grants.groups()
        assert numbered.group is not None
        found = numbered.group.found("q")
        assert isinstance(found, FoundPairs)
        return found

    def hits(self) -> int:
        """Pairs that were found since the start."""
        ((_, numbered),) = self.engine._parts.grants.groups()
        assert numbered.group is not None
        return numbered.group.counts.hits


class Pace:
    """Turns time into grants."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.clock = Clock()
        self.units = 0
        self._unit_s = 1e-6 * FUNCTION_US

    def step(self, until: float | None, left_s: float) -> float:
        """Rows come, or None: a heartbeat, with a grant of what is left. Returns the seconds of the rest."""
        started, hits, work_ns = self.clock.now(), self.feed.hits(), self.feed.engine.work_ns
        grant = max(0, int(SHARE * left_s / self._unit_s))
        spent = self.feed.beat(max(1, grant)) if until is None else self.feed.enter(until, grant)
        work_s = (self.feed.engine.work_ns - work_ns) / 1e9
        entered_s = self.clock.now() - started - work_s
        function_s = 1e-6 * FUNCTION_US * (self.feed.hits() - hits)
        self.clock.let_pass(function_s)
        if spent:
            self._unit_s += SMOOTHING * ((work_s + function_s) / spent - self._unit_s)
        self.units += spent
        return entered_s


@dataclass(frozen=True, slots=True)
class Walled:
    """A run. delays_s: float64[rows]. insertion_us: of a row, all steps without their grants."""

    output: Output
    delays_s: FloatArray
    insertion_us: float


def run(sales: Sales, order: PreferenceOrder, window_ms: int, rows_per_s: float) -> Walled:
    """Offer all rows at a rate. sales: at distinct instants."""
    feed = Feed(engine_of(sales, join_text(order, 1.0, window_ms)), sales)
    collected = Collected()
    due = np.arange(len(sales)) / rows_per_s
    delays = np.zeros(len(sales))
    taken = 0
    pace = Pace(feed)
    insert_s, inserting_s = 0.0, 0.0
    while taken < len(sales):
        started = pace.clock.now()
        ready = int(np.searchsorted(due, started, side="right"))
        if ready == taken:
            pace.clock.let_pass(due[taken] - started)
            continue
        until = sales.at[ready] if ready < len(sales) else sales.at[-1] + 1
        ends = due[taken] + DELAY_S
        entered_s = pace.step(until, ends - started - insert_s * (ready - taken))
        each_s = entered_s / (ready - taken)
        insert_s = each_s if not insert_s else insert_s + SMOOTHING * (each_s - insert_s)
        delays[taken:ready] = pace.clock.now() - due[taken:ready]
        taken = ready
        while ends - pace.clock.now() > REST_S and feed.engine.needs.preference_work():
            entered_s += pace.step(None, ends - pace.clock.now())
        inserting_s += entered_s
        collected.add(feed.found())
    first, second = places_of(sales, collected.pairs())
    output = output_of(sales, first, second, pace.units)
    return Walled(output, delays, 1e6 * inserting_s / len(sales))
