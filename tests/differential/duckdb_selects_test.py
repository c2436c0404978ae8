"""The engine against DuckDB: whole SELECTs over the rows that a window holds.

The rows are those that ``SELECT *`` with the same window gives; DuckDB then runs the same SELECT over them as
over a table. Answers are compared as bags, doubles with a tolerance, since DuckDB adds them in another order;
what an ORDER BY sorts by first is compared in order.

Where the dialects differ, and what is done about it:

*   ``/`` of integers is ``//`` in DuckDB, REGEXP_LIKE has another name.
*   DuckDB has no errors as values: texts seldom err, and examples where one does are passed over.
*   VARIANCE and STDDEV of infinities and NaN are errors in DuckDB and NaN here; passed over as well.
*   FETCH FIRST n ROWS WITH TIES is a condition on RANK there.
*   FIRST, LAST, ARRAY_AGG and ROW_NUMBER depend on the order of rows, and so does which rows LIMIT keeps;
    DuckDB promises none. The reference holds the engine to those.
*   Zeros of either sign are one value here and there, but which of the two stands for it is open there.
"""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.model.source import Stream
from engine.model.step import Step
from tests.differential.agreement import EngineSubject, plain_rows
from tests.differential.duckdb_selects import (
    ENDS,
    FIRST_PLACE,
    ROWS,
    TwinSelects,
    assert_same_bag,
    close,
    nothing,
)
from tests.strategies import OPTIONS, journeys, tame_nullable

BY_PLACES = re.compile(r" ORDER BY (\d[^()]*)$")


@given(steps=journeys(nothing, legs=3, favourites=tame_nullable), data=st.data())
def test_selects(database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject) -> None:
    check(database, steps, data)


@given(steps=journeys(nothing, legs=3, favourites=tame_nullable), data=st.data())
def test_first_rows_with_ties(
    database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject
) -> None:
    check(database, steps, data, first=data.draw(st.sampled_from([0, 1, 2, 5])))


def ranked(text: str, first: int) -> tuple[str, str]:
    """A SELECT with the rows of the first places alone, ours and theirs, where ``#n`` is the n-th column."""
    order = BY_PLACES.search(text)
    plain, keys = (text, "1") if order is None else (text[: order.start()], order[1])
    places = re.sub(r"(\d+)", r"#\1", keys)
    rank = f"SELECT *, RANK() OVER (ORDER BY {places}) AS place FROM ({plain})"
    theirs = f"SELECT * EXCLUDE (place) FROM ({rank}) WHERE place <= {first} ORDER BY {places}"
    return f"{plain} ORDER BY {keys} FETCH FIRST {first} ROWS WITH TIES", theirs


def check(
    database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject, first: int | None = None
) -> None:
    """Ask both. first: only for so many rows, with ties."""
    subject = EngineSubject()
    for step in steps:
        subject.apply(step)
    stream = subject.engine.catalogue["s"]
    assert isinstance(stream, Stream)
    selects = TwinSelects(data.draw, stream)
    text = selects.select(1)
    if first is not None and "ORDER BY COUNT" in text:
        return
    text, in_theirs = (text, text) if first is None else ranked(text, first)
    subject.register("held", selects.ours(f"SELECT * FROM {ROWS} {ENDS}"), {})
    subject.register("asked", selects.ours(text), data.draw(st.sampled_from(OPTIONS)))
    held = subject.engine.view().snapshot("held").table
    answer = subject.answer("asked")
    if answer.errors:
        return
    database.register("held", held)
    try:
        theirs: pa.Table = database.sql(selects.theirs(in_theirs)).to_arrow_table()
    except duckdb.OutOfRangeException:
        return
    finally:
        database.unregister("held")
    expected = plain_rows(theirs)
    assert_same_bag(answer.rows, expected, text)
    order = FIRST_PLACE.search(text)
    if order is not None:
        place = int(order[1]) - 1
        assert all(close(a[place], b[place]) for a, b in zip(answer.rows, expected, strict=True)), text
