"""Queries over several sources against the reference: each scan as its own source stands, joins one after
another, combinations of the leading joins kept or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join, Latest
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.language.query import Query, Scan
from engine.model import expressions as ex
from engine.model.batch import Int64Array
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.types import BIGINT, DOUBLE, STRING, TIMESTAMP, Type
from engine.operators.chain import leading_joins
from engine.operators.pipeline import evaluate
from engine.operators.relation import Relation
from engine.reference.expressions import evaluate as value_of
from engine.reference.stages import answer
from engine.windows.clauses import UNBOUNDED, RowWindow
from tests.capacities import small_engine
from tests.operators.pipeline import table_rows
from tests.operators.relations import exactly, rows_of, tables
from tests.operators.stored import TYPES, parts, reference, scan_at
from tests.strategies import batch_of
from tests.time_windows import range_window
from tureen.errors import LimitExceeded

NAMES = [SourceName("s"), SourceName("t"), SourceName("u")]
STREAM: tuple[Type, ...] = (*TYPES, TIMESTAMP)
KEYS = (0, 1, 3)
"""Columns that joins are by: INTEGER, BIGINT, STRING."""

windows = st.sampled_from([UNBOUNDED, UNBOUNDED, range_window(3), RowWindow(6)])


def column(place: int, type_: Type) -> ex.Column:
    return ex.Column(place, f"c{place}", type_)


def bare(scan: Scan) -> Query:
    outputs = tuple(Output(f"c{place}", column(place, type_)) for place, type_ in enumerate(STREAM))
    return Query("", scan, (Project(outputs),))


@st.composite
def scans(draw: st.DrawFn) -> Scan:
    above = ex.Compare(">", column(1, BIGINT), ex.Literal(0, BIGINT))
    return Scan(draw(st.sampled_from(NAMES)), draw(windows), draw(st.sampled_from([None, None, above])))


@st.composite
def conditions(draw: st.DrawFn, types: Sequence[Type]) -> ex.Expression | None:
    """Over what is joined, with and without errors."""
    doubles = [place for place, type_ in enumerate(types) if type_ == DOUBLE]
    stamps = [place for place, type_ in enumerate(types) if type_ == TIMESTAMP]
    one, other = (column(draw(st.sampled_from(doubles)), DOUBLE) for _ in range(2))
    before = ex.Compare("<=", column(stamps[0], TIMESTAMP), column(stamps[-1], TIMESTAMP))
    below = ex.Compare("<", ex.Arithmetic("/", one, other, DOUBLE), other)
    return draw(st.sampled_from([None, None, before, ex.Compare("<=", one, other), below]))


@st.composite
def joins(draw: st.DrawFn, types: Sequence[Type], plain: bool) -> Join:
    """plain: inner, by keys, of a source's rows."""
    inner = bare(draw(scans()))
    if not plain and draw(st.booleans()):
        inner = Query("", inner.scan, (*inner.stages, Limit(4)))
    kind = "inner" if plain else draw(st.sampled_from(["inner", "left", "right", "full", "semi", "anti"]))
    key = draw(st.sampled_from(KEYS))
    ours = [place for place, type_ in enumerate(types) if type_ == STREAM[key]]
    pair = column(draw(st.sampled_from(ours)), STREAM[key]), column(key, STREAM[key])
    keys = (pair,) if plain or draw(st.booleans()) else ()
    both = [*types, *STREAM]
    latest = None
    if not plain and draw(st.booleans()):
        outer = column([place for place, type_ in enumerate(types) if type_ == TIMESTAMP][-1], TIMESTAMP)
        latest = Latest(outer, column(5, TIMESTAMP), draw(st.booleans()))
    return Join(inner, kind, keys, draw(conditions(both)), latest)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """One to three joins, the first ones perhaps plain; then columns, or a count and a sum."""
    types, stages = list(STREAM), list[Stage]()
    plain = draw(st.integers(0, 3))
    for place in range(draw(st.integers(1, 3))):
        stage = draw(joins(types, place < plain))
        stages.append(stage)
        if stage.kind not in ("semi", "anti"):
            types += STREAM
    if draw(st.booleans()):
        inner = Query("", draw(scans()), (Project((Output("k", column(1, BIGINT)),)),))
        stages.append(SemiJoin((column(1, BIGINT),), inner, draw(st.booleans()), draw(st.booleans())))
    if draw(st.booleans()):
        stages.append(Filter(ex.Not(ex.IsNull(column(0, types[0])))))
    last = max(place for place, type_ in enumerate(types) if type_ == DOUBLE)
    if draw(st.booleans()):
        calls = (
            AggregateCall("n", "COUNT", (), BIGINT),
            AggregateCall("total", "SUM", (column(last, DOUBLE),), DOUBLE),
        )
        stages.append(Aggregate((Output("k", column(3, STRING)),), calls))
    else:
        some = sorted({0, 3, last, len(types) - 1})
        stages.append(Project(tuple(Output(f"o{place}", column(place, types[place])) for place in some)))
    return Query("", draw(scans()), tuple(stages))


class Known:
    """Combinations of rows equal in keys, found one by one; as many inputs as there are, or the first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.asked = 0

    def places(self, query: Query, relations: Sequence[Relation]) -> Sequence[Int64Array] | None:
        self.asked += 1
        chain = leading_joins(query)[: self.most - 1]
        assert len(relations) == 1 + len(leading_joins(query))
        held = [rows_of(relation) for relation in relations]
        found = [(place,) for place in range(len(held[0]))]
        for number, stage in enumerate(chain, 1):
            found = [
                (*places, place)
                for places, place in product(found, range(len(held[number])))
                if _equal(stage, [v for n, p in enumerate(places) for v in held[n][p]], held[number][place])
            ]
        return [np.array([places[n] for places in found], np.int64) for n in range(1 + len(chain))]


def _equal(stage: Join, row: Sequence[Any], other: Sequence[Any]) -> bool:
    pairs = [(value_of(ours, tuple(row)), value_of(theirs, tuple(other))) for ours, theirs in stage.keys]
    return all(one is not None and one == another for one, another in pairs)


@given(st.data(), queries(), st.sampled_from([None, 2, 4]))
def test_the_reference_agrees(data, query, kept):
    at, seen = {}, {}
    for name in NAMES:
        rows = data.draw(tables(TYPES, 8))
        steps = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
        stamps = [sum(steps[: place + 1]) for place in range(len(rows))]
        stored, slots = parts(rows, stamps, [3], [e for s, e in query.predicates() if s == name])
        at[name], seen[name] = scan_at(stored, slots), reference(rows, stamps)
    expected, errors, complete_from = answer(query, seen)
    known = None if kept is None else Known(kept)
    result = evaluate(query, at, 10_000, Limits(intermediate_rows_max=10_000), composites=known)
    assert exactly(table_rows(query, result.table)) == exactly(expected)
    assert (result.errors, result.complete_from_ms) == (errors, complete_from)
    if known is not None:
        assert known.asked == bool(leading_joins(query))


# --- what may be kept -----------------------------------------------------------------------------

KEY = ((column(1, BIGINT), column(1, BIGINT)),)
INNER = bare(Scan(NAMES[1], UNBOUNDED))
ERRS = ex.Compare("<", ex.Arithmetic("/", column(2, DOUBLE), column(8, DOUBLE), DOUBLE), column(2, DOUBLE))
SURE = ex.Compare("<", column(2, DOUBLE), column(8, DOUBLE))


@pytest.mark.parametrize(
    ("stages", "count"),
    [
        ([Join(INNER, "inner", KEY), Join(INNER, "inner", KEY, SURE), Join(INNER, "inner", KEY)], 3),
        ([Join(INNER, "inner", KEY), Join(INNER, "left", KEY)], 1),
        ([Join(INNER, "full", KEY), Join(INNER, "inner", KEY)], 1),
        ([Join(INNER, "inner", KEY, ERRS), Join(INNER, "inner", KEY)], 1),
        ([Join(INNER, "inner", KEY), Join(INNER, "inner", KEY, ERRS), Join(INNER, "inner", KEY)], 2),
        ([Join(INNER, "inner", (), SURE)], 0),
        ([Join(INNER, "inner", KEY, None, Latest(column(5, TIMESTAMP), column(5, TIMESTAMP)))], 0),
        ([Join(Query("", INNER.scan, (*INNER.stages, Limit(3))), "inner", KEY)], 0),
        ([Filter(SURE), Join(INNER, "inner", KEY)], 0),
    ],
)
def test_the_joins_that_combinations_may_be_kept_for(stages, count):
    query = Query("", Scan(NAMES[0], UNBOUNDED), (*stages, *INNER.stages))
    assert leading_joins(query) == tuple(stages[:count])


@pytest.mark.parametrize("kind", ["inner", "full", "anti"])
def test_conditions_of_what_is_kept_err_as_they_do_elsewhere(kind):
    rows = [(1, place // 5, [0.0, -1.5, 2.0, 3.0, None][place % 5], "a", None) for place in range(10)]
    stored, slots = parts(rows, list(range(10)), [4])
    at = dict.fromkeys(NAMES, scan_at(stored, slots))
    joins = [Join(INNER, "inner", KEY, SURE), Join(INNER, "inner", KEY, ERRS)]
    stages = joins if kind == "inner" else [Join(INNER, kind, KEY, ERRS)]
    query = Query("", Scan(NAMES[0], UNBOUNDED), (*stages, *INNER.stages))
    plain = evaluate(query, at, 1_000)
    kept = evaluate(query, at, 1_000, composites=Known(8))
    assert kept.errors == plain.errors > 0
    assert kept.table.equals(plain.table)
    assert plain.table.num_rows > 0


@pytest.mark.parametrize("composites", [None, Known(2)])
def test_no_more_rows_on_the_way_than_may_be(composites):
    rows = [(1, 1, 1.0, "a", None)] * 4
    stored, slots = parts(rows, [0, 1, 2, 3], [2])
    at = dict.fromkeys(NAMES, scan_at(stored, slots))
    count = Aggregate((), (AggregateCall("n", "COUNT", (), BIGINT),))
    query = Query("", Scan(NAMES[0], UNBOUNDED), (Join(INNER, "inner", KEY), count))
    assert evaluate(
        query, at, 1, Limits(intermediate_rows_max=16), composites=composites
    ).table.to_pylist() == [{"n": 16}]
    with pytest.raises(LimitExceeded, match="intermediate_rows_max"):
        evaluate(query, at, 1, Limits(intermediate_rows_max=15), composites=composites)


def test_the_limit_of_candidates_is_the_engines() -> None:
    engine = small_engine(Limits(join_candidates_max=15))
    for name in ("s", "t"):
        engine.create(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')")
    engine.register("pairs", "SELECT s.k FROM s JOIN t ON s.k <> t.k + 10")
    schema = engine.catalogue["s"].schema
    for name in ("s", "t"):
        engine.ingest(name, batch_of(schema, [(0, i, 1_000, (i,)) for i in range(4)]), 1_000)
        engine.ingest(name, batch_of(schema, [(0, 4, 2_000, (0,))]), 2_000)
    with pytest.raises(LimitExceeded, match="join_candidates_max"):
        engine.view().snapshot("pairs")
