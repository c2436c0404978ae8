"""Whole queries, made by hand, against the reference: any stages over any window, matches kept or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.sort.stage import Sort, SortKey
from engine.language.query import Query, Scan
from engine.model import expressions as ex
from engine.model.limits import Limits
from engine.model.types import BIGINT, DOUBLE, INTEGER, TIMESTAMP, Type
from engine.operators.pipeline import evaluate
from engine.reference.stages import answer
from engine.windows.clauses import UNBOUNDED, RowWindow
from tests.operators.pipeline import table_rows
from tests.operators.relations import exactly, tables
from tests.operators.stored import NAME, TYPES, parts, reference, scan_at
from tests.time_windows import range_window
from tureen.errors import LimitExceeded

STREAM = (*TYPES, TIMESTAMP)
windows = st.sampled_from([UNBOUNDED, range_window(2), range_window(0), RowWindow(5), RowWindow(1_000)])


def column(place: int, types: tuple[Type, ...] = STREAM) -> ex.Column:
    return ex.Column(place, f"c{place}", types[place])


@st.composite
def predicates(draw: st.DrawFn) -> ex.Expression | None:
    place, value = draw(st.sampled_from([(0, 1), (1, 7), (2, 0.1)]))
    compared = ex.Compare(
        draw(st.sampled_from(["<", ">", "="])), column(place), ex.Literal(value, STREAM[place])
    )
    return draw(st.sampled_from([None, compared, ex.Not(compared)]))


@st.composite
def scans(draw: st.DrawFn) -> Scan:
    return Scan(NAME, draw(windows), draw(predicates()))


@st.composite
def queries(draw: st.DrawFn, nested: bool = False) -> Query:
    """Up to five stages; the first or second gives columns, so that types stay known."""
    types: tuple[Type, ...] = STREAM
    stages: list[Stage] = []
    gives_columns = False
    for _ in range(draw(st.integers(1, 5))):
        stage = draw(stage_over(types, nested))
        stages.append(stage)
        if isinstance(stage, Project | Aggregate):
            gives_columns = True
            types = tuple(type_ for _, type_ in Query("", Scan(NAME, UNBOUNDED), (stage,)).columns)
    if not gives_columns:
        stages.append(
            Project(tuple(Output(f"o{place}", column(place, types)) for place in range(len(types))))
        )
    return Query("", draw(scans()), tuple(stages))


@st.composite
def stage_over(draw: st.DrawFn, types: tuple[Type, ...], nested: bool) -> Stage:
    places = st.integers(0, len(types) - 1)
    doubles = [place for place, type_ in enumerate(types) if type_ == DOUBLE]
    quotient: Any = None
    if doubles:
        one, other = (
            column(draw(st.sampled_from(doubles)), types),
            column(draw(st.sampled_from(doubles)), types),
        )
        quotient = ex.Arithmetic("/", one, other, DOUBLE)
    kinds = ["project", "aggregate", "filter", "distinct", "sort", "limit"] + ([] if nested else ["semi"])
    match draw(st.sampled_from(kinds)):
        case "project":
            chosen = draw(st.lists(places, min_size=1, max_size=4))
            outputs: list[ex.Expression] = [column(place, types) for place in chosen]
            if quotient is not None:
                outputs.append(quotient)
            return Project(tuple(Output(f"p{place}", each) for place, each in enumerate(outputs)))
        case "aggregate":
            keys = draw(st.lists(places, max_size=2))
            calls = [AggregateCall("n", "COUNT", (), BIGINT)]
            if quotient is not None:
                calls += [
                    AggregateCall("total", "SUM", (quotient,), DOUBLE),
                    AggregateCall("spread", "VAR_POP", (quotient.left,), DOUBLE),
                ]
            place = draw(places)
            calls.append(AggregateCall("least", "MIN", (column(place, types),), types[place]))
            return Aggregate(
                tuple(Output(f"k{i}", column(place, types)) for i, place in enumerate(keys)), tuple(calls)
            )
        case "filter":
            if quotient is not None:
                return Filter(ex.Compare("<", quotient, ex.Literal(1.0, DOUBLE)))
            return Filter(ex.Not(ex.IsNull(column(draw(places), types))))
        case "distinct":
            return Distinct()
        case "sort":
            keys = draw(st.lists(places, min_size=1, max_size=2))
            return Sort(
                tuple(
                    SortKey(column(place, types), draw(st.booleans()), draw(st.booleans())) for place in keys
                )
            )
        case "limit":
            return Limit(draw(st.none() | st.integers(0, 20)), draw(st.integers(0, 3)))
        case _:
            place = draw(places)
            inner = Query("", draw(scans()), (Project((Output("k", column(0)),)), Limit(8)))
            key: ex.Expression = ex.Literal(1, INTEGER)
            if types[place].is_numeric:
                key = column(place, types)
            return SemiJoin((key,), inner, draw(st.booleans()), draw(st.booleans()))


@given(
    st.data(),
    queries(),
    st.lists(st.integers(0, 30), max_size=3),
    st.sampled_from(["none", "lazy"]),
)
def test_the_reference_agrees(data, query, cuts, maintenance):
    rows = data.draw(tables(TYPES))
    steps = data.draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
    stamps = [sum(steps[: place + 1]) for place in range(len(rows))]
    kept = [predicate for _, predicate in query.predicates()] if maintenance == "lazy" else ()
    stored, slots = parts(rows, stamps, cuts, kept)
    expected, errors, complete_from = answer(query, {NAME: reference(rows, stamps)})
    result = evaluate(query, {NAME: scan_at(stored, slots)}, 1_000)
    assert result.table.column_names == [name for name, _ in query.columns]
    assert exactly(table_rows(query, result.table)) == exactly(expected)
    assert (result.errors, result.complete_from_ms) == (errors, complete_from)


ROWS = [(place % 3, place, 0.5 * place, "ab"[place % 2], None) for place in range(20)]
EVERYTHING = Project((Output("v", column(1)),))


def ask(stages: tuple[Stage, ...], rows_max: int, **limits: int) -> Any:
    stored, slots = parts(ROWS, list(range(20)), [7, 11])
    query = Query("", Scan(NAME, UNBOUNDED), stages)
    return evaluate(query, {NAME: scan_at(stored, slots)}, rows_max, Limits(**limits))


@pytest.mark.parametrize("stages", [(EVERYTHING,), (Distinct(), EVERYTHING)])
def test_an_answer_has_so_many_rows_at_most(stages):
    with pytest.raises(LimitExceeded, match="snapshot_rows_max"):
        ask(stages, 19)
    assert ask(stages, 20).table.num_rows == 20


def test_what_comes_on_the_way_is_bounded_apart():
    stages = (Sort((SortKey(column(2), descending=True),)), Limit(2), EVERYTHING)
    assert ask(stages, 2).table.column(0).to_pylist() == [19, 18]
    with pytest.raises(LimitExceeded, match="intermediate_rows_max"):
        ask(stages, 2, intermediate_rows_max=19)


def test_counting_rows_needs_none_of_them():
    count = AggregateCall("n", "COUNT", (), BIGINT)
    stages = (Aggregate((), (count, replace(count, name="m"))),)
    result = ask(stages, 1, intermediate_rows_max=1)
    assert result.table.to_pylist() == [{"n": 20, "m": 20}]
