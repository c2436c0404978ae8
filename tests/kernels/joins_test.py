"""The kernels of joins against plain loops."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import composites, joins, key_table
from engine.kernels.joins import NEVER
from engine.kernels.key_table import EMPTY, UNKNOWN
from tests.strategies import examples

keys_in = st.lists(st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=40)


class Index:
    """An index over the rows from ``first`` on, of keys or None."""

    def __init__(self, keys: list[int | None], first: int, size: int = 128) -> None:
        self.rows, self.first = keys, first
        n = len(keys)
        self.keys, self.back = np.zeros(n, np.int64), np.zeros(n, np.int32)
        self.table = np.full(size, EMPTY, np.int32)
        null = np.array([key is None for key in keys], np.bool_)
        coming = np.array([0 if key is None else key for key in keys], np.int64)
        null = null if null.any() else null[:0]
        index = key_table.Index(self.table, self.keys, self.back, first, first, 0)
        self.done, self.used = key_table.insert(coming, null, 0, index, 0, first)

    def newest(self, base: int) -> dict[int, int]:
        found = {key: self.first + place for place, key in enumerate(self.rows) if key is not None}
        return {key: ordinal for key, ordinal in found.items() if ordinal >= base}


def entries(table: np.ndarray, keys: np.ndarray, first: int) -> dict[int, int]:
    live = table[table >= 0]
    found = {int(keys[row]): first + int(row) for row in live}
    assert len(live) == len(found)
    return found


@given(keys_in, st.integers(0, 50), st.integers(0, 40))
@settings(max_examples=examples(40))
def test_an_index_chains_the_rows_of_a_key(keys, first, gone):
    index = Index(keys, first)
    assert index.done == len(keys)
    assert index.used == len(set(keys) - {None})
    assert entries(index.table, index.keys, first) == index.newest(0)
    for place, key in enumerate(keys):
        before = [other for other in range(place) if keys[other] == key]
        if key is None:
            assert index.back[place] == UNKNOWN
        else:
            assert index.keys[place] == key
            assert index.back[place] == (place - before[-1] if before else 0)
    live = index.newest(first + gone)
    assert key_table.count_live(index.table, gone) == len(live)
    for by in (0, gone):
        other, left = np.full(256, EMPTY, np.int32), index.keys[by:]
        key_table.move_live(index.table, gone, by, left, other)
        assert entries(other, left, first + by) == live


def test_an_index_stops_where_its_table_is_half_full():
    index = Index([5, 5, 6, None, 7, 8], 0, size=4)
    assert (index.done, index.used) == (4, 2)


@given(
    st.lists(st.integers(-5, 30), max_size=20),
    st.lists(st.integers(-5, 30), max_size=20),
    st.integers(-6, 6),
    st.integers(0, 9),
)
@settings(max_examples=examples(40))
def test_instants_are_found_in_one_pass(instants, among, shift, at):
    instants, among = np.sort(np.array(instants, np.int64)), np.sort(np.array(among, np.int64))
    out = np.full(len(instants), at + 10, np.int64)
    joins.first_at_or_after(instants, shift, among, at, out)
    expected = np.minimum(at + 10, at + np.searchsorted(among, instants + shift))
    assert out.tolist() == expected.tolist()


@given(st.data())
@settings(max_examples=examples(60))
def test_two_inputs_are_combined_as_many_are(data):
    firsts = [data.draw(st.integers(0, 5)) for _ in range(2)]
    sides = [
        data.draw(st.lists(st.one_of(st.none(), st.integers(0, 2)), min_size=1, max_size=12)) for _ in firsts
    ]
    indexes = [Index(keys, first) for keys, first in zip(sides, firsts, strict=True)]
    ends = [first + len(keys) for keys, first in zip(sides, firsts, strict=True)]
    driver = data.draw(st.integers(0, 1))
    other = 1 - driver
    floor = np.array([data.draw(st.integers(f, e)) for f, e in zip(firsts, ends, strict=True)], np.int64)
    upper = np.array([data.draw(st.integers(int(f), e)) for f, e in zip(floor, ends, strict=True)], np.int64)
    fresh = [data.draw(st.integers(int(f), int(u))) for f, u in zip(floor, upper, strict=True)]
    if data.draw(st.booleans()):
        fresh = [NEVER, NEVER]
        low = np.zeros((2, 0), np.int64)
        new_at = np.zeros(2, np.int64)
    else:
        counts = [int(u) - f for u, f in zip(upper, fresh, strict=True)]
        low = np.array([[data.draw(st.integers(0, 14)) for _ in range(sum(counts))] for _ in range(2)])
        low = low.reshape(2, sum(counts)).astype(np.int64)
        for piece in np.split(low, [counts[0]], axis=1):
            piece.sort(axis=1)
        new_at = np.array([0, counts[0]], np.int64)
    start = int(floor[driver]) if fresh[driver] == NEVER else fresh[driver]
    stop = int(upper[driver])

    def bounds_of(place, ordinal):
        if ordinal < fresh[place]:
            return [0, 0]
        return low[:, int(new_at[place]) + ordinal - fresh[place]].tolist()

    expected = []
    for row, partner in product(range(start, stop), range(int(floor[other]), int(upper[other]))):
        one, two = sides[driver][row - firsts[driver]], sides[other][partner - firsts[other]]
        chosen = (row, partner) if driver == 0 else (partner, row)
        inside = all(chosen[k] >= bound for p in range(2) for k, bound in enumerate(bounds_of(p, chosen[p])))
        if one is not None and one == two and inside:
            expected.append(chosen)

    origin = np.array([data.draw(st.integers(0, 3)) for _ in range(2)], np.int64)
    room = len(expected) + data.draw(st.integers(0, 2))
    parts, counted = np.zeros((room, 2), np.int32), np.zeros((1, 3), np.int64)
    steps = np.zeros((1, joins.STEP_COLUMNS), np.int64)
    own, probed = indexes[driver], indexes[other]
    steps[0] = [
        other,
        driver,
        own.keys.ctypes.data,
        own.back.ctypes.data,
        own.first,
        probed.table.ctypes.data,
        len(probed.table) - 1,
        0,
        probed.keys.ctypes.data,
        probed.back.ctypes.data,
        probed.first,
        0,
        0,
    ]
    checks = np.zeros((0, joins.CHECK_COLUMNS), np.int64)
    new_from = np.array(fresh, np.int64)
    done, count = joins.combine(
        joins.ProbeOrder(driver, steps, checks),
        start,
        stop,
        joins.Meeting(floor, upper, new_from, new_at, low),
        origin,
        parts,
        0,
        counted,
    )
    assert (done, count) == (stop, len(expected))
    assert sorted(map(tuple, (parts + origin).tolist()[:count])) == sorted(expected)
    assert counted[0, joins.PASSED] == len(expected)

    two = np.zeros((room, 2), np.int32)
    size = data.draw(st.sampled_from([1, 2, 64]))
    room = data.draw(st.sampled_from([joins.LISTED_MAX + 1, 3 * joins.LISTED_MAX]))
    lists = np.empty(size, np.int64), np.empty((size, 4), np.int64), np.empty(room, np.int32)
    column = 0 if fresh[driver] == NEVER else int(new_at[driver]) + start - fresh[driver]
    mine = low[:, column : column + stop - start]
    theirs = low[:, int(new_at[other]) : int(new_at[other]) + max(0, int(upper[other]) - fresh[other])]
    both = joins.TwoIndexes(
        own.keys, own.back, own.first, probed.table, 0, probed.keys, probed.back, probed.first
    )
    bounds = joins.TwoBounds(
        int(floor[other]),
        int(upper[other]),
        mine[other],
        mine[driver],
        fresh[other],
        theirs[driver],
        theirs[other],
    )
    listed = joins.ListedPartners(*lists)
    out = joins.TwoParts(driver, int(origin[driver]), int(origin[other]), two)
    done, count = joins.combine_two(start, stop, both, bounds, listed, out, 0, counted)
    assert (done, count) == (stop, len(expected))
    assert two[:count].tolist() == parts[:count].tolist()
    if expected:
        out = out._replace(parts=two[: len(expected) - 1])
        cut, held = joins.combine_two(start, stop, both, bounds, listed, out, 0, counted)
        assert cut == max(pair[driver] for pair in expected)
        assert held == sum(pair[driver] < cut for pair in expected)


tuples_of_three = st.lists(st.tuples(*[st.integers(0, 9)] * 3), max_size=30)


@given(tuples_of_three, st.tuples(*[st.integers(0, 9)] * 3))
@settings(max_examples=examples(40))
def test_the_living_move_together(tuples, floor):
    parts = np.array(tuples, np.int32).reshape(len(tuples), 3)
    origin, to, floor = np.array([2, 0, 5]), np.array([1, 1, 1]), np.array(floor) + 2
    alive = (parts + origin)[((parts + origin) >= floor).all(axis=1)]
    assert composites.count_alive(parts, len(parts), origin, floor) == len(alive)
    target = np.zeros((len(parts) + 2, 3), np.int32)
    assert composites.keep_alive(parts, len(parts), origin, floor, target, 2, to) == 2 + len(alive)
    assert (target[2 : 2 + len(alive)] + to).tolist() == alive.tolist()


@given(
    tuples_of_three,
    st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=3, max_size=3),
    st.integers(0, 9),
)
@settings(max_examples=examples(40))
def test_composites_are_picked_by_their_parts(tuples, relations, room):
    parts, origin = np.array(tuples, np.int32).reshape(len(tuples), 3), np.array([1, 0, 2])
    lines = [sorted(o + int(shift) for o in rows) for rows, shift in zip(relations, origin, strict=True)]
    first = np.array([line[0] for line in lines])
    at = np.cumsum([0, *(line[-1] - line[0] + 1 for line in lines)])
    places = np.full(int(at[-1]), -1, np.int32)
    for start, line in zip(at, lines, strict=False):
        for place, ordinal in enumerate(line):
            places[start + ordinal - line[0]] = place
    out = np.full((3, room), -1, np.int64)
    found = composites.pick(parts, len(parts), origin, first, at, places, out, 0)
    expected = [
        [line.index(ordinal) for line, ordinal in zip(lines, each, strict=True)]
        for each in (parts + origin).tolist()
        if all(ordinal in line for line, ordinal in zip(lines, each, strict=True))
    ]
    assert found == len(expected)
    assert out[:, :found].T.tolist() == expected[:room]


@given(st.lists(st.integers(0, 6), max_size=30), st.randoms())
@settings(max_examples=examples(30))
def test_tuples_are_arranged_stably(places, random):
    before = list(range(len(places)))
    random.shuffle(before)
    out = np.empty(len(places), np.int64)
    composites.arrange(np.array(places, np.int64), np.array(before, np.int64), np.zeros(8, np.int64), out)
    assert out.tolist() == sorted(before, key=lambda each: places[each])


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=40), st.integers(0, 40))
@settings(max_examples=examples(30))
def test_pairs_keep_their_numbers(pairs, cut):
    ones, others = np.empty(40, np.int64), np.empty(40, np.int64)
    table, known, numbers = np.full(64, EMPTY, np.int32), 0, []
    for piece in (pairs[:cut], pairs[cut:]):
        out = np.empty(len(piece), np.int64)
        left = np.array([one for one, _ in piece], np.int64)
        right = np.array([other for _, other in piece], np.int64)
        known = key_table.number_pairs(left, right, ones, others, table, known, out)
        numbers += out.tolist()
    order = list(dict.fromkeys(pairs))
    assert known == len(order)
    assert numbers == [order.index(pair) for pair in pairs]
    assert list(zip(ones[:known].tolist(), others[:known].tolist(), strict=True)) == order
