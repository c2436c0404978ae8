"""Extremes of windows of many sizes agree with plain twins."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import window_extremes as kernels
from engine.kernels.window_extremes import FOREVER, NEVER, Stairs, StairWindows, VersionsOut

seeds = st.integers(0, 2**32 - 1)
Row = tuple[int, int]
"""Instant and value."""


def stairs_of(rows: list[list[Row]], room: int | None = None) -> Stairs:
    starts = np.concatenate([[0], np.cumsum([len(each) for each in rows])]).astype(np.int64)
    flat = np.array([row for each in rows for row in each], np.int64).reshape(-1, 2)
    made = np.full((2, len(flat) if room is None else room), -7, np.int64)
    made[:, : len(flat)] = flat.T
    return Stairs(starts, made[0], made[1])


def listed(stairs: Stairs) -> list[list[Row]]:
    rows = list(zip(stairs.at.tolist(), stairs.word.tolist(), strict=True))
    return [rows[first:end] for first, end in zip(stairs.starts[:-1], stairs.starts[1:], strict=True)]


def random_rows(rng: np.random.Generator, count: int, first: int, last: int) -> list[list[Row]]:
    """Instants from first on, in order."""
    found = []
    for _ in range(count):
        at = np.sort(rng.integers(first, last, rng.integers(0, 7))) * 2
        found.append([(int(each), int(rng.integers(0, 4))) for each in at])
    return found


def stair(rows: list[Row]) -> list[Row]:
    return [row for place, row in enumerate(rows) if all(row[1] > other for _, other in rows[place + 1 :])]


def joined(old: list[list[Row]], new: list[list[Row]]) -> tuple[Stairs, np.ndarray, list[list[Row]]]:
    room = sum(map(len, [*old, *new]))
    empty: list[list[Row]] = [[] for _ in old]
    both, left, greater = stairs_of(empty, room), stairs_of(empty, room), np.full(room, -7, np.int64)
    kept = kernels.join_stairs(stairs_of(old), stairs_of(new), both, greater, left)
    return both, greater, listed(Stairs(left.starts, left.at[:kept], left.word[:kept]))


@given(seeds, st.integers(1, 3))
def test_what_may_still_be_the_greatest_stays(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    old = [stair(each) for each in random_rows(rng, count, 0, 10)]
    new = random_rows(rng, count, 11, 20)
    both, greater, left = joined(old, new)
    rows = [[*one, *other] for one, other in zip(old, new, strict=True)]
    assert listed(both) == rows
    assert left == [stair(each) for each in rows]
    for first, each in zip(both.starts.tolist(), rows, strict=False):
        for place, (_, word) in enumerate(each):
            later = [other for other in range(place + 1, len(each)) if each[other][1] >= word]
            assert greater[first + place] == first + min(later, default=len(each))


@given(seeds, st.integers(1, 3))
def test_rows_that_came_by_an_instant_are_trimmed(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows, until = random_rows(rng, count, 0, 10), int(rng.integers(-1, 22))
    left = stairs_of([[] for _ in rows], sum(map(len, rows)))
    kept = kernels.trim(stairs_of(rows), until, left)
    found = listed(Stairs(left.starts, left.at[:kept], left.word[:kept]))
    assert found == [[row for row in each if row[0] > until] for each in rows]


@given(seeds, st.integers(1, 3), st.integers(3, 9))
def test_windows_have_the_greatest_of_their_rows_at_every_instant(seed: int, count: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    since, until = 21, 21 + 2 * int(rng.integers(0, 12))
    old = [stair(each) for each in random_rows(rng, count, 0, 11)]
    new = random_rows(rng, count, 11, until // 2 + 1) if until > 22 else [[] for _ in old]
    both, greater, _ = joined(old, new)
    sizes = [[int(each) * 2 for each in rng.integers(1, 12, rng.integers(0, 4))] for _ in old]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in sizes])]).astype(np.int64)
    held = np.array([size for each in sizes for size in each], np.int64)
    windows = StairWindows(starts, np.arange(len(held), dtype=np.int32), held)

    found: dict[int, list[tuple[int | None, int, int]]] = {}
    cursor = 0, 0
    while cursor[0] < count:
        words = np.full((3, room), -7, np.int64)
        out = VersionsOut(np.full(room, -7, np.int32), words[0], np.zeros(room, np.bool_), words[1], words[2])
        *stopped, kept = kernels.versions(*cursor, both, greater, windows, since, until, out)
        for place in range(kept):
            value = int(out.word[place]) if out.there[place] else None
            span = int(out.valid_from[place]), int(out.valid_to[place])
            found.setdefault(int(out.column[place]), []).append((value, *span))
        room = room * 2 if tuple(stopped) == cursor else room
        cursor = stopped[0], stopped[1]

    column = 0
    for rows, each in zip(listed(both), sizes, strict=True):
        for size in each:
            expected: list[tuple[int | None, int, int]] = []
            for instant in range(since, until + 1):
                inside = [word for at, word in rows if at <= instant < at + size]
                value = max(inside, default=None)
                if not expected:
                    expected.append((value, NEVER, FOREVER))
                elif expected[-1][0] != value:
                    expected[-1] = (*expected[-1][:2], instant)
                    expected.append((value, instant, FOREVER))
            assert found.get(column, []) == (expected if len(expected) > 1 else [])
            column += 1
