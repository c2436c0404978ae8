"""Duplicate elimination with the whole input at hand, against the values that are there."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import duplicates
from engine.kernels.distinct import EmittedRows
from engine.kernels.duplicates import FOREVER, NEVER, NOBODY, Entries
from tests.changes.ways import seeds

CELLS, ROOM = 3, 40


@given(seeds, st.booleans())
def test_one_row_stands_for_a_value_while_there_is_one(seed: int, exits_known: bool) -> None:
    rng = random.Random(seed)
    lives = [(rng.randrange(CELLS), begin, begin + rng.randint(1, 6)) for begin in _begins(rng)]
    none = np.full(CELLS, NOBODY, np.int32)
    by_entry = np.zeros(ROOM, np.int32)
    rows = Entries(
        none,
        none.copy(),
        none.astype(np.int64),
        by_entry,
        by_entry.copy(),
        by_entry.copy(),
        np.zeros(ROOM, np.int64),
    )
    for entry, (cell, _, end) in enumerate(lives):
        rows.cell[entry] = cell
        rows.valid_to[entry] = end if exits_known else FOREVER
    told: list[tuple[int, int, int]] = []
    since = 0
    for until in [*sorted(rng.sample(range(1, 30), 3)), 40]:
        events = [(begin, -1, entry) for entry, (_, begin, _) in enumerate(lives) if since < begin <= until]
        events += [(end, 0, entry) for entry, (_, _, end) in enumerate(lives) if since < end <= until]
        events.sort()  # those that enter an instant first
        room = len(events)
        made = EmittedRows(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64))
        count, _ = duplicates.take(
            np.array([entry for _, _, entry in events], np.int32),
            np.array([at for at, _, _ in events], np.int64),
            np.array([-enters for _, enters, _ in events], np.int8),
            exits_known,
            rows,
            made,
        )
        for cell, begin, end in zip(*(each[:count].tolist() for each in made), strict=True):
            assert begin < end
            if begin == NEVER:
                place = next(n for n, each in enumerate(told) if each[::2] == (cell, FOREVER))
                told[place] = cell, told[place][1], end
            else:
                told.append((cell, begin, end))
        for cell in range(CELLS):
            for instant in range(since + 1, until + 1):
                given_rows = sum(of == cell and begin <= instant < end for of, begin, end in told)
                there = any(of == cell and begin <= instant < end for of, begin, end in lives)
                assert given_rows == there, (cell, instant)
        assert bool((rows.told == NOBODY).all())
        since = until
    assert bool((rows.first == NOBODY).all())
    assert bool((rows.given == NOBODY).all())


def _begins(rng: random.Random) -> list[int]:
    return [rng.randint(1, 30) for _ in range(rng.randint(0, ROOM))]
