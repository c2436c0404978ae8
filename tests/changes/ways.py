"""Courses over a few streams and a table of random rows, and what a query's changes on them have to be: the
query evaluated at every instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from engine.changes.changes_of import changes_of
from engine.changes.course import NEVER, Course, Leg
from engine.changes.flow import flow_of
from engine.changes.lives import Way
from engine.changes.trip import Trip
from engine.language.query import CreateStream, Query
from engine.language.statements import parse
from engine.limits import Limits
from engine.model.batch import versions
from engine.model.changes import Operator
from engine.model.source import SourceName, Stream
from engine.operators.pipeline import evaluate
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt
from engine.operators.table_scan import scan_now
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


def bound(sql: str) -> Query:
    statement = parse(sql, STREAMS, LIMITS)
    assert isinstance(statement, Query)
    return statement


# --- courses --------------------------------------------------------------------------------------

_KEYS = st.sampled_from([0, 1, 2, None])
_VALUES: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "s": st.tuples(
        _KEYS, st.sampled_from([0.0, -0.0, 0.1, 1.5, -7.25, float("nan"), None]), st.sampled_from(["a", "b"])
    ),
    "u": st.tuples(_KEYS, st.integers(-2, 3)),
    "h": st.tuples(st.integers(0, 2), st.integers(0, 3) | st.none()),
    "m": st.tuples(st.integers(0, 2), st.integers(0, 3) | st.none()),
}


@st.composite
def rows_of(draw: st.DrawFn, name: str, most: int = 12) -> list[Row]:
    """In the order of their instants."""
    instants = sorted(draw(st.lists(st.integers(0, LAST_MS), max_size=most)))
    return [(instant, (*draw(_VALUES[name]), instant)) for instant in instants]


@st.composite
def courses(draw: st.DrawFn, names: Sequence[str], retention: bool = True, most: int = 12) -> Course:
    """The way of these sources between two instants, perhaps from the beginning."""
    until = draw(st.integers(0, LAST_MS))
    since = draw(st.just(NEVER) | st.integers(-1, until - 1)) if until else NEVER
    legs = {}
    for name in names:
        rows = draw(rows_of(name, most))
        retained = keeps = to = None
        if retention and draw(st.booleans()):
            retained = draw(st.none() | st.integers(-2, 8))
            to = max(retained or -2, draw(st.integers(-1, until + 1)))
            keeps = until - to if len(names) == 1 and draw(st.booleans()) else None
        at = stored(name, [row for row in rows if row[0] <= until], until, retained)
        legs[SourceName(name)] = Leg(at, True, keeps, to)
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


def bag_of(query: Query, relation: Relation) -> Bag:
    columns = [column.to_arrow() for column in relation.columns]
    names = [str(place) for place in range(len(columns))]
    return bag(pa.Table.from_arrays(columns, names))


@dataclass(frozen=True)
class Answers:
    """The answer at each instant of the way and at its beginning, in the scale of a trip."""

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
    start = -3 if way.since_ms == NEVER else way.since_ms
    return [way.since_ms, *range(start + 1, way.until_ms + 1)]


def _answer(query: Query, trip: Trip, instant: int) -> pa.Table:
    at = {source: trip.standing(source, instant) for source in query.sources}
    return evaluate(query, at, 100_000).table


def check_lives(query: Query, course: Course, *, halves: bool = False) -> None:
    """The snapshot of the lives at every instant is the answer there."""
    trip = Trip(course, LIMITS, halves)
    last = flow_of(query, trip)
    changed, alive = last.changed(), last.alive()
    changed._check()
    alive._check()
    expected = Answers.of(query, Trip(course, LIMITS, halves))
    for instant, answer in expected.at.items():
        assert bag_of(query, alive.relation.take(alive.at(instant))) == answer, instant
    assert bag_of(query, alive.changing(trip.way).relation) == bag_of(query, changed.relation)


def check_changes(query: Query, course: Course, operator: Operator) -> None:
    """What is told is what the answers at every instant differ by, told once and in order."""
    told = changes_of(query, operator, course, LIMITS)
    assert told.table.num_rows == len(told.weights) == len(told.at_ms)
    places = list(zip(told.at_ms.tolist(), told.weights.tolist(), strict=True))
    assert places == sorted(places)
    found: dict[int, Bag] = {}
    rows = [repr(tuple(row.values())) for row in told.table.to_pylist()]
    seen = set()
    for row, weight, at_ms in zip(rows, told.weights.tolist(), told.at_ms.tolist(), strict=True):
        assert (row, -weight, at_ms) not in seen
        seen.add((row, weight, at_ms))
        found.setdefault(at_ms, Counter())[row] += weight
    answers = Answers.of(query, Trip(course, LIMITS))
    expected = answers.changes()
    sign = {"istream": 1, "dstream": -1}.get(operator)
    if sign is not None:
        expected = {
            at_ms: Counter({row: n for row, n in change.items() if n * sign > 0})
            for at_ms, change in expected.items()
        }
        expected = {at_ms: change for at_ms, change in expected.items() if change}
    assert found == expected
