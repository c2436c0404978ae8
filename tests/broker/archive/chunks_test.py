"""Pieces of history have whole instants, and together they are all rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker.archive.chunks import Backward
from engine.model.batch import Batch
from engine.model.source import Field, Schema
from engine.model.types import BIGINT
from tests.strategies import batch_of

SCHEMA = Schema((Field("id", BIGINT),))


@given(
    st.lists(st.integers(10, 20), max_size=40).map(sorted),
    st.integers(1, 12),
    st.lists(st.integers(1, 12), min_size=1),
    st.data(),
)
def test_pieces_have_whole_instants_and_are_all_rows(
    stamps: list[int], batch_rows: int, asked: list[int], data: st.DataObject
) -> None:
    whole = batch_of(SCHEMA, [(0, i, at_ms, (i,)) for i, at_ms in enumerate(stamps)])
    wanted = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(stamps), max_size=len(stamps))), np.bool_
    )
    ends = list(range(len(stamps), 0, -batch_rows))
    batches = (whole.slice(max(0, end - batch_rows), end) for end in ends)
    backward = Backward(SCHEMA, batches, 5, 25, lambda batch: wanted[batch.offset])
    found: list[Batch] = []
    until_ms, place = 25, 0
    while (piece := backward.next(asked[place % len(asked)])) is not None:
        rows, at_ms = piece.rows, piece.rows.timestamp
        assert piece.until_ms == until_ms > piece.from_ms
        assert all(piece.from_ms <= one < piece.until_ms for one in at_ms)
        assert len(rows) <= asked[place % len(asked)] or len(set(at_ms)) == 1
        until_ms, place = piece.from_ms, place + 1
        found.insert(0, rows)
    assert until_ms == 5
    expected = [int(i) for i in np.flatnonzero(wanted)]
    assert [int(offset) for rows in found for offset in rows.offset] == expected
