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

from engine.algebra.filter.stage import Filter
from engine.algebra.project.stage import Project
from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.dataflow.graph import changes_of
from engine.dataflow.policy import TOLD, Policy
from engine.language.evaluate import truth
from engine.language.query import CreateStream, Query
from engine.language.statements import parse
from engine.language.templates import FixedQuery
from engine.model.batch import versions
from engine.model.changes import Changes, Operator
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import BEGINNING, Registration
from engine.operators.pipeline import evaluate
from engine.operators.projected import projected
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
    return StandingQuery(Registration(query_id, query.sql), FixedQuery.of(query), BEGINNING, "none")


def told_of(
    query: Query,
    operator: Operator,
    transition: Transition,
    limits: Limits = LIMITS,
    *,
    copies: bool = False,
    policy: Policy = TOLD,
) -> Changes:
    """The changes of one query."""
    now_ms = transition.until_ms
    return changes_of(
        standing(query), operator, transition, limits, now_ms, tables=TABLES, copies=copies, policy=policy
    )


def bound(sql: str) -> Query:
    statement = parse(sql, STREAMS, LIMITS)
    assert isinstance(statement, Query)
    return statement


# --- courses --------------------------------------------------------------------------------------

seeds = st.integers(0, 2**32 - 1)
"""Seeds of courses: what Hypothesis draws itself is mostly too little to meet."""

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


def random_transition(
    rng: random.Random, names: Sequence[str], most: int = 12, standing: Sequence[str] = ()
) -> Transition:
    """The way of these sources between two instants, perhaps from the beginning, perhaps with retention.

    standing: those that do not move.
    """
    until = rng.randint(1, LAST_MS)
    since = NEVER if rng.random() < 0.2 else rng.randint(-1, until - 1)
    by_source = {}
    for name in names:
        retained = keeps = to = None
        if rng.random() < 0.3:
            retained = rng.choice((None, rng.randint(-2, until)))
            to = max(-2 if retained is None else retained, rng.randint(-1, until + 1))
            moves = name not in standing and not STREAMS[name].is_table
            keeps = until - to if len(names) == 1 and moves and rng.random() < 0.5 else None
        rows = [row for row in rows_of(rng, name, most) if row[0] <= until]
        by_source[SourceName(name)] = SourceTransition(
            stored(name, rows, until, retained), name not in standing, keeps, to
        )
    return Transition(since, until, by_source)


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


def with_slots(transition: Transition, query: Query) -> Transition:
    """The transition with the matches of a query's predicates in its rows."""
    by_source = {}
    for name, at_source in transition.by_source.items():
        stem = at_source.at.rows
        kept = QueryStem(stem.schema)
        predicates = [predicate for of, predicate in query.predicates() if of == name]
        slots = dict(zip(predicates, kept.add(predicates).slots, strict=True))
        again = DataStem(stem.schema, kept)
        if not STREAMS[name].is_table:
            for _, batch in stem.slices(stem.base, stem.end):
                again.append(batch)
            by_source[name] = replace(
                at_source, at=replace(at_source.at, rows=again.rows(), slot_of=slots.get)
            )
        else:
            by_source[name] = at_source
    return replace(transition, by_source=by_source)


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
    def of(cls, query: Query, context: EvaluationContext) -> Answers:
        interval = context.interval
        return cls({instant: bag(_answer(query, context, instant)) for instant in _instants(interval)})

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


def _instants(interval: Interval) -> Iterable[int]:
    start = -5 if interval.since == NEVER else interval.since
    return [interval.since, *range(start + 1, interval.until + 1)]


def _answer(query: Query, context: EvaluationContext, instant: int) -> pa.Table:
    at = {source: context.standing(source, instant) for source in query.sources}
    return evaluate(query, at, 100_000).table


def check_scan(query: Query, transition: Transition) -> None:
    """The rows of a scan that are there at every instant are the answer there. query: SELECT * of it."""
    context = EvaluationContext(transition, LIMITS)
    last = context.scan_history(query.scan)
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
    check_snapshots(query, transition, alive)
    alive = last.alive()
    assert bag_of(alive.changing(context.interval).relation) == bag_of(changed.relation)


def check_snapshots(query: Query, transition: Transition, alive: TemporalRelation) -> None:
    for instant, answer in Answers.of(query, EvaluationContext(transition, LIMITS)).at.items():
        assert bag_of(alive.relation.take(alive.at(instant))) == answer, instant


def check_changes(query: Query, transition: Transition, operator: Operator, policy: Policy = TOLD) -> None:
    """What is told is what the answers at every instant differ by, told once and in order."""
    told = told_of(query, operator, transition, policy=policy)
    assert told.table.num_rows == len(told.weights) == len(told.at_ms)
    places = list(zip(told.at_ms.tolist(), told.weights.tolist(), strict=True))
    assert places == sorted(places)
    rows = [repr(tuple(row.values())) for row in told.table.to_pylist()]
    told_once = Counter(zip(rows, places, strict=True))
    found: dict[int, Bag] = {}
    for row, (at_ms, weight) in told_once:
        assert not told_once[row, (at_ms, -weight)]
        found.setdefault(at_ms, Counter())[row] += weight * told_once[row, (at_ms, weight)]
    assert found == _expected(query, transition, operator)


def _expected(query: Query, transition: Transition, operator: Operator) -> dict[int, Bag]:
    halves = Answers.of(query, EvaluationContext(transition, LIMITS))
    if operator == "istream":
        changes = halves.changes()
        return _signed({instant >> 1: change for instant, change in changes.items() if not instant & 1}, 1)
    odd = [instant for instant in halves.at if instant & 1 or instant == NEVER]
    if operator == "rstream":
        scanned = {
            instant: _scanned(query, EvaluationContext(transition, LIMITS), instant) for instant in odd
        }
        moved = [instant for before, instant in pairwise(scanned) if scanned[before] != scanned[instant]]
        return {instant >> 1: halves.at[instant] for instant in moved if halves.at[instant]}
    whole = Answers({instant: halves.at[instant] for instant in odd}).changes()
    changes = {instant >> 1: change for instant, change in whole.items()}
    return changes if operator == "changes" else _signed(changes, -1)


def _scanned(query: Query, context: EvaluationContext, instant: int) -> list[list[tuple[int, str]]]:
    """The rows of each scan, by place."""
    found = []
    for scan in query.scans():
        relation = context.standing(scan.source, instant).relation(scan).relation
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
