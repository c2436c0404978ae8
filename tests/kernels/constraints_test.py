"""The pass over entering rows agrees with its rules told row by row over lists and dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels.constraints import (
    AGAIN,
    CLUSTERED,
    FRESH,
    KEPT,
    KNOWN,
    NO_ID,
    NOTHING,
    ORDERED,
    UNIQUE,
    Promised,
    State,
    enforce,
)

VALUES = 5
RETAIN_MS = 12

ROWS = st.lists(
    st.tuples(st.integers(0, 5), *[st.one_of(st.none(), st.integers(0, VALUES - 1)) for _ in range(3)]),
    max_size=50,
)
KINDS = st.lists(st.sampled_from([ORDERED, CLUSTERED, UNIQUE]), min_size=3, max_size=3)
K = st.lists(st.integers(0, 4), min_size=3, max_size=3)

Row = tuple[int, list[int | None]]
"""The instant and the value for each constraint."""


class Twin:
    """Rows that entered, and what each breaks."""

    def __init__(self, kinds: list[int], k: list[int]) -> None:
        self.kinds, self.k = kinds, k
        self.entered: list[Row] = []
        self.came: list[list[int]] = []

    def put(self, row: Row) -> int:
        """The constraint that it breaks."""
        for c in range(3):
            if self._breaks(c, row):
                self.came.append([KNOWN] * 3)
                return c
        self.came.append([self._came(c, row[1][c]) for c in range(3)])
        self.entered.append(row)
        return KEPT

    def _breaks(self, c: int, row: Row) -> bool:
        at_ms, value = row[0], row[1][c]
        if value is None:
            return False
        if self.kinds[c] == ORDERED:
            passed = self.entered[: max(0, len(self.entered) - self.k[c])]
            return any(other[1][c] is not None and other[1][c] > value for other in passed)
        same = [other[0] for other in self.entered if other[1][c] == value]
        if self.kinds[c] == CLUSTERED and (c, value) not in self.over():
            return False
        return bool(same) and same[-1] >= at_ms - RETAIN_MS

    def _came(self, c: int, value: int | None) -> int:
        """How a value of a row comes that enters."""
        if value is None or self.kinds[c] == ORDERED:
            return KNOWN
        if all(other[1][c] != value for other in self.entered):
            return FRESH
        return AGAIN if self.kinds[c] == UNIQUE or (c, value) in self.over() else KNOWN

    def over(self) -> set[tuple[int, int]]:
        """Clustered values that are over, with the place of their constraint."""
        return {
            (c, value)
            for c in range(3)
            for value in range(VALUES)
            if self.kinds[c] == CLUSTERED and self._others(c, value) > self.k[c]
        }

    def _others(self, c: int, value: int) -> int:
        """Rows with other values since the first of this one; its first anew where it was over before."""
        others = -1
        for _, values in self.entered:
            if values[c] == value:
                others = 0 if others < 0 or others > self.k[c] else others
            elif others >= 0:
                others += 1
        return others


@given(ROWS, KINDS, K, st.lists(st.integers(1, 9), min_size=1))
def test_rows_break_what_the_rules_say_whatever_the_cuts(
    drawn: list[tuple[int, int | None, int | None, int | None]],
    kinds: list[int],
    k: list[int],
    cuts: list[int],
) -> None:
    at_ms, rows = 0, list[Row]()
    for passed_ms, *values in drawn:
        at_ms += passed_ms
        rows.append((at_ms, values))
    twin = Twin(kinds, k)
    expected = [twin.put(row) for row in rows]

    rings = np.cumsum([0, *(k[c] if kinds[c] == ORDERED else k[c] + 2 for c in range(3))])
    rules = Promised(np.array(kinds, np.int8), np.array(k, np.int64), rings[:3], RETAIN_MS)
    ids = 3 * VALUES
    zeros = [np.zeros(ids, np.int64) for _ in range(5)]
    room = int(rings[3])
    state = State(
        np.full(3, NOTHING), np.full(room, NOTHING), np.full(room, NO_ID), *zeros, np.zeros(ids, np.bool_)
    )
    count = start = 0
    found: list[int] = []
    said: list[list[int]] = []
    while start < len(rows):
        part = rows[start : start + cuts[len(found) % len(cuts)]]
        values = np.array([[_value(kinds[c], c, row[1][c]) for row in part] for c in range(3)], np.int64)
        broken = np.empty(len(part), np.int8)
        stamps = np.array([row[0] for row in part], np.int64)
        came = np.empty(values.shape, np.int8)
        count = enforce(values, stamps, count, rules, state, broken, came)
        found += broken.tolist()
        said += came.T.tolist()
        start += len(part)
    assert found == expected
    assert said == twin.came
    over = np.flatnonzero(state.over).tolist()
    assert {divmod(one, VALUES) for one in over} == twin.over()
    assert count == len(twin.entered)


def _value(kind: int, c: int, value: int | None) -> int:
    if value is None:
        return NOTHING if kind == ORDERED else NO_ID
    return value if kind == ORDERED else c * VALUES + value
