"""Kept partial aggregates give, for any window, to the bit what going over the rows gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.language.query import Query, Scan
from engine.model import expressions as ex
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema, SourceName
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Type, decimal
from engine.operators.maintained.bank import BLOCK
from engine.operators.maintained.measure import measures_of
from engine.operators.maintained.ranked_aggregates import RankedAggregates
from engine.operators.pipeline import evaluate
from engine.operators.scan import ScanAt
from engine.stems import placement
from engine.stems.data_stem import DataStem
from engine.stems.query_stem import QueryStem
from engine.stems.rows import Rows
from engine.stems.segment import SEGMENT_ROWS
from engine.store.matches.cohorts import SELECTIVE
from engine.windows.clauses import Instant, TimeWindow
from tests.operators.relations import exactly, python

PRICE = decimal(18, 3)
TYPES = (INTEGER, BIGINT, DOUBLE, PRICE, BOOLEAN, DATE)
SCHEMA = Schema(tuple(Field(f"c{place}", type_) for place, type_ in enumerate((*TYPES, TIMESTAMP))))
COLUMNS = [ex.Column(place, f"c{place}", type_) for place, type_ in enumerate((*TYPES, TIMESTAMP))]
NAME = SourceName("s")


def rows(rng: np.random.Generator, first: int, n: int) -> Batch:
    """Random rows with instants first, first + 1, ...; odd values now and then."""
    doubles = rng.normal(0, 1e3, n)
    doubles[rng.random(n) < 0.002] = np.nan
    doubles[rng.random(n) < 0.002] = -0.0
    doubles[rng.random(n) < 0.0001] = np.inf
    large = rng.integers(-(2**62), 2**62, n) if rng.random() < 0.5 else rng.integers(-(2**40), 2**40, n)
    values: list[Any] = [
        rng.integers(0, 1_000, n).astype(np.int32),
        large,
        doubles,
        rng.integers(-(10**15), 10**15, n),
        rng.random(n) < 0.999,
        rng.integers(0, 20_000, n).astype(np.int32),
        np.arange(first, first + n),
    ]
    columns = []
    for value, field in zip(values, SCHEMA, strict=True):
        valid = rng.random(n) < 0.9 if field.type in (DOUBLE, BIGINT) else None
        columns.append(Column(field.type, value, valid))
    stamps = np.arange(first, first + n)
    return Batch(SCHEMA, tuple(columns), np.zeros(n, np.int32), stamps, stamps)


class Kept:
    """A stream with predicates, their matches, and the partials of some queries."""

    def __init__(self, seed: int, base: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.stem = QueryStem(SCHEMA)
        self.data = DataStem(SCHEMA, self.stem, base)
        self.tree = RankedAggregates(base)
        self.queries: list[tuple[str, Query, int | None]] = []
        self.names = 0

    @property
    def rows(self) -> Rows:
        return self.data.rows()

    @property
    def bytes(self) -> int:
        (found,) = [a.value for a in self.tree.attributes() if a.name == "partial_bytes"]
        assert isinstance(found, int)
        return found

    def append(self, n: int) -> None:
        while n:
            now = min(n, int(self.rng.integers(1, BATCH_ROWS_MAX + 1)))
            self.data.append(rows(self.rng, self.data.end, now))
            self.tree.advance(self.rows)
            n -= now

    def register(self, predicate: ex.Expression | None, calls: tuple[AggregateCall, ...]) -> None:
        query = Query("", Scan(NAME, TimeWindow(None, Instant(True, 0)), predicate), (Aggregate((), calls),))
        slot = None
        if predicate is not None:
            added = self.stem.add([predicate])
            if added.fresh:
                self.data.owed.backfill(added.fresh)
                self.data.owed.catch_up(added.fresh)
            slot = added.slots[0]
        self.names += 1
        self.queries.append((f"q{self.names}", query, slot))
        self.tree.add({f"q{self.names}": (query, slot)}, self.rows)

    def unregister(self, place: int) -> None:
        name, _, slot = self.queries.pop(place)
        self.tree.remove([name])
        if slot is not None:
            self.stem.remove([slot])

    def drop_below(self, base: int) -> None:
        self.data.drop_below(base)
        self.tree.drop_below(base)

    def compare(self, place: int, start: int, stop: int, rows: Rows | None = None) -> bool:
        """A query over rows start <= ordinal < stop, both ways, as a reader with these rows, or all, sees it.
        Returns whether partials were of use.
        """
        name, query, slot = self.queries[place]
        reader = self.tree.reader(name)
        assert reader is not None
        window = TimeWindow(Instant(False, start), Instant(False, stop - 1))
        query = Query("", Scan(NAME, window, query.scan.predicate), query.stages)
        slots = {} if slot is None else {query.scan.predicate: slot}
        rows = rows or self.rows
        at = ScanAt.now(rows, rows.end, rows.base).with_slots(slots.get)
        lazy, kept = evaluate(query, {NAME: at}, 10), evaluate(query, {NAME: at}, 10, kept=reader)
        assert answer_of(query, lazy.table) == answer_of(query, kept.table)
        assert (lazy.errors, lazy.complete_from_ms) == (kept.errors, kept.complete_from_ms)
        return reader.relation(query.scan, at) is not None


def answer_of(query: Query, table: Any) -> Any:
    columns = [
        python(Column.from_arrow(type_, table.column(place)))
        for place, (_, type_) in enumerate(query.columns)
    ]
    return exactly(columns)


def call(function: str, argument: ex.Expression | None, type_: Type, **options: Any) -> AggregateCall:
    return AggregateCall(function, function, () if argument is None else (argument,), type_, **options)


def below(place: int, value: Any) -> ex.Expression:
    return ex.Compare("<", COLUMNS[place], ex.Literal(value, COLUMNS[place].type))


def all_calls() -> tuple[AggregateCall, ...]:
    total = {INTEGER: BIGINT, BIGINT: BIGINT, DOUBLE: DOUBLE, PRICE: decimal(18, 3)}
    calls = [call("COUNT", None, BIGINT), call("COUNT", COLUMNS[2], BIGINT)]
    for column in COLUMNS[:4]:
        calls += [call("SUM", column, total[column.type]), call("AVG", column, DOUBLE)]
    calls += [call(name, column, column.type) for name in ("MIN", "MAX") for column in COLUMNS]
    calls += [call(name, COLUMNS[2], DOUBLE) for name in ("VAR_SAMP", "STDDEV_POP")]
    calls += [call("VAR_POP", COLUMNS[0], DOUBLE), call("STDDEV_SAMP", COLUMNS[3], DOUBLE)]
    calls += [call(name, COLUMNS[4], BOOLEAN) for name in ("BOOL_AND", "BOOL_OR")]
    quotient = ex.Arithmetic("/", COLUMNS[2], ex.Cast(COLUMNS[0], DOUBLE), DOUBLE)
    calls += [call("SUM", quotient, DOUBLE), call("SUM", COLUMNS[2], DOUBLE, filter=below(0, 500))]
    calls += [call("COUNT", None, BIGINT, filter=ex.Compare(">", quotient, ex.Literal(0.5, DOUBLE)))]
    return tuple(calls)


def windows(rng: np.random.Generator, base: int, end: int, n: int) -> list[tuple[int, int]]:
    """Some at random, some whose ends are those of blocks, some that hold little."""
    found = [tuple(sorted(rng.integers(base, end + 1, 2).tolist())) for _ in range(n)]
    whole = [base, end, *range(-(-base // BLOCK) * BLOCK, end, BLOCK)]
    found += [tuple(sorted(rng.choice(whole, 2).tolist())) for _ in range(n)]
    return [(base, end), (base, base), *found]


@pytest.mark.parametrize(("seed", "base"), [(0, 0), (1, 1_000_003), (2, 64 * BLOCK - 5_000)])
def test_any_window_of_every_aggregate(seed, base):
    kept = Kept(seed, base)
    kept.append(9_000)
    kept.register(below(0, 500), all_calls())
    kept.append(20_000)
    kept.register(None, all_calls())
    kept.register(below(0, 3), all_calls())
    kept.append(70_000)
    kept.tree._check()
    used = [
        kept.compare(place, start, stop)
        for start, stop in windows(kept.rng, base, kept.data.end, 8)
        for place in range(3)
    ]
    assert sum(used) > len(used) / 2


def test_windows_that_hold_nodes_of_nodes():
    calls = (
        call("SUM", COLUMNS[2], DOUBLE),
        call("SUM", COLUMNS[1], BIGINT),
        call("VAR_POP", COLUMNS[2], DOUBLE),
    )
    kept = Kept(3)
    kept.register(below(0, 300), calls)
    kept.append(400_000)
    kept.register(below(0, 700), calls)
    kept.append(300_000)
    kept.tree._check()
    for start, stop in windows(kept.rng, 0, kept.data.end, 20):
        for place in range(2):
            kept.compare(place, start, stop)
    assert kept.compare(0, 5, 690_000)
    full = kept.bytes
    kept.drop_below(600_000)
    kept.append(5_000)
    kept.tree._check()
    assert kept.bytes < 0.6 * full
    for start, stop in windows(kept.rng, 600_000, kept.data.end, 10):
        kept.compare(0, start, stop)
    assert kept.compare(1, 600_000, kept.data.end)


@pytest.mark.parametrize("seed", range(6))
def test_queries_come_and_go_while_rows_do(seed):
    """Slots are used again, measures are shared, blocks fall away."""
    kept = Kept(10 + seed)
    some = all_calls()
    for _ in range(25):
        match kept.rng.choice(["append", "register", "unregister", "drop", "compare"]):
            case "append":
                kept.append(int(kept.rng.integers(1, 15_000)))
            case "register":
                chosen = kept.rng.choice(len(some), 3, replace=False)
                predicate = None if kept.rng.random() < 0.2 else below(0, int(kept.rng.integers(0, 1_000)))
                kept.register(predicate, tuple(some[place] for place in chosen))
            case "unregister" if kept.queries:
                kept.unregister(int(kept.rng.integers(len(kept.queries))))
            case "drop" if kept.rows.end > kept.rows.base:
                kept.drop_below(int(kept.rng.integers(kept.rows.base, kept.rows.end)))
            case _ if kept.queries and kept.rows.end > kept.rows.base:
                for start, stop in windows(kept.rng, kept.rows.base, kept.rows.end, 2):
                    kept.compare(int(kept.rng.integers(len(kept.queries))), start, stop)
        kept.tree._check()


def test_readers_of_before_see_what_was():
    """They hold older rows, and meet partials that went on, moved, or hold less than their window."""
    kept = Kept(30)
    kept.register(below(0, 500), all_calls())
    kept.append(300_000)
    before = kept.rows
    asked = windows(kept.rng, 0, before.end, 4)
    assert kept.compare(0, 0, before.end, before)
    kept.append(150_000)
    for value in range(70):
        kept.register(below(0, value), (call("SUM", COLUMNS[2], DOUBLE),))
    for base in (100_000, 300_000, 400_000):
        for start, stop in asked:
            kept.compare(0, start, stop, before)
        kept.drop_below(base)
        kept.append(100)
    assert not kept.compare(0, 0, 250_000, before)


def test_slots_of_both_cohorts_in_turn(monkeypatch):
    """Words of slots whose matches are bits here and pairs there, and not in the order of the slots."""
    monkeypatch.setattr(placement, "PATH_MIN", 8)
    kept = Kept(32)
    kept.append(1_000)  # a sample, by which predicates are told apart
    calls = (call("SUM", COLUMNS[2], DOUBLE), call("COUNT", None, BIGINT))
    rows_alone = (call("COUNT", None, BIGINT),)
    for number in range(150):
        value = int(kept.rng.integers(0, 1_000))
        equal = ex.Compare("=", COLUMNS[0], ex.Literal(value, INTEGER))
        kept.register(equal if number % 3 else below(0, value), calls if number % 5 else rows_alone)
        if number % 25 == 24:
            kept.append(3_000)
    places = {kept.stem.cohorts.of(slot) == SELECTIVE for _, _, slot in kept.queries}
    assert places == {True, False}
    kept.append(2 * SEGMENT_ROWS)
    for _ in range(40):
        kept.unregister(int(kept.rng.integers(len(kept.queries))))
    kept.append(BLOCK)
    kept.register(below(0, 77), calls)
    kept.append(20_000)
    kept.tree._check()
    for place in range(len(kept.queries)):
        start, stop = sorted(kept.rng.integers(0, kept.data.end, 2).tolist())
        kept.compare(place, start, stop)
        assert kept.compare(place, 17, kept.data.end)


def test_rows_that_do_not_follow_begin_anew():
    """As when a store gives back what is retained."""
    kept = Kept(31)
    kept.register(below(0, 500), all_calls())
    kept.append(30_000)
    kept.data = DataStem(SCHEMA, kept.stem, 1_234_567)
    kept.append(30_000)
    kept.tree._check()
    for start, stop in windows(kept.rng, 1_234_567, kept.data.end, 3):
        kept.compare(0, start, stop)
    assert kept.compare(0, 1_234_567, kept.data.end)


def test_what_cannot_be_put_together_is_not_kept():
    def kept(*calls: AggregateCall, keys: Any = ()) -> bool:
        scan = Scan(NAME, TimeWindow(None, Instant(True, 0)))
        return measures_of(Query("", scan, (Aggregate(keys, calls),))) is not None

    text = ex.Column(0, "t", STRING)
    assert kept(call("COUNT", text, BIGINT))
    assert not kept(call("MIN", text, STRING))
    assert not kept(call("FIRST", COLUMNS[0], INTEGER))
    assert not kept(call("SUM", COLUMNS[0], BIGINT, distinct=True))
    assert not kept(call("COUNT", None, BIGINT), call("ARRAY_AGG", COLUMNS[0], INTEGER))


def test_extremes_of_nothing_but_the_odd_values():
    kept = Kept(40)
    kept.register(None, tuple(call(name, COLUMNS[2], DOUBLE) for name in ("MIN", "MAX", "SUM", "VAR_POP")))
    for value in (math.nan, -math.inf, -0.0, 0.0):
        for _ in range(2):
            batch = rows(kept.rng, kept.data.end, BLOCK)
            columns = list(batch.columns)
            columns[2] = Column(DOUBLE, np.full(BLOCK, value))
            batch = Batch(SCHEMA, tuple(columns), batch.partition, batch.offset, batch.timestamp)
            kept.data.append(batch)
        kept.tree.advance(kept.rows)
    for start in range(0, 8 * BLOCK, BLOCK):
        for stop in range(start + BLOCK, 8 * BLOCK + 1, BLOCK):
            assert kept.compare(0, start, stop)
            kept.compare(0, start + 5, stop - 5)
