"""The join by promising tuples: the engine's summaries and promising set, with grants by a clock.

Rows come to the parts as in a step of the engine: they are stored, summarised, the set takes them in, and
then the units are spent that are left of the time until the rows after the step. What an insertion takes is
subtracted row by row, as it is from the time of a SIMPLE join.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.stores.costs import PAPER, Costs
from benchmarks.stores.exact import EVER, Output, output_of
from benchmarks.stores.sales import IntArray, Sales
from engine.language.preference import PreferenceOrder, PriorityForm
from engine.language.query import CreateStream, Query
from engine.language.statements import parse
from engine.model.batch import Batch, Column
from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import DOUBLE, INTEGER, TIMESTAMP
from engine.operators.scan import ScanAt
from engine.promising.found import FoundPairs, PairRun
from engine.promising.group import Member
from engine.promising.join_members import join_key
from engine.promising.joins import PromisingJoin
from engine.stems.data_stem import DataStem
from engine.stems.query_stem import QueryStem
from engine.summaries.summary import Summary

STORES = ("store0", "store1")
STREAM_SQL = (
    "CREATE STREAM {name} (item INTEGER, price DOUBLE, sold TIMESTAMP NOT NULL) "
    "WITH (topic = '{name}', timestamp = 'sold') RETAIN {seconds} SECONDS"
)

T1_MS = 10_000
RATE, DEPTH = 4, 3
BUCKETS = 16
LIMITS = Limits()

SETTINGS = {
    "t2": SummarySettings(buckets=1, theta=0.0, zone_length_max_ms=T1_MS // 4),
    "t3": SummarySettings(buckets=BUCKETS, theta=0.0, zone_length_max_ms=T1_MS // 4),
    "t4": SummarySettings(buckets=BUCKETS, zone_length_max_ms=T1_MS),
}
"""Settings of the summaries, by structure."""


def stream(name: str, seconds: int) -> Stream:
    """The stream of a store that is retained for so long."""
    made = parse(STREAM_SQL.format(name=name, seconds=seconds), {}, LIMITS)
    assert isinstance(made, CreateStream)
    return made.stream


def definition(name: str, structure: str, depth: int = DEPTH) -> SummaryDefinition:
    """The summary of a store's items."""
    return SummaryDefinition(f"{name}_items", name, "item", T1_MS, RATE, depth, settings=SETTINGS[structure])


def join_text(order: str, fade: float, window_ms: int) -> str:
    """The paper's query."""
    window = "" if window_ms >= EVER else f" WINDOW {window_ms} MILLISECONDS"
    return (
        "SELECT a.item, a.sold, b.sold AS sold_b FROM store0 a, store1 b WHERE a.item = b.item "
        f"WITH PREFERENCE {order} SUMMARY.Estimate.Count(a.item), SUMMARY.Estimate.Count(b.item) "
        f"FADE FACTOR {fade}{window}"
    )


def batch_of(sales: Sales, schema_of: Stream, first: int) -> Batch:
    """Rows of one store; first: the offset of the first."""
    offsets = np.arange(first, first + len(sales))
    columns = (
        Column(INTEGER, sales.item.astype(np.int32)),
        Column(DOUBLE, sales.price),
        Column(TIMESTAMP, sales.timestamp),
    )
    partition = np.zeros(len(sales), np.int32)
    return Batch(schema_of.stored_schema, columns, partition, offsets, sales.timestamp)


class Store:
    """A stream's rows and its summary, as a source of the engine has them."""

    def __init__(self, sales: Sales, name: str, summary: SummaryDefinition) -> None:
        self.name = name
        self.sales = sales
        self.stream = stream(name, int(sales.at[-1] / 1_000) + 1)
        self.stem = DataStem(self.stream.stored_schema, QueryStem(self.stream.stored_schema))
        self.summary = Summary(summary, INTEGER)
        self.taken = 0

    def enter(self, until: float, now_ms: int) -> ScanAt:
        """The rows before an instant come."""
        end = int(np.searchsorted(self.sales.at, until))
        rows = slice(self.taken, end)
        if end > self.taken:
            batch = batch_of(self.sales.part(rows), self.stream, self.taken)
            self.stem.append(batch)
            self.summary.enter(batch.columns[0], batch.timestamp, self.taken)
        self.summary.advance(now_ms)
        self.taken = end
        return ScanAt.now(self.stem.rows(), now_ms, None)


class Collected:
    """All pairs that a group found, also those that it let go of since."""

    def __init__(self) -> None:
        self._runs: dict[int, PairRun] = {}

    def add(self, found: FoundPairs) -> None:
        """What it holds now."""
        for run in found.runs:
            self._runs.setdefault(id(run), run)

    def pairs(self) -> PairRun:
        """Each once."""
        runs = self._runs.values()
        none = np.empty(0, np.int64)
        each = np.unique(np.concatenate([none, *(run.left << 32 | run.right for run in runs)]))
        return PairRun(each >> 32, each & 0xFFFF_FFFF)


def places_of(sales: Sales, pairs: PairRun) -> tuple[IntArray, IntArray]:
    """Places in the rows of both stores of the parts of pairs."""
    first, second = (np.flatnonzero(sales.store == store) for store in (0, 1))
    return first[pairs.left], second[pairs.right]


@dataclass(slots=True)
class SetTime:
    """Time of the processor that a promising set took: to take rows in, and to visit rows."""

    arrive_s: float = 0.0
    spend_s: float = 0.0

    @property
    def all_s(self) -> float:
        """Both."""
        return self.arrive_s + self.spend_s


@dataclass(frozen=True, slots=True)
class Promising:
    """A join by promising tuples. step_ms: event time of a step."""

    order: PreferenceOrder = "desc"
    structure: str = "t4"
    fade: float = 1.0
    form: PriorityForm = "count"
    depth: int = DEPTH
    costs: Costs = PAPER
    step_ms: int = 20

    def query(self, stores: tuple[Store, Store], window_ms: int) -> Query:
        """The paper's query, bound."""
        catalogue = {store.name: store.stream for store in stores}
        summaries = {store.summary.definition.name: store.summary.definition for store in stores}
        query = parse(join_text(self.order, self.fade, window_ms), catalogue, LIMITS, summaries=summaries)
        assert isinstance(query, Query)
        assert query.preference is not None
        return replace(query, preference=replace(query.preference, form=self.form))

    def run(self, sales: Sales, window_ms: int) -> Output:
        """What it finds."""
        return self.timed(sales, window_ms)[0]

    def timed(self, sales: Sales, window_ms: int) -> tuple[Output, SetTime]:
        """(what it finds, what the promising set took)."""
        parts = [sales.of(store) for store in (0, 1)]
        stores = (
            Store(parts[0], STORES[0], definition(STORES[0], self.structure, self.depth)),
            Store(parts[1], STORES[1], definition(STORES[1], self.structure, self.depth)),
        )
        query = self.query(stores, window_ms)
        widths = {store.stream.name: len(store.stream.stored_schema.fields) for store in stores}
        summaries = {store.summary.definition.name: store.summary for store in stores}
        group = PromisingJoin(join_key(query, widths), summaries)
        group.add(Member("q", query), {store.name: store.enter(0.0, 0) for store in stores})
        collected = Collected()
        took = SetTime()
        for until, now_ms, grant in self._steps(sales):
            at = {store.name: store.enter(until, now_ms) for store in stores}
            began = time.process_time()
            group.arrive(at, now_ms)
            arrived = time.process_time()
            group.spend(grant, at)
            took.arrive_s += arrived - began
            took.spend_s += time.process_time() - arrived
            found = group.found("q")
            assert isinstance(found, FoundPairs)
            collected.add(found)
        pairs = collected.pairs()
        first, second = places_of(sales, pairs)
        apart = np.abs(sales.timestamp[first] - sales.timestamp[second])
        if len(apart) and apart.max() > window_ms:
            raise RuntimeError("a pair that was found was never in the window")
        return output_of(sales, first, second, group.counts.visited), took

    def _steps(self, sales: Sales) -> Iterator[tuple[float, int, int]]:
        """(rows come before this instant, NOW, units)."""
        gaps = np.diff(sales.at, append=sales.at[-1])
        free = np.maximum(0.0, gaps - self.costs.insertion[self.structure])
        step = (sales.at // self.step_ms).astype(np.int64)
        ends: IntArray = np.append(np.flatnonzero(np.diff(step)), len(sales) - 1)
        upto = np.cumsum(free)[ends] / self.costs.visit
        given = 0
        for end, units in zip(ends.tolist(), upto.tolist(), strict=True):
            until = sales.at[end + 1] if end + 1 < len(sales) else sales.at[end] + 1
            yield until, int(sales.at[end]), int(units) - given
            given = int(units)
