"""Rows that waited and rows that arrive enter in order, each once, with the values they came with."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.stems.entering import EnteringRows
from engine.stems.pending import PendingRows
from engine.stems.segment import Tail
from engine.stems.stream_strings import StreamStrings
from engine.store.matches.chunks import CHUNKS
from engine.store.matches.cohorts import Cohorts
from engine.store.matches.row_slots import NO_PAIRS
from tests.operators.relations import column
from tests.operators.stored import SCHEMA, TYPES
from tests.strategies import values

YEAR_MS = 365 * 86_400_000

Row = tuple[int, int, int, tuple[Any, ...]]
"""timestamp, partition, offset, values."""

instants = st.one_of(st.integers(0, 9), st.sampled_from([-YEAR_MS, YEAR_MS]))
cells = st.tuples(*(st.one_of(st.none(), values(type_)) for type_ in TYPES))
steps = st.lists(
    st.tuples(st.lists(st.tuples(instants, st.integers(0, 2), cells), max_size=8), st.integers(-1, 12)),
    min_size=1,
    max_size=5,
)


def batch(rows: list[Row]) -> Batch:
    columns = [column(type_, [row[3][place] for row in rows]) for place, type_ in enumerate(TYPES)]
    stamps = np.array([row[0] for row in rows], np.int64)
    return Batch(
        SCHEMA,
        (*columns, column(SCHEMA.fields[-1].type, stamps.tolist())),
        np.array([row[1] for row in rows], np.int32),
        np.array([row[2] for row in rows], np.int64),
        stamps,
    )


def told(rows: Batch) -> list[str]:
    """The rows as text, in which NaN is itself."""
    beside = zip(rows.timestamp.tolist(), rows.partition.tolist(), rows.offset.tolist(), strict=True)
    cells = zip(*(each.to_arrow().to_pylist() for each in rows.columns), strict=True)
    return [repr((*key, *row)) for key, row in zip(beside, cells, strict=True)]


@given(steps, st.data())
def test_rows_enter_in_order_and_are_written_as_they_came(
    drawn: list[tuple[list[tuple[int, int, tuple[Any, ...]]], int]], data: st.DataObject
) -> None:
    pending, waiting = PendingRows(SCHEMA), []
    strings = StreamStrings(SCHEMA)
    tail = Tail(SCHEMA, 0, Cohorts(0, np.zeros(0, np.int32)), CHUNKS, strings.tables)
    expected: list[str] = []
    offset = 0
    now_ms: int | None = None
    for arrived, now in drawn:
        rows = []
        for stamp, partition, cell in arrived:
            rows.append((stamp, partition, offset, cell))
            offset += 1
        now_ms = now if now_ms is None and now >= 0 else None if now_ms is None else max(now_ms, now)
        waiting += rows
        entering = pending.pass_through(strings.coded(batch(rows)), now_ms)
        reached = sorted(
            (row for row in waiting if now_ms is not None and row[0] <= now_ms), key=lambda row: row[:3]
        )
        waiting = [row for row in waiting if now_ms is None or row[0] > now_ms]
        assert len(entering) == len(reached)
        if reached:
            assert told(entering.batch()) == told(batch(reached))
            expected += told(batch(reached))
        written: list[str] = []
        start = 0
        while start < len(entering):
            stop = data.draw(st.integers(start + 1, len(entering)))
            part = tail.write(entering, start, stop)
            written += told(part)
            tail.take(len(part), NO_PAIRS)
            start = stop
        assert written == (told(batch(reached)) if reached else [])
        pending._check()
        assert len(pending) == len(waiting)
    assert told(tail.part().batch(SCHEMA)) == expected
    if tail.count:
        sealed = tail.seal()
        assert told(sealed.batch(SCHEMA)) == expected
        assert sealed.columns[-1].values is sealed.timestamp  # it tells the same


def test_one_batch_enters_as_it_is() -> None:
    rows = batch([(5, 0, 0, (None,) * len(TYPES)), (6, 0, 1, (None,) * len(TYPES))])
    assert EnteringRows.of(rows).batch() is rows
