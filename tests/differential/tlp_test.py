"""Ternary logic partitioning: p, NOT p and p IS NULL divide the rows of any query without p among them.

Rows for which p is an error are in none of the three, so the predicates here cannot err. No oracle is needed:
the engine answers the whole and its parts, and the parts make the whole.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.model.source import Stream
from engine.model.step import Step
from tests.differential.agreement import EngineSubject, exact, exact_rows
from tests.sql_selects import Selects
from tests.sql_strategies import Writer
from tests.strategies import OPTIONS, journeys

Row = tuple[Any, ...]


class Sure(Writer):
    """Expressions that cannot err."""

    def __init__(self, draw: st.DrawFn, schema: Any, instant: int | None = None) -> None:
        super().__init__(draw, schema, instant, errors=False)

    def number(self, type_: Any, depth: int) -> str:
        return self.column(type_) or self.constant(type_)

    instant_of = string = lambda self, depth: "NULL"


def parted(draw: st.DrawFn, stream: Stream, whole: str, tail: str = "") -> list[str]:
    """A text without a WHERE, and the same with p, NOT p and p IS NULL."""
    predicate = Sure(draw, stream.schema).predicate()
    wheres = ["", f"WHERE {predicate}", f"WHERE NOT ({predicate})", f"WHERE ({predicate}) IS NULL"]
    return [f"{whole} {where} {tail}" for where in wheres]


def answers(data: st.DataObject, steps: list[Step], whole: str, tail: str = "") -> list[list[Row]]:
    """What the whole and its parts answer, each maintained in some way."""
    subject = EngineSubject()
    for step in steps:
        subject.apply(step)
    stream = subject.engine.catalogue["s"]
    assert isinstance(stream, Stream)
    texts = parted(data.draw, stream, whole, tail)
    found = []
    for n, text in enumerate(texts):
        subject.register(f"part{n}", text, data.draw(st.sampled_from(OPTIONS)))
        found.append(subject.answer(f"part{n}").rows)
    return found


def sources(data: st.DataObject, stream: Stream) -> str:
    """The stream under a window or in windows."""
    selects = Selects(data.draw, stream)
    return data.draw(st.sampled_from([f'"s" {selects.brackets()}', selects.table_function().text]))


def nothing(draw: st.DrawFn, stream: Stream) -> str:
    return f'SELECT 1 AS o FROM "{stream.name}" [NOW]'


STEPS = journeys(nothing, legs=3)


@given(steps=STEPS, data=st.data())
def test_rows(steps: list[Step], data: st.DataObject) -> None:
    whole, *parts = answers(data, steps, f"SELECT * FROM {sources(data, steps[0].body.stream)}")
    together = Counter(row for part in parts for row in exact_rows(part))
    assert together == Counter(exact_rows(whole))


@given(steps=STEPS, data=st.data())
def test_distinct_rows(steps: list[Step], data: st.DataObject) -> None:
    """Zeros of either sign are one value, of which the first stands."""
    whole, *parts = answers(data, steps, f"SELECT DISTINCT * FROM {sources(data, steps[0].body.stream)}")
    together = {row for part in parts for row in exact_rows(unsigned(part))}
    assert together == set(exact_rows(unsigned(whole)))


def unsigned(rows: list[Row]) -> list[Row]:
    return [tuple(value + 0.0 if isinstance(value, float) else value for value in row) for row in rows]


@given(steps=STEPS, data=st.data())
def test_totals_add_up(steps: list[Step], data: st.DataObject) -> None:
    stream = steps[0].body.stream
    column = f'"{data.draw(st.sampled_from([f.name for f in stream.schema]))}"'
    text = f"SELECT COUNT(*) AS n, COUNT({column}) AS m, MIN({column}) AS a, MAX({column}) AS z FROM "
    (whole,), *parts = answers(data, steps, text + sources(data, stream))
    sums = [sum(part[0][place] for part in parts) for place in (0, 1)]
    assert list(whole[:2]) == sums
    for place, best in ((2, min), (3, max)):
        candidates = [part[0][place] for part in parts if part[0][place] is not None]
        key = lambda value: (value != value, value) if value == value else (True, 0)  # noqa: E731
        expected = best(candidates, key=key) if candidates else None
        assert exact(unsigned([(whole[place],)])[0][0]) == exact(unsigned([(expected,)])[0][0])


@given(steps=STEPS, data=st.data())
def test_groups_add_up(steps: list[Step], data: st.DataObject) -> None:
    stream = steps[0].body.stream
    key = f'"{data.draw(st.sampled_from([f.name for f in stream.schema]))}"'
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM {sources(data, stream)}"
    whole, *parts = answers(data, steps, text, f"GROUP BY {key}")
    together: Counter[Any] = Counter()
    for part in parts:
        for k, n in unsigned(part):
            together[exact(k)] += n
    assert together == {exact(k): n for k, n in unsigned(whole)}
