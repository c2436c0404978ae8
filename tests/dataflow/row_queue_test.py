"""Rows in the order of time keep their ordinals, however far these go, and keys while they are there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dataflow.arrangements import row_queue
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.row_queue import RowQueue
from engine.model.batch import Column
from engine.model.capacities import SMALLEST, USUAL
from engine.model.types import BIGINT
from tests.strategies import examples

steps = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5), st.integers(0, 4)), max_size=12)


@given(
    steps, st.sampled_from([0, 2**31 - 3, 2**40]), st.sampled_from([USUAL, SMALLEST]), st.sampled_from([1, 9])
)
@settings(max_examples=examples(40))
def test_rows_come_and_go(steps, first, capacities, offsets_max):
    """offsets_max: 1 is as good as ordinals that come to be very large."""
    usual = row_queue.OFFSETS_MAX
    row_queue.OFFSETS_MAX = usual if offsets_max > 1 else 1
    try:
        _come_and_go(steps, first, capacities)
    finally:
        row_queue.OFFSETS_MAX = usual


def _come_and_go(steps, first, capacities):
    keys = Keys([BIGINT], capacities, nullable=False)
    rows = RowQueue(keys, capacities)
    held, ordinal = list[tuple[int, int]](), first
    for count, apart, going in steps:
        coming = ordinal + apart * np.arange(count)
        ordinal += apart * count
        values = coming % 3
        rows._enter(coming, 2 * coming, [Column(BIGINT, values)])
        held += zip(coming.tolist(), values.tolist(), strict=True)
        gone = min(going, len(held))
        until = held[gone][0] if gone < len(held) else ordinal
        assert rows._below(until) == rows.low + gone
        rows._leave(rows.low + gone)
        held = held[gone:]
        keys._check()
        assert len(keys) == len({value for _, value in held})
        assert rows.ordinals(slice(rows.low, rows.high)).tolist() == [one for one, _ in held]
        kept = keys.columns(rows._key[rows.low : rows.high])
        assert [column.values.tolist() for column in kept] == [[value for _, value in held]]


def test_keys_that_are_never_null_take_a_word_less():
    columns = [Column(BIGINT, np.arange(5_000) % 1_700), Column(BIGINT, np.arange(5_000) % 7)]
    plain, nullable = Keys([BIGINT, BIGINT], nullable=False), Keys([BIGINT, BIGINT])
    for keys in (plain, nullable):
        ids = keys.number(columns, 5_000)
        keys.take(ids)
        assert len(keys) == len({*zip(*(column.values.tolist() for column in columns), strict=True)})
        found = keys.columns(ids)
        assert [column.values.tolist() for column in found] == [each.values.tolist() for each in columns]
        assert all(column.valid is None for column in found)
        assert keys.find(columns, 5_000).tolist() == ids.tolist()
        keys._check()
    assert nullable.nbytes - plain.nbytes == 8 * plain.capacity
    with pytest.raises(AssertionError):
        plain.number([Column(BIGINT, np.arange(2), np.array([True, False])), columns[1].slice(0, 2)], 2)
