"""Changes against DuckDB: an answer, and what is told to have changed in it, are the answer later on.

Both answers are DuckDB's, of the same SELECT over the rows that the window holds, as in
:mod:`tests.differential.duckdb_selects_test`, where what the two understand differently is told.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.source import Stream
from engine.model.step import Step
from tests.differential.agreement import EngineSubject, numbered, plain_rows
from tests.differential.duckdb_selects import ENDS, ROWS, Row, TwinSelects, assert_same_bag, nothing, numbers
from tests.strategies import OPTIONS, journeys, tame_nullable

FEW = settings(max_examples=max(10, settings.default.max_examples // 2))
LOOKS = 3


def answers(
    database: duckdb.DuckDBPyConnection, subject: EngineSubject, theirs: str, steps: list[Step]
) -> Iterator[tuple[list[Row], list[tuple[int, Row]]]]:
    """DuckDB's answer at some steps, with the changes told since the last one; up to the first where it has
    none.
    """
    changes: list[tuple[int, Row]] = []
    places = {len(steps) * look // LOOKS for look in range(1, LOOKS)} | {0, len(steps) - 1}
    for place, step in enumerate(steps):
        for told in subject.apply(step).changes:
            changes += zip(told.weights.tolist(), plain_rows(told.table), strict=True)
        if place not in places:
            continue
        answer = subject.answer("asked")
        if answer.errors or not answer.complete:
            return
        database.register("held", subject.engine.view().snapshot("held").table)
        try:
            yield plain_rows(database.sql(theirs).to_arrow_table()), changes
        except duckdb.OutOfRangeException:
            return
        finally:
            database.unregister("held")
        changes = []


def folded(rows: list[Row], changes: list[tuple[int, Row]]) -> list[Row]:
    """Doubles that went are taken for the nearest of those that were there: they were added up otherwise."""
    rows = list(rows)
    for weight, row in changes:
        if weight > 0:
            rows.append(row)
        else:
            rows.remove(min(rows, key=lambda other: distance(other, row)))
    return rows


def distance(one: Row, other: Row) -> tuple[int, float]:
    """How many values are others, and how far numbers lie apart that are nearly the same."""
    unlike, apart = 0, 0.0
    for a, b in zip(numbers(one), numbers(other), strict=True):
        if a == b or (a != a and b != b):
            continue
        if isinstance(a, float) and isinstance(b, float) and abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b)):
            apart += abs(a - b)
        else:
            unlike += 1
    return unlike, apart


@FEW
@given(steps=journeys(nothing, legs=2, favourites=tame_nullable, changes=False), data=st.data())
def test_what_changed_leads_from_one_answer_to_the_next(
    database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject
) -> None:
    subject = EngineSubject()
    subject.apply(steps[0])
    stream = subject.engine.catalogue["s"]
    assert isinstance(stream, Stream)
    selects = TwinSelects(data.draw, stream)
    text = selects.select(1)
    subject.register("held", selects.ours(f"SELECT * FROM {ROWS} {ENDS}"), {})
    subject.register("asked", selects.ours(text), data.draw(st.sampled_from(OPTIONS)))
    subject.engine.follow("asked")
    after = subject.engine.position.sequence
    before: list[Row] | None = None
    found = answers(database, subject, selects.theirs(text), numbered(steps[1:], after=after))
    for rows, changes in found:
        if before is not None:
            assert_same_bag(folded(before, changes), rows, text)
        before = rows
