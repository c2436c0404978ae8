"""When windows of time hold a row, at their borders of a millisecond, against the bounds at every instant."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.changes.transition import FOREVER, NEVER
from engine.changes.windows import begins_of, ends_of, held, merged, moving, without
from engine.windows.clauses import NOW, UNBOUNDED, Instant, TimeWindow
from tests.time_windows import range_window

MOST = 40
ends_of_windows = st.builds(Instant, relative=st.booleans(), ms=st.integers(-12, 12))
windows = st.builds(
    TimeWindow,
    st.none() | ends_of_windows,
    st.just(NOW) | ends_of_windows,
    st.none() | st.integers(1, 7),
)
spans = st.tuples(st.integers(0, 20), st.integers(0, 20))


def holds(window: TimeWindow, timestamp: int, now_ms: int) -> bool:
    first, last = window.bounds_ms(now_ms)
    return (first is None or first <= timestamp) and timestamp <= last


@given(windows)
def test_a_row_is_held_from_its_begin_until_its_end(window: TimeWindow) -> None:
    timestamps = np.arange(-15, 15)
    begins, ends = begins_of(window, timestamps), ends_of(window, timestamps)
    for timestamp, begin, end in zip(timestamps.tolist(), begins.tolist(), ends.tolist(), strict=True):
        for now_ms in range(-MOST, MOST):
            assert (begin <= now_ms < end) == holds(window, timestamp, now_ms), (timestamp, now_ms)


@given(windows, st.integers(-15, 15), st.integers(1, 20), st.booleans())
def test_rows_that_move_are_within_the_spans(
    window: TimeWindow, since_ms: int, width: int, from_the_beginning: bool
) -> None:
    until_ms = since_ms + width
    found = moving(window, NEVER if from_the_beginning else since_ms, until_ms)
    low, high = held(window, NEVER if from_the_beginning else since_ms, until_ms)
    assert all(first < last for first, last in found)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(found))
    for timestamp in range(-MOST, MOST):
        instants = range(-2 * MOST if from_the_beginning else since_ms, until_ms + 1)
        there = [holds(window, timestamp, now_ms) for now_ms in instants]
        if any(there):
            assert low <= timestamp < high
        if len(set(there)) > 1:
            assert any(first <= timestamp < last for first, last in found), timestamp


def test_borders_of_the_common_windows() -> None:
    at = np.array([1_000])
    assert (begins_of(range_window(10), at), ends_of(range_window(10), at)) == ([1_000], [1_011])
    assert (begins_of(range_window(0), at), ends_of(range_window(0), at)) == ([1_000], [1_001])
    assert (begins_of(UNBOUNDED, at), ends_of(UNBOUNDED, at)) == ([1_000], [FOREVER])


@given(st.lists(spans, max_size=5), spans)
def test_spans_united_and_taken_away(given_spans: list[tuple[int, int]], whole: tuple[int, int]) -> None:
    def instants(of: list[tuple[int, int]]) -> set[int]:
        return {instant for low, high in of for instant in range(low, high)}

    united = merged(given_spans)
    assert instants(united) == instants(given_spans)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(united))
    assert instants(without(whole, united)) == instants([whole]) - instants(given_spans)
