"""The time kernels agree with the rule told row by row over dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.time import NEVER, advance_arrival_time, advance_event_time, in_order

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)), max_size=25)
flags = st.lists(st.booleans(), min_size=3, max_size=3)


@given(rows, flags, st.integers(1, 10), st.integers(30, 60), st.one_of(st.just(NEVER), st.integers(0, 40)))
@settings(max_examples=150)
def test_event_time(arrived, holds, margin, above, now):
    slots = np.array([p for p, _ in arrived], np.int32)
    stamps = np.array([t for _, t in arrived], np.int64)
    for p in set(slots.tolist()):
        holds[p] = True
    latest = np.full(3, NEVER, np.int64)
    fate = np.full(len(arrived), 9, np.uint8)
    after = advance_event_time(slots, stamps, latest, np.array(holds), margin, above, now, fate)

    seen: dict[int, int] = {}
    expected_fate = []
    expected_now = None if now == NEVER else now

    def settle() -> None:
        nonlocal expected_now
        marks = [seen.get(p) for p in range(3) if holds[p]]
        if marks and None not in marks:
            least = min(m for m in marks if m is not None) - margin
            expected_now = least if expected_now is None else max(expected_now, least)

    settle()
    for p, t in arrived:
        if t > above:
            expected_fate.append(2)
            continue
        expected_fate.append(1 if expected_now is not None and t <= expected_now else 0)
        seen[p] = max(t, seen.get(p, t))
        settle()
    assert fate.tolist() == expected_fate
    assert (None if after == NEVER else after) == expected_now
    assert latest.tolist() == [seen.get(p, NEVER) for p in range(3)]


@given(rows, flags, st.integers(20, 70), st.one_of(st.just(NEVER), st.integers(0, 40)))
@settings(max_examples=150)
def test_arrival_time(arrived, lagging, clock, now):
    slots = np.array([p for p, _ in arrived], np.int32)
    stamps = np.array([t for _, t in arrived], np.int64)
    latest = np.full(3, NEVER, np.int64)
    waiting = np.bincount(slots, minlength=3).astype(np.int64)
    out = np.empty(len(arrived), np.int64)
    after = advance_arrival_time(slots, stamps, latest, waiting, np.array(lagging), clock, now, out)

    seen: dict[int, int] = {}
    current = None if now == NEVER else now

    def settle(remaining: list[int]) -> None:
        nonlocal current
        marks = [clock - 1]
        for p in range(3):
            if lagging[p] or p in remaining:
                if p not in seen:
                    return
                marks.append(seen[p] - 1)
        current = min(marks) if current is None else max(current, min(marks))

    settle(slots.tolist())
    expected = []
    for i, (p, t) in enumerate(arrived):
        instant = t if current is None else max(t, current + 1)
        expected.append(instant)
        seen[p] = max(instant, seen.get(p, instant))
        settle(slots[i + 1 :].tolist())
    assert out.tolist() == expected
    assert (None if after == NEVER else after) == current


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=8))
@settings(max_examples=100)
def test_in_order(keys):
    stamps, partitions, offsets = (np.array([k[i] for k in keys], np.int64) for i in range(3))
    assert in_order(stamps, partitions.astype(np.int32), offsets) == (keys == sorted(keys))
