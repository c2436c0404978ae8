"""Joins with the versions of a table as of the instant of each row, against a plain search."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.join.stage import Join, Latest
from engine.algebra.project.stage import Output, Project
from engine.language.query import Query, Scan
from engine.model import expressions as ex
from engine.model.batch import versions
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, BOOLEAN, TIMESTAMP
from engine.operators.pipeline import evaluate
from engine.operators.scan import ScanAt
from engine.operators.table_scan import scan_now
from engine.stems.query_stem import QueryStem
from engine.stems.table_stem import TableStem
from engine.windows.clauses import UNBOUNDED
from tests.operators.stored import NAME, parts, scan_at
from tests.strategies import batch_of

FIELDS = (Field("k", BIGINT, nullable=False), Field("price", BIGINT), Field("at", TIMESTAMP, nullable=False))
TABLE = Stream(SourceName("t"), Schema(FIELDS), "t", "at", key=("k",), retroactive=False)

Version = tuple[int, int, int | None]
"""Instant, key, and price; None where the row is taken away."""


def column(place: int, type_: Any) -> ex.Column:
    return ex.Column(place, f"c{place}", type_)


def table_at(rows: list[Version], retained_ms: int) -> ScanAt:
    """The table at its last version's instant; nothing was let go of yet."""
    stem = TableStem(TABLE, QueryStem(TABLE.stored_schema))
    plain = [(0, place, at, (key, price, at)) for place, (at, key, price) in enumerate(rows)]
    deleted = np.array([price is None for _, _, price in rows], np.bool_)
    stem.append(versions(TABLE, batch_of(TABLE.schema, plain), deleted))
    return scan_now(stem.rows(), rows[-1][0] if rows else None, retained_ms)


def priced(kind: Any) -> Query:
    """Rows of the stream, its BIGINT the key, with the price of their instant."""
    types = (BIGINT, BIGINT, TIMESTAMP, BOOLEAN)
    given_columns = tuple(Output(f"t{place}", column(place, type_)) for place, type_ in enumerate(types))
    history = Query("", Scan(TABLE.name, UNBOUNDED, history=True), (Project(given_columns),))
    stage = Join(
        history,
        kind,
        ((column(1, BIGINT), column(0, BIGINT)),),
        ex.Not(column(9, BOOLEAN)),
        Latest(column(5, TIMESTAMP), column(2, TIMESTAMP)),
    )
    outputs = [Output("k", column(1, BIGINT)), Output("ts", column(5, TIMESTAMP))]
    if kind != "anti":
        outputs.append(Output("price", column(7, BIGINT)))
    return Query("", Scan(NAME, UNBOUNDED), (stage, Project(tuple(outputs))))


instants = st.integers(0, 12)


@given(
    st.lists(st.tuples(instants, st.integers(0, 2), st.none() | st.integers(1, 99)), max_size=12).map(
        lambda rows: sorted(rows, key=lambda row: row[0])
    ),
    st.lists(st.tuples(instants, st.integers(0, 2)), max_size=8).map(sorted),
    st.sampled_from(["inner", "left", "anti"]),
    instants,
)
def test_each_row_meets_the_version_of_its_instant(table, stream, kind, retained_ms):
    rows = [(None, key, None, None, None) for _, key in stream]
    stored, slots = parts(rows, [at for at, _ in stream], [3])
    at = {NAME: scan_at(stored, slots), TABLE.name: table_at(table, retained_ms)}
    result = evaluate(priced(kind), at, 1_000)
    expected = []
    superseded = [
        later
        for place, (_, key, _) in enumerate(table)
        for later, other, _ in table[place + 1 :]
        if other == key
    ] + [instant for instant, _, price in table if price is None]
    gone = bool(superseded) and min(superseded) <= retained_ms
    for instant, key in stream:
        known = [price for since, other, price in table if other == key and since <= instant]
        price = known[-1] if known else None
        if (price is None) if kind == "anti" else (price is not None or kind == "left"):
            expected.append((key, instant) if kind == "anti" else (key, instant, price))
    whole = not gone or all(instant >= retained_ms for instant, _ in stream)
    assert result.complete_from_ms == (None if whole else retained_ms)
    if whole:
        columns = [each.cast("int64").to_pylist() for each in result.table.columns]
        assert list(zip(*columns, strict=True)) == expected
