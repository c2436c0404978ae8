"""Arrays that grow: what is in them stays, and the next one is ready before it is needed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.model.growing import Growing


@given(st.integers(1, 8), st.lists(st.integers(0, 20), max_size=12), st.integers(8, 200))
def test_what_is_added_stays(room: int, pieces: list[int], most: int) -> None:
    growing = Growing(np.empty(room, np.int64), appended=True, most=most)
    seen = []
    used = 0
    for piece in pieces:
        if used + piece > most:
            break
        if used + piece > len(growing.array):
            growing.grow(used, used + piece)
        assert used + piece <= len(growing.array) <= most
        growing.array[used : used + piece] = np.arange(used, used + piece)
        used += piece
        growing.prepare(used, piece)
        seen.append((growing.array, used))
    for array, count in seen:
        assert array[:count].tolist() == list(range(count))


@given(st.integers(1, 40), st.integers(1, 5))
def test_the_next_array_begins_empty(room: int, piece: int) -> None:
    growing = Growing(np.ones((room, 2), np.int32), appended=False)
    for used in range(piece, room + 1, piece):
        growing.prepare(used, piece)
    before = growing.grow(room)
    assert before.all()
    assert growing.array.shape == (2 * room, 2)
    assert not growing.array.any()


def test_growing_finds_its_work_done() -> None:
    for appended in (True, False):
        growing = Growing(np.zeros(1_000, np.int8), appended=appended)
        for used in range(10, 1_001, 10):
            growing.prepare(used, 10)
        assert growing.ahead_bytes == (1_000 if appended else 2_000)
