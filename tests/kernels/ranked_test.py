"""Rows in order against plain lists that are sorted anew after each event."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import ranked
from engine.kernels.ranked import FOREVER, RankBounds, RankEvents, RankVersions, Runs

RUNS = 3
ALL = 1 << 62


def state_of(words: np.ndarray, room: int, entries: int) -> Runs:
    slots = len(words)
    return Runs(
        words=words,
        gone=np.zeros(slots, np.bool_),
        held=np.zeros(slots, np.int32),
        starts=np.arange(RUNS, dtype=np.int64) * room,
        counts=np.zeros(RUNS, np.int32),
        roots=np.full(RUNS, -1, np.int32),
        firsts=np.zeros(RUNS * room, np.int32),
        told=np.zeros(RUNS * room, np.int64),
        slots=np.full(entries, -1, np.int32),
        runs=np.zeros(entries, np.int32),
        child=np.zeros(entries, np.int32),
        sibling=np.zeros(entries, np.int32),
        used=np.zeros(1, np.int64),
    )


def told_at(
    rows: dict[int, list[int]], words: np.ndarray, bounds: RankBounds
) -> Counter[tuple[int, int, int]]:
    """(slot, run, number) of all that is to be told."""
    found = Counter[tuple[int, int, int]]()
    for run, slots in rows.items():
        slots = sorted(slots, key=lambda slot: words[slot].tolist())
        for place, slot in enumerate(slots[bounds.offset : bounds.most], bounds.offset + 1):
            found[slot, run, place if bounds.numbered else 0] += 1
    return found


@pytest.mark.parametrize("numbered", [False, True])
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6) | st.just(ALL),
    st.integers(0, 3),
    st.integers(1, 5),
    st.integers(0, 60),
)
def test_what_is_told_at_every_instant(
    numbered: bool, seed: int, most: int, offset: int, spare: int, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    offset = 0 if numbered else min(offset, most - 1)
    bounds = RankBounds(offset, most, most if most == ALL else most + spare, numbered)
    words = np.stack([rng.integers(0, 4, rows), rng.permutation(rows)], axis=1).astype(np.int64)
    owners = [np.flatnonzero(rng.random(RUNS) < 0.6) for _ in range(rows)]
    starts = np.cumsum([0, *map(len, owners)]).astype(np.int64)
    runs = np.concatenate([*owners, []]).astype(np.int32)
    slots = np.arange(rows, dtype=np.int32)
    held = state_of(words, rows + 2, 4 * len(runs) + 8)
    there: dict[int, list[int]] = {run: [] for run in range(RUNS)}
    before = np.flatnonzero(rng.random(rows) < 0.4)
    for slot in before.tolist():
        for run in owners[slot].tolist():
            there[run].append(slot)
    lengths = np.diff(starts)[before]
    of_before = np.concatenate([*[owners[slot] for slot in before], []]).astype(np.int32)
    ranked.enter(np.cumsum([0, *lengths]), of_before, slots[before], bounds.keep, held)
    base, known = 1, told_at(there, words, bounds)
    alive = set(before.tolist())
    coming = [slot for slot in range(rows) if slot not in alive]
    now = 0
    while coming or alive:
        at, which, signs, expected = [], [], [], {}
        for _ in range(int(rng.integers(1, 12))):
            now += int(rng.integers(0, 2))
            if coming and (not alive or rng.random() < 0.6):
                slot, sign = coming.pop(), 1
                alive.add(slot)
            elif alive:
                slot, sign = int(rng.choice(sorted(alive))), -1
                alive.remove(slot)
            else:
                break
            for run in owners[slot].tolist():
                (there[run].append if sign > 0 else there[run].remove)(slot)
            at.append(now)
            which.append(slot)
            signs.append(sign)
            expected[now] = told_at(there, words, bounds)
        entering = RankEvents(
            np.array(at, np.int64), np.array(which, np.int64), np.array(signs, np.int8), starts, runs, slots
        )
        room, progress = 4 * (rows + 2), np.zeros(3, np.int64)
        made = RankVersions(*(np.zeros(room * len(at), np.int32) for _ in range(2)), *_longs(room * len(at)))
        cut = int(rng.integers(0, room))
        few = RankVersions(*(array[:cut] for array in made))
        if not ranked.fold(entering, bounds, base, held, few, progress):
            assert ranked.fold(entering, bounds, base, held, made, progress)
        count = int(progress[2])
        base += count
        told = list(zip(*(array[:count].tolist() for array in made), strict=True))
        for instant in sorted(expected):
            for slot, run, begin, end, number in told:
                key = slot, run, number if numbered else 0
                known[key] += (begin == instant) - (end == instant) if begin < end else 0
            assert +known == expected[instant]
            assert min(known.values(), default=0) >= 0
        if rng.random() < 0.3:
            ranked.renew(np.zeros(RUNS, np.bool_), held)
            assert int(held.held.sum()) == int(held.used[0])
        now += 1
    assert not held.counts.any()


def _longs(room: int) -> tuple[np.ndarray, ...]:
    return tuple(np.full(room, FOREVER, np.int64) for _ in range(3))


@given(st.integers(0, 2**32 - 1))
def test_heaps_without_the_rows_of_some_runs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 50))
    held = state_of(rng.permutation(n).astype(np.int64).reshape(n, 1), n + 2, 2 * n + 2)
    runs = rng.integers(0, RUNS, n).astype(np.int32)
    ranked.enter(np.arange(n + 1), runs, np.arange(n, dtype=np.int32), 2, held)
    dropped = rng.random(RUNS) < 0.5
    ranked.renew(dropped, held)
    in_pieces = np.minimum(np.bincount(runs, minlength=RUNS), 2)
    left = (np.bincount(runs, minlength=RUNS) - in_pieces)[~dropped]
    assert int(held.used[0]) == int(left.sum()) == int(held.held.sum())
    assert not dropped[held.runs[: int(held.used[0])]].any()
