"""Queues of the latest rows against plain lists."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import queues
from engine.kernels.queues import FOREVER, Queues, Released, WindowVersions

RUNS = 3


def empty(slots: int, entries: int) -> Queues:
    return Queues(
        first=np.zeros(RUNS, np.int32),
        last=np.zeros(RUNS, np.int32),
        counts=np.zeros(RUNS, np.int64),
        slots=np.zeros(entries, np.int32),
        following=np.zeros(entries, np.int32),
        told=np.zeros(entries, np.int64),
        free=np.arange(entries, dtype=np.int32),
        top=np.array([entries], np.int64),
        held=np.zeros(slots, np.int32),
    )


def listed(held: Queues) -> dict[int, list[int]]:
    n = int(held.counts.sum())
    slots, of = np.empty(n, np.int32), np.empty(n, np.int32)
    assert queues.listed(np.arange(RUNS, dtype=np.int32), held, slots, of) == n
    return {run: slots[of == run].tolist() for run in range(RUNS)}


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 40))
def test_the_latest_of_every_run_at_every_instant(seed: int, most: int, rows: int) -> None:
    """Rows come in their order, and the first of all go first."""
    rng = np.random.default_rng(seed)
    owners = [np.flatnonzero(rng.random(RUNS) < 0.6) for _ in range(rows)]
    starts = np.cumsum([0, *map(len, owners)]).astype(np.int64)
    runs = np.concatenate([*owners, []]).astype(np.int32)
    held = empty(rows, len(runs) + 1)
    there: dict[int, list[int]] = {run: [] for run in range(RUNS)}
    before = int(rng.integers(0, rows + 1))
    released = Released(np.zeros(len(runs), np.int32), np.zeros(1, np.int64))
    slots = np.arange(rows, dtype=np.int32)
    queues.enter(starts[: before + 1], runs, slots[:before], most, held, released)
    for slot in range(before):
        for run in owners[slot].tolist():
            there[run] = [*there[run], slot][-most:]
    assert listed(held) == there

    gone, came, now, base = 0, before, 0, 1
    known = Counter((slot, run) for run, held_slots in there.items() for slot in held_slots)
    while came < rows or gone < came:
        at, which, signs, expected = [], [], [], {}
        for _ in range(int(rng.integers(1, 12))):
            now += int(rng.integers(0, 2))
            if came < rows and (gone == came or rng.random() < 0.6):
                slot, sign = came, 1
                came += 1
            elif gone < came:
                slot, sign = gone, -1
                gone += 1
            else:
                break
            for run in owners[slot].tolist():
                there[run] = [*there[run], slot][-most:] if sign > 0 else [n for n in there[run] if n != slot]
            at.append(now)
            which.append(slot)
            signs.append(sign)
            expected[now] = Counter((slot, run) for run, held_slots in there.items() for slot in held_slots)
        room = 2 * len(runs) + 1
        ints, longs = (np.zeros(room, np.int32) for _ in range(2)), (np.zeros(room, np.int64) for _ in "be")
        made = WindowVersions(*ints, *longs, np.zeros(1, np.int64))
        released = Released(np.zeros(room, np.int32), np.zeros(1, np.int64))
        was = held.held > 0
        alive = was.copy()
        alive[[slot for slot, sign in zip(which, signs, strict=True) if sign > 0 and len(owners[slot])]] = (
            True
        )
        moved = np.array(at, np.int64), np.array(which, np.int64), np.array(signs, np.int8)
        kept = np.where(was | (slots >= came - signs.count(1)), slots, -1).astype(np.int32)
        queues.fold(*moved, starts, runs, kept, most, base, held, made, released)
        count = int(made.filled[0])
        base += count
        for instant in sorted(expected):
            for place in range(count):
                key = int(made.slots[place]), int(made.runs[place])
                begin, end = int(made.valid_from[place]), int(made.valid_to[place])
                assert end <= FOREVER
                known[key] += (begin == instant) - (end == instant) if begin < end else 0
            assert +known == expected[instant]
        assert listed(held) == there
        left = sorted(released.slots[: int(released.filled[0])].tolist())
        assert left == np.flatnonzero(alive & (held.held == 0)).tolist()
        now += 1
    queues.clear(np.arange(RUNS, dtype=np.int32), held, released)
    assert int(held.top[0]) == len(runs) + 1
