"""Pairs under windows of many sizes agree with plain twins, with and without room for all at once."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.dataflow.arrangements.column_sets import runs_of
from engine.kernels import window_pairs as kernels
from engine.kernels.window_pairs import (
    NOBODY,
    BothStreams,
    HeldFor,
    PairsOut,
    RowsStored,
    WindowExits,
    WordRuns,
)

COLUMNS, KEYS = 70, 3
FOREVER = int(np.iinfo(np.int64).max)
seeds = st.integers(0, 2**32 - 1)

Pair = tuple[int, int, int, int, tuple[int, ...]]


class Rows:
    """Rows of one input and the sets of columns that accept them; those below ``low`` were let go of."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.at = np.sort(rng.integers(0, 20, n)) * 2
        self.key = rng.integers(0, KEYS, n).astype(np.int32)
        self.low = int(rng.integers(0, n + 1)) if rng.random() < 0.5 else 0
        self.sets = [sorted(rng.permutation(COLUMNS)[: rng.integers(0, COLUMNS)].tolist()) for _ in range(4)]
        self.accepted = rng.integers(0, 4, n).astype(np.int32)
        whose = np.repeat(np.arange(4), [len(each) for each in self.sets])
        self.runs = runs_of(whose, np.concatenate([*self.sets, []]).astype(np.int32), 4)
        nothing = np.full(n, -7, np.int32), np.full(KEYS, NOBODY, np.int32)
        self.stored = RowsStored(self.at, self.key, nothing[0], self.accepted, nothing[1])
        kernels.link(0, n, self.stored)

    def columns(self, place: int) -> set[int]:
        return set(self.sets[self.accepted[place]])


def room_for(pairs: int) -> PairsOut:
    numbers, instants = np.full((2, pairs), -1, np.int32), np.full((3, pairs), -1, np.int64)
    return PairsOut(*numbers, *instants, np.full(64 * 2 * pairs, -1, np.int32))


def told(out: PairsOut, count: int) -> list[Pair]:
    starts = [0, *out.ends[:count].tolist()]
    return [
        (
            *(int(each[i]) for each in (out.near, out.far, out.valid_from, out.valid_to)),
            tuple(out.owners[starts[i] : starts[i + 1]].tolist()),
        )
        for i in range(count)
    ]


def test_sets_are_runs_of_words() -> None:
    runs = runs_of(np.array([2, 0, 2, 2]), np.array([65, 3, 1, 64], np.int32), 3)
    assert runs.starts.tolist() == [0, 1, 1]
    assert runs.ends.tolist() == [1, 1, 3]
    assert runs.words.tolist() == [0, 0, 1]
    assert runs.bits.tolist() == [1 << 3, 1 << 1, 0b11]


@given(seeds, st.integers(0, 12), st.integers(0, 12), st.integers(1, 9))
def test_pairs_that_stay_are_those_that_both_windows_hold(seed: int, n: int, m: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    near, far = Rows(rng, n), Rows(rng, m)
    held = HeldFor(*rng.integers(1, 30, (2, COLUMNS)))
    most = HeldFor(*(each.max(keepdims=True) for each in held))
    begin, far_high, until = int(rng.integers(near.low, n + 1)), int(rng.integers(far.low, m + 1)), 41
    expected = Counter[Pair]()
    for row in range(begin, n):
        for other in range(far.low, far_high):
            columns = [
                column
                for column in sorted(near.columns(row) & far.columns(other))
                if near.at[row] + held.near[column] > until and far.at[other] + held.far[column] > until
            ]
            if near.key[row] == far.key[other] and columns:
                entered = max(near.at[row], far.at[other])
                expected[row, other, int(entered), FOREVER, tuple(columns)] += 1

    both = BothStreams(near.stored, far.stored, far.low, far_high, near.runs, far.runs)
    found, place = Counter[Pair](), begin
    while True:
        out = room_for(room)
        stopped, count = kernels.staying(place, n, both, held, most, until, out)
        found.update(told(out, count))
        if stopped == n:
            break
        room, place = room * 2 if stopped == place else room, stopped

    assert found == expected


@given(seeds, st.integers(0, 12), st.integers(0, 12), st.integers(1, 9), st.booleans())
def test_pairs_end_when_the_first_of_both_leaves(seed: int, n: int, m: int, room: int, last: bool) -> None:
    rng = np.random.default_rng(seed)
    near, far = Rows(rng, n), Rows(rng, m)
    sizes = int(rng.integers(1, 4))
    held, of_size = HeldFor(*rng.integers(1, 30, (2, sizes))), rng.integers(0, sizes, COLUMNS)
    columns: WordRuns = runs_of(of_size, np.arange(COLUMNS, dtype=np.int32), sizes)
    bounds = np.sort(rng.integers(near.low, n + 1, (2, sizes)), axis=0)
    tasks = WindowExits(np.arange(sizes, dtype=np.int32), bounds[0].copy(), bounds[1].copy())
    expected = Counter[Pair]()
    for size in range(sizes):
        for row in range(*bounds[:, size]):
            end = int(near.at[row] + held.near[size])
            for other in range(far.low, m):
                leaves = int(far.at[other] + held.far[size])
                owners = sorted(near.columns(row) & far.columns(other) & set(np.flatnonzero(of_size == size)))
                ends = far.at[other] < end and (leaves > end or (last and leaves == end))
                if near.key[row] == far.key[other] and owners and ends:
                    entered = int(max(near.at[row], far.at[other]))
                    expected[row, other, entered, end, tuple(int(each) for each in owners)] += 1

    both = BothStreams(near.stored, far.stored, far.low, m, near.runs, far.runs)
    found, cursor = Counter[Pair](), (0, 0)
    while True:
        out = room_for(room)
        *stopped, count = kernels.leaving(*cursor, tasks, both, columns, held, last, out)
        found.update(told(out, count))
        if stopped[0] == sizes:
            break
        room, cursor = room * 2 if tuple(stopped) == cursor else room, (stopped[0], stopped[1])

    assert found == expected
