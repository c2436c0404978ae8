"""The engine against DuckDB: whole SELECTs over the rows that a window holds.

The rows are those that ``SELECT *`` with the same window gives; DuckDB then runs the same SELECT over them as
over a table. Answers are compared as bags, doubles with a tolerance, since DuckDB adds them in another order;
what an ORDER BY sorts by first is compared in order.

Where the dialects differ, and what is done about it:

*   ``/`` of integers is ``//`` in DuckDB, REGEXP_LIKE has another name.
*   DuckDB has no errors as values: texts seldom err, and examples where one does are passed over.
*   VARIANCE and STDDEV of infinities and NaN are errors in DuckDB and NaN here; passed over as well.
*   FIRST, LAST, ARRAY_AGG and ROW_NUMBER depend on the order of rows, and so does which rows LIMIT keeps;
    DuckDB promises none. The reference holds the engine to those.
*   Zeros of either sign are one value here and there, but which of the two stands for it is open there.
"""

from __future__ import annotations

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


@given(steps=journeys(nothing, legs=3, favourites=tame_nullable), data=st.data())
def test_selects(database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject) -> None:
    subject = EngineSubject()
    for step in steps:
        subject.apply(step)
    stream = subject.engine.catalogue["s"]
    assert isinstance(stream, Stream)
    selects = TwinSelects(data.draw, stream)
    text = selects.select(1)
    subject.register("held", selects.ours(f"SELECT * FROM {ROWS} {ENDS}"), {})
    subject.register("asked", selects.ours(text), data.draw(st.sampled_from(OPTIONS)))
    held = subject.engine.view().snapshot("held").table
    answer = subject.answer("asked")
    if answer.errors:
        return
    database.register("held", held)
    try:
        theirs: pa.Table = database.sql(selects.theirs(text)).to_arrow_table()
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
