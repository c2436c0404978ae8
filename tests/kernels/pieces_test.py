"""Groups whose rows come and go: kernels agree with plain twins that look at every piece by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import copies, piece_sums, pieces, ranks
from engine.kernels.aggregates import LOW_BITS
from tests.kernels.exactly import mean, same, total, values, variance

INT64 = st.integers(-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Rows:
    """Rows (group, low, high) in pieces; starts: where the pieces of each group begin."""

    starts: list[int]
    rows: list[tuple[int, int, int]]

    def moving(self) -> list[int]:
        return [
            row
            for row, (group, low, high) in enumerate(self.rows)
            if (low, high) != (self.starts[group], self.starts[group + 1])
        ]

    def there(self, piece: int) -> list[int]:
        return [row for row, (_, low, high) in enumerate(self.rows) if low <= piece < high]

    @property
    def pieces(self) -> int:
        return self.starts[-1]

    @property
    def groups(self) -> int:
        return len(self.starts) - 1

    def by_group(self) -> Rows:
        """The same with the rows of a group side by side."""
        return Rows(self.starts, sorted(self.rows, key=lambda row: row[0]))


@st.composite
def placed(draw: st.DrawFn, most: int = 25) -> Rows:
    counts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    rows = []
    for group in draw(st.lists(st.integers(0, len(counts) - 1), max_size=most)):
        low = (
            starts[group] if draw(st.booleans()) else draw(st.integers(starts[group], starts[group + 1] - 1))
        )
        high = starts[group + 1] if draw(st.booleans()) else draw(st.integers(low + 1, starts[group + 1]))
        rows.append((group, low, high))
    return Rows(starts, rows)


def array(values: Any) -> Any:
    return np.array(list(values), np.int64)


def of(rows: Rows) -> tuple[Any, Any, Any, Any, Any]:
    """codes, moving, low, high, starts, as kernels take them."""
    moving = rows.moving()
    return (
        array(group for group, _, _ in rows.rows),
        array(moving),
        array(rows.rows[row][1] for row in moving),
        array(rows.rows[row][2] for row in moving),
        array(rows.starts),
    )


@given(st.data(), st.integers(1, 3))
def test_cut(data, groups):
    """Each group's pieces begin at its instants, each once, and rows with them."""
    rows = data.draw(
        st.lists(st.tuples(st.integers(0, groups - 1), st.integers(0, 4), st.integers(1, 4)), max_size=12)
    )
    lives = [(code, begin, begin + length) for code, begin, length in rows]
    found = []  # at instant 0 rows are there already, at 5 still
    for row, (code, begin, end) in enumerate(lives):
        found += [(code, begin, 2 * row)] if begin > 0 else []
        found += [(code, end, 2 * row + 1)] if end < 5 else []
    found.sort(key=lambda event: event[:2])
    event_starts = array(sum(code < group for code, _, _ in found) for group in range(groups + 1))
    low, high = np.full(len(rows), -1), np.full(len(rows), -1)
    starts, begins = np.empty(groups + 1, np.int64), np.empty(groups + len(found), np.int64)
    count = pieces.cut(
        event_starts,
        array(instant for _, instant, _ in found),
        array(what for _, _, what in found),
        array(code for code, _, _ in lives),
        low,
        high,
        starts,
        begins,
    )
    begins[starts[:-1]] = 0
    for group in range(groups):
        mine = [life for life in lives if life[0] == group]
        instants = {0, *(b for _, b, _ in mine), *(e for _, _, e in mine if e < 5)}
        assert begins[starts[group] : starts[group + 1]].tolist() == sorted(instants)
    assert starts[-1] == count
    for row, (code, begin, end) in enumerate(lives):
        assert begins[low[row]] == begin
        assert high[row] == starts[code + 1] if end >= 5 else begins[high[row]] == end


@given(placed())
def test_counts(rows):
    codes, moving, low, high, starts = of(rows)
    stay, counts = np.empty(rows.groups, np.int64), np.empty(rows.pieces + 1, np.int64)
    pieces.staying(codes, moving, stay)
    pieces.counts(stay, low, high, starts, counts)
    unmoved = [row for row in range(len(rows.rows)) if row not in rows.moving()]
    assert stay.tolist() == [sum(rows.rows[row][0] == g for row in unmoved) for g in range(rows.groups)]
    assert counts.tolist() == [*(len(rows.there(piece)) for piece in range(rows.pieces)), 0]


@given(st.data(), placed())
def test_totals(data, rows):
    given_values = data.draw(st.lists(INT64, min_size=len(rows.rows), max_size=len(rows.rows)))
    above, below = np.empty(rows.pieces + 1, np.int64), np.empty(rows.pieces + 1, np.int64)
    pieces.totals(array(given_values), *of(rows), above, below)
    for piece in range(rows.pieces):
        assert 0 <= below[piece] < 2**LOW_BITS
        total = (int(above[piece]) << LOW_BITS) + int(below[piece])
        assert total == sum(given_values[row] for row in rows.there(piece))


@given(st.data(), placed())
def test_the_row_with_the_least_key(data, rows):
    n = len(rows.rows)
    keys = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    codes, moving, low, high, starts = of(rows)
    best = np.empty(rows.groups, np.int64)
    pieces.best_staying(array(keys), codes, moving, best)
    unmoved = [row for row in range(n) if row not in rows.moving()]
    for group in range(rows.groups):
        mine = [row for row in unmoved if codes[row] == group]
        assert best[group] == min(mine, key=lambda row: (keys[row], row), default=-1)
    of_moving = array(keys[row] for row in moving)
    best_keys = array(keys[row] if row >= 0 else 0 for row in best)
    out = np.empty(rows.pieces, np.int64)
    by_key = np.argsort(of_moving, kind="stable")
    pieces.least(of_moving, moving, by_key, low, high, starts, best, best_keys, out)
    wanted = [min(rows.there(p), key=lambda row: (keys[row], row), default=-1) for p in range(rows.pieces)]
    assert out.tolist() == wanted


@given(placed(), st.booleans())
def test_the_end_of_those_that_stay(rows, last):
    codes, moving, _, _, _ = of(rows)
    unmoved = [row for row in range(len(rows.rows)) if row not in rows.moving()]
    mine = [[row for row in unmoved if codes[row] == group] for group in range(rows.groups)]
    best = np.empty(rows.groups, np.int64)
    pieces.end_staying(codes, moving, array(map(len, mine)), last, best)
    assert best.tolist() == [(max if last else min)(found, default=-1) for found in mine]


@given(st.data(), placed())
def test_the_same_rows_united(data, rows):
    """Codes that no two groups share: what is there of each, and once."""
    kinds = data.draw(st.lists(st.integers(0, 2), min_size=len(rows.rows), max_size=len(rows.rows)))
    codes, moving, low, high, _ = of(rows)
    known: dict[tuple[int, int], int] = {}
    same = array(
        known.setdefault((group, kind), len(known)) for group, kind in zip(codes.tolist(), kinds, strict=True)
    )
    n, m = len(codes), len(moving)
    kept, left = np.empty(n, np.int64), np.empty(m, np.int64)
    found, count = pieces.unite(same, moving, kept, np.empty(len(known), np.bool_), left)
    left = left[:count]
    left = left[np.lexsort((low[left], same[moving[left]]))]
    places, lows, highs = (np.empty(count, np.int64) for _ in range(3))
    runs = pieces.join_runs(same[moving], left, low, high, places, lows, highs)
    for piece in range(rows.pieces):
        group = sum(start <= piece for start in rows.starts) - 1
        whole = [int(same[row]) for row in kept[:found] if codes[row] == group]
        parts = [int(same[moving[places[i]]]) for i in range(runs) if lows[i] <= piece < highs[i]]
        assert sorted(whole + parts) == sorted({int(same[row]) for row in rows.there(piece)})


@given(placed())
def test_rows_brought_together_and_their_events(rows):
    codes, moving, low, high, starts = of(rows)
    n = len(codes)
    begins, order, places = (
        np.empty(rows.groups + 1, np.int64),
        np.empty(n, np.int64),
        np.empty(len(moving), np.int64),
    )
    pieces.together(codes, moving, begins, order, places)
    assert order.tolist() == sorted(range(n), key=lambda row: (codes[row], row))
    assert begins.tolist() == [sum(code < group for code in codes) for group in range(rows.groups + 1)]
    assert order[places].tolist() == moving.tolist()
    event_starts, what = np.empty(rows.pieces + 1, np.int64), np.empty(2 * len(moving), np.int64)
    pieces.events(places, low, high, starts[codes[moving]], starts[codes[moving] + 1], event_starts, what)
    for piece in range(rows.pieces):
        came = [
            2 * int(p) for p, at in zip(places, low, strict=True) if at == piece and piece not in rows.starts
        ]
        went = [
            2 * int(p) + 1
            for p, at in zip(places, high, strict=True)
            if at == piece and piece not in rows.starts
        ]
        assert sorted(what[event_starts[piece] : event_starts[piece + 1]].tolist()) == sorted(came + went)


def added(rows: Rows, kernel: Callable[..., None], values: Any, how: int | bool) -> Any:
    """What a kernel makes of rows that stand group by group."""
    codes, moving, low, high, starts = of(rows)
    event_starts, what = np.empty(rows.pieces + 1, np.int64), np.empty(2 * len(moving), np.int64)
    pieces.events(moving, low, high, starts[codes[moving]], starts[codes[moving] + 1], event_starts, what)
    begins = array(sum(code < group for code in codes) for group in range(rows.groups + 1))
    there = np.array([low == rows.starts[group] for group, low, _ in rows.rows], np.bool_)
    counts = array(len(rows.there(piece)) for piece in range(rows.pieces))
    out = np.empty(rows.pieces, np.int64)
    bits = np.array(values, np.float64).view(np.int64)
    kernel(bits, begins, starts, event_starts, what, there, counts, how, out)
    return out.view(np.float64)


@given(st.data(), placed())
def test_doubles_that_come_and_go(data, rows):
    rows, n = rows.by_group(), len(rows.rows)
    given_values = data.draw(st.lists(values, min_size=n, max_size=n))
    for kernel, how, twin in (
        (piece_sums.sums, False, total),
        (piece_sums.sums, True, mean),
        (piece_sums.variances, 0, lambda there: variance(there, 0)),
        (piece_sums.variances, 1, lambda there: variance(there, 1)),
    ):
        found = added(rows, kernel, given_values, how)
        for piece in range(rows.pieces):
            assert same(found[piece], twin([given_values[row] for row in rows.there(piece)]))


def test_many_doubles_that_come_and_go():
    """More rows than fit between two carries, some in and out in any order."""
    random = np.random.default_rng(3)
    n, pieces_of_all = 30_000, 5
    rows = [(0, 0, pieces_of_all)] * n
    for row in [*random.integers(0, n, 300).tolist(), *range(n - 5_000, n)]:
        low = int(random.integers(0, pieces_of_all))
        rows[row] = (0, low, int(random.integers(low + 1, pieces_of_all + 1)))
    many = Rows([0, pieces_of_all], rows)
    given_values = random.normal(size=n) * 10.0 ** random.integers(-9, 9, n)
    there = given_values[many.there(3)].tolist()
    assert added(many, piece_sums.sums, given_values, False)[3] == math.fsum(there)
    assert same(added(many, piece_sums.variances, given_values, 1)[3], variance(there, 1))


@given(placed(), st.integers(1, 4), st.integers(0, 40))
def test_numbers(rows, most, room):
    rows = rows.by_group()
    codes, moving, low, high, starts = of(rows)
    event_starts, what = np.empty(rows.pieces + 1, np.int64), np.empty(2 * len(moving), np.int64)
    pieces.events(moving, low, high, starts[codes[moving]], starts[codes[moving] + 1], event_starts, what)
    begins = array(sum(code < group for code in codes) for group in range(rows.groups + 1))
    there = np.array([low == rows.starts[group] for group, low, _ in rows.rows], np.bool_)
    out = [np.empty(room, np.int64) for _ in range(4)]
    count = ranks.numbers(begins, starts, event_starts, what, there, most, *out)
    runs = list(zip(*(array.tolist() for array in out), strict=True))[:count]
    if count > room:
        assert len(runs) == room
        return
    for piece in range(rows.pieces):
        wanted = [(row, place + 1) for place, row in enumerate(rows.there(piece)[:most])]
        assert sorted((row, rank) for row, rank, first, end in runs if first <= piece < end) == wanted
    assert (
        len(
            {(row, rank, end) for row, rank, _, end in runs}
            & {(row, rank, first) for row, rank, first, _ in runs}
        )
        == 0
    )


@given(
    st.lists(st.tuples(st.integers(0, 2), INT64 | st.integers(0, 3)), max_size=40),
    st.lists(st.integers(1, 6), min_size=3, max_size=3),
)
def test_bounds(rows, room):
    starts = np.cumsum([0, *room])
    out = np.empty(3, np.int64)
    heap = np.empty(starts[-1], np.int64)
    ranks.bounds(array(key for _, key in rows), array(code for code, _ in rows), starts, heap, out)
    for group in range(3):
        keys = sorted(key for code, key in rows if code == group)
        assert out[group] == (keys[room[group] - 1] if len(keys) >= room[group] else 2**63 - 1)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-1, 1])), max_size=30))
def test_copies(changes):
    held = dict.fromkeys(range(3), 40)
    wanted = []
    for code, weight in changes:
        wanted.append(held[code] + (weight > 0))
        held[code] += weight
    counts, out = np.full(3, 40), np.empty(len(changes), np.int32)
    copies.number_copies(
        array(code for code, _ in changes), np.array([w for _, w in changes], np.int8), counts, out
    )
    assert out.tolist() == wanted
    assert counts.tolist() == list(held.values())
