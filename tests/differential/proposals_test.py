"""Texts that are proposed instead of random ones: none gives a row that the present text does not give."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.join.stage import Join
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.language.query import Query
from engine.model.source import Stream
from engine.model.step import Step
from tests.differential.agreement import EngineSubject, exact_rows
from tests.sql_selects import statement
from tests.strategies import journeys


def nothing(draw: st.DrawFn, stream: Stream) -> str:
    return f'SELECT 1 AS o FROM "{stream.name}" [NOW]'


STEPS = journeys(nothing, legs=3)


JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
SETS = ("UNION ALL", "EXCEPT ALL", "INTERSECT ALL", "UNION", "EXCEPT", "INTERSECT")


def written(draw: st.DrawFn, stream: Stream) -> str:
    """A text whose windows may mostly be shortened, and some that must not."""

    def window() -> str:
        return draw(
            st.sampled_from(["[RANGE 4 MILLISECONDS]", "[RANGE 60 MILLISECONDS]", "[RANGE 1 HOUR]", ""])
        )

    def selected(depth: int) -> str:
        source = f'"s" {window()}' if depth or draw(st.booleans()) else f"({selected(depth + 1)})"
        distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
        text = f"SELECT {distinct}x.{column} AS {column} FROM {source} AS x"
        form = draw(st.sampled_from(["plain", "plain", "in", "limit"]))
        if form == "in":
            word = draw(st.sampled_from(["IN", "NOT IN"]))
            text += f' WHERE x.{column} {word} (SELECT {column} FROM "s" {window()})'
        return text + (f" ORDER BY {column} LIMIT 2" if form == "limit" and not depth else "")

    column = f'"{draw(st.sampled_from([field.name for field in stream.schema]))}"'
    match draw(st.sampled_from(["one", "join", "set"])):
        case "one":
            return selected(0)
        case "join":
            kind = draw(st.sampled_from(JOINS))
            return (
                f'SELECT x.{column} AS a FROM "s" {window()} AS x {kind} "s" {window()} AS y '
                f"ON x.{column} = y.{column}"
            )
        case _:
            return f"{selected(1)} {draw(st.sampled_from(SETS))} {selected(1)}"


def aggregates(query: Query) -> bool:
    """Whether some value is made of several rows, so that it changes with them."""
    for stage in query.stages:
        if isinstance(stage, Aggregate):
            return True
        if isinstance(stage, Join | SemiJoin | SetOperation) and aggregates(stage.inner):
            return True
    return False


@given(steps=STEPS, data=st.data())
def test_no_proposal_makes_an_answer_grow(steps: list[Step], data: st.DataObject) -> None:
    subject = EngineSubject()
    for step in steps:
        subject.apply(step)
    stream = subject.engine.catalogue["s"]
    assert isinstance(stream, Stream)
    sql = data.draw(st.sampled_from([written, written, statement]))(data.draw, stream)
    query = subject.engine.prepare(sql)
    assert isinstance(query, Query)
    found = subject.engine.proposals(sql=sql)
    if aggregates(query) or not found:
        return
    subject.register("whole", sql, {})
    whole = Counter(exact_rows(subject.answer("whole").rows))
    for place, one in enumerate(found):
        subject.register(f"less{place}", one.sql, {})
        assert Counter(exact_rows(subject.answer(f"less{place}").rows)) <= whole, one.sql
