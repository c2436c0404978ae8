"""Courses over a few streams and a table of random rows, and what a query's changes on them have to be: the
query evaluated at every instant.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from engine.changes.course import NEVER, Course, Leg
from engine.changes.lives import Lives, Way
from engine.changes.trip import Trip
from engine.dataflow.graph import changes_of
from engine.language.evaluate import truth
from engine.language.query import CreateStream, Filter, Project, Query
from engine.language.statements import parse
from engine.language.templates import FixedQuery
from engine.model.batch import versions
from engine.model.changes import Changes, Operator
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import BEGINNING, Registration
from engine.operators.pipeline import evaluate, projected
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt
from engine.operators.table_scan import scan_now
from engine.standing.query import StandingQuery
from engine.stems.data_stem import DataStem
from engine.stems.query_stem import QueryStem
from engine.stems.table_stem import TableStem
from tests.strategies import batch_of

LAST_MS = 24
LIMITS = Limits()
TEXTS = (
    "CREATE STREAM s (k BIGINT, v DOUBLE, w STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')",
    "CREATE STREAM u (k BIGINT, n BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')",
    "CREATE TABLE h (k BIGINT, p BIGINT, ts TIMESTAMP NOT NULL, PRIMARY KEY (k)) WITH (timestamp = 'ts')",
    """CREATE TABLE m (k BIGINT, p BIGINT, ts TIMESTAMP NOT NULL, PRIMARY KEY (k)) WITH (timestamp = 'ts')
    NON RETROACTIVE""",
)

Row = tuple[int, tuple[Any, ...]]
"""Instant and values; of a version that takes its key away all but the first are None."""


def _streams() -> dict[str, Stream]:
    found = {}
    for text in TEXTS:
        statement = parse(text, {}, LIMITS)
        assert isinstance(statement, CreateStream)
        found[statement.stream.name] = statement.stream
    return found


STREAMS: Mapping[str, Stream] = _streams()


TABLES = frozenset(stream.name for stream in STREAMS.values() if stream.is_table)


def standing(query: Query, query_id: str = "q") -> StandingQuery:
    """A query none of whose matches are kept."""
    return StandingQuery(Registration(query_id, query.sql), FixedQuery(query), BEGINNING, "none")


def told_of(
    query: Query, operator: Operator, course: Course, limits: Limits = LIMITS, *, copies: bool = False
) -> Changes:
    """The changes of one query."""
    now_ms = course.until_ms
    return changes_of(standing(query), operator, course, limits, now_ms, tables=TABLES, copies=copies)


def bound(sql: str) -> Query:
    statement = parse(sql, STREAMS, LIMITS)
    assert isinstance(statement, Query)
    return statement


# --- courses --------------------------------------------------------------------------------------

seeds = st.integers(0, 2**32 - 1)
"""Of courses: what Hypothesis draws itself is mostly too little to meet."""

FEW = settings(max_examples=max(8, settings.default.max_examples // 3))
"""For tests of many texts."""

_DOUBLES = (0.0, -0.0, 0.1, 1.5, -7.25, float("nan"), None)


def _values(rng: random.Random, name: str) -> tuple[Any, ...]:
    if name == "s":
        return rng.choice((0, 1, 2, None)), rng.choice(_DOUBLES), rng.choice("ab")
    if name == "u":
        return rng.choice((0, 1, 2, None)), rng.randint(-2, 3)
    return rng.randint(0, 2), rng.choice((0, 1, 2, None))


def rows_of(rng: random.Random, name: str, most: int) -> list[Row]:
    """In the order of their instants."""
    instants = sorted(rng.randint(0, LAST_MS) for _ in range(rng.randint(0, most)))
    return [(instant, (*_values(rng, name), instant)) for instant in instants]


def random_course(
    rng: random.Random, names: Sequence[str], most: int = 12, standing: Sequence[str] = ()
) -> Course:
    """The way of these sources between two instants, perhaps from the beginning, perhaps with retention.

    standing: those that do not move.
    """
    until = rng.randint(1, LAST_MS)
    since = NEVER if rng.random() < 0.2 else rng.randint(-1, until - 1)
    legs = {}
    for name in names:
        retained = keeps = to = None
        if rng.random() < 0.3:
            retained = rng.choice((None, rng.randint(-2, until)))
            to = max(-2 if retained is None else retained, rng.randint(-1, until + 1))
            moves = name not in standing and not STREAMS[name].is_table
            keeps = until - to if len(names) == 1 and moves and rng.random() < 0.5 else None
        rows = [row for row in rows_of(rng, name, most) if row[0] <= until]
        legs[SourceName(name)] = Leg(stored(name, rows, until, retained), name not in standing, keeps, to)
    return Course(since, until, legs)


def stored(name: str, rows: Sequence[Row], until_ms: int, retained_ms: int | None) -> ScanAt:
    stream = STREAMS[name]
    batch = batch_of(stream.schema, [(0, place, at, values) for place, (at, values) in enumerate(rows)])
    if stream.is_table:
        gone = np.array([values[1] is None for _, values in rows], np.bool_)
        stem: DataStem = TableStem(stream, QueryStem(stream.stored_schema))
        stem.append(versions(stream, batch, gone))
    else:
        stem = DataStem(stream.schema, QueryStem(stream.schema))
        stem.append(batch)
    return scan_now(stem.rows(), until_ms, retained_ms)


def with_slots(course: Course, query: Query) -> Course:
    """The same rows with the matches of a query's predicates."""
    legs = {}
    for name, leg in course.legs.items():
        stem = leg.at.rows
        kept = QueryStem(stem.schema)
        predicates = [predicate for of, predicate in query.predicates() if of == name]
        slots = dict(zip(predicates, kept.add(predicates).slots, strict=True))
        again = DataStem(stem.schema, kept)
        if not STREAMS[name].is_table:
            for _, batch in stem.slices(stem.base, stem.end):
                again.append(batch)
            legs[name] = replace(leg, at=replace(leg.at, rows=again.rows(), slot_of=slots.get))
        else:
            legs[name] = leg
    return replace(course, legs=legs)


# --- what is expected -----------------------------------------------------------------------------

Bag = Counter[str]


def bag(table: pa.Table) -> Bag:
    """Rows to the bit; NaN is one."""
    return Counter(repr(tuple(row.values())) for row in table.to_pylist())


def bag_of(relation: Relation) -> Bag:
    columns = [column.to_arrow() for column in relation.columns]
    names = [str(place) for place in range(len(columns))]
    return bag(pa.Table.from_arrays(columns, names))


@dataclass(frozen=True)
class Answers:
    """The answer at each instant of the way and at its beginning, in halves."""

    at: dict[int, Bag]

    @classmethod
    def of(cls, query: Query, trip: Trip) -> Answers:
        way = trip.way
        return cls({instant: bag(_answer(query, trip, instant)) for instant in _instants(way)})

    def changes(self) -> dict[int, Bag]:
        """What came (positive) and went (negative) at each instant, where something did."""
        found = {}
        for (_, before), (instant, after) in zip(self.at.items(), list(self.at.items())[1:], strict=False):
            change = Counter(after)
            change.subtract(before)
            change = Counter({row: count for row, count in change.items() if count})
            if change:
                found[instant] = change
        return found


def _instants(way: Way) -> Iterable[int]:
    start = -5 if way.since == NEVER else way.since
    return [way.since, *range(start + 1, way.until + 1)]


def _answer(query: Query, trip: Trip, instant: int) -> pa.Table:
    at = {source: trip.standing(source, instant) for source in query.sources}
    return evaluate(query, at, 100_000).table


def check_scan(query: Query, course: Course) -> None:
    """The rows of a scan that are there at every instant are the answer there. query: SELECT * of it."""
    trip = Trip(course, LIMITS)
    last = trip.scanning(query.scan)
    changed, alive = last.changed(), last.alive()
    changed._check()
    alive._check()
    relation = alive.relation
    for stage in query.stages:
        if isinstance(stage, Filter):
            true, _ = truth(stage.predicate, relation.columns, len(relation))
            alive = alive.where(true)
            relation = alive.relation
        else:
            assert isinstance(stage, Project)
            alive = alive.with_columns(projected(stage.outputs, relation)[0].columns)
    check_snapshots(query, course, alive)
    alive = last.alive()
    assert bag_of(alive.changing(trip.way).relation) == bag_of(changed.relation)


def check_snapshots(query: Query, course: Course, alive: Lives) -> None:
    for instant, answer in Answers.of(query, Trip(course, LIMITS)).at.items():
        assert bag_of(alive.relation.take(alive.at(instant))) == answer, instant


def check_changes(query: Query, course: Course, operator: Operator) -> None:
    """What is told is what the answers at every instant differ by, told once and in order."""
    told = told_of(query, operator, course)
    assert told.table.num_rows == len(told.weights) == len(told.at_ms)
    places = list(zip(told.at_ms.tolist(), told.weights.tolist(), strict=True))
    assert places == sorted(places)
    rows = [repr(tuple(row.values())) for row in told.table.to_pylist()]
    told_once = Counter(zip(rows, places, strict=True))
    found: dict[int, Bag] = {}
    for row, (at_ms, weight) in told_once:
        assert not told_once[row, (at_ms, -weight)]
        found.setdefault(at_ms, Counter())[row] += weight * told_once[row, (at_ms, weight)]
    assert found == _expected(query, course, operator)


def _expected(query: Query, course: Course, operator: Operator) -> dict[int, Bag]:
    halves = Answers.of(query, Trip(course, LIMITS))
    if operator == "istream":
        changes = halves.changes()
        return _signed({instant >> 1: change for instant, change in changes.items() if not instant & 1}, 1)
    odd = [instant for instant in halves.at if instant & 1 or instant == NEVER]
    if operator == "rstream":
        scanned = {instant: _scanned(query, Trip(course, LIMITS), instant) for instant in odd}
        moved = [instant for before, instant in pairwise(scanned) if scanned[before] != scanned[instant]]
        return {instant >> 1: halves.at[instant] for instant in moved if halves.at[instant]}
    whole = Answers({instant: halves.at[instant] for instant in odd}).changes()
    changes = {instant >> 1: change for instant, change in whole.items()}
    return changes if operator == "changes" else _signed(changes, -1)


def _scanned(query: Query, trip: Trip, instant: int) -> list[list[tuple[int, str]]]:
    """The rows of each scan, by place."""
    found = []
    for scan in query.scans():
        relation = trip.standing(scan.source, instant).relation(scan).relation
        places = relation.stored_ordinals().tolist() if scan.assignment is None else [0] * len(relation)
        columns = [column.to_arrow().to_pylist() for column in relation.columns]
        found.append(sorted(zip(places, map(repr, zip(*columns, strict=True)), strict=True)))
    return found


def _signed(changes: dict[int, Bag], sign: int) -> dict[int, Bag]:
    """What came alone, or what went."""
    found = {
        at_ms: Counter({row: count for row, count in change.items() if count * sign > 0})
        for at_ms, change in changes.items()
    }
    return {at_ms: change for at_ms, change in found.items() if change}
