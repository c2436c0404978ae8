"""Visits, shares of units and look-ups of pairs agree with plain twins."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import promising
from engine.kernels.promising import ChainedRows, Floors, PairsRoom, ProbingLists, VisitedEntries, Visits

pairs = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30)


def arrays(found: set[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    ordered = sorted(found)
    return np.array([left for left, _ in ordered], np.int64), np.array(
        [right for _, right in ordered], np.int64
    )


@given(pairs, st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)))
def test_places_are_those_of_pairs_with_both_parts_there(drawn, lefts, rights):
    left, right = sorted(lefts), sorted(rights)
    out = np.empty((2, len(drawn)), np.int64)
    count = promising.places_of_pairs(
        *arrays(drawn), np.array(left, np.int64), np.array(right, np.int64), out[0], out[1]
    )
    expected = [(left.index(a), right.index(b)) for a, b in sorted(drawn) if a in lefts and b in rights]
    assert list(zip(*out[:, :count].tolist(), strict=True)) == expected


@given(pairs, pairs)
def test_known_pairs_are_those_in_both(asked, known):
    out = np.empty(len(asked), np.bool_)
    promising.known_pairs(*arrays(asked), *arrays(known), out)
    assert out.tolist() == [pair in known for pair in sorted(asked)]


@given(st.lists(st.integers(-3, 3), max_size=40))
def test_codes_are_numbered_as_they_first_come(codes):
    n = len(codes)
    numbers, firsts = np.empty(n, np.int32), np.empty(n, np.int64)
    table = np.full(1 << (2 * n).bit_length(), -1, np.int32)
    known = promising.number_in_order(np.array(codes, np.int64), table, numbers, firsts)
    distinct = list(dict.fromkeys(codes))
    assert [distinct[number] for number in numbers] == codes
    assert firsts[:known].tolist() == [codes.index(code) for code in distinct]


entries = st.lists(
    st.tuples(
        st.integers(1, 12), st.integers(0, 11), st.sampled_from([0.25, 0.5, 1.0, 3.0]), st.integers(1, 3)
    ),
    min_size=1,
    max_size=12,
)


@given(entries, st.integers(1, 80))
def test_units_go_to_the_lowest_levels_first(drawn, units):
    """The visit j of an entry of ``rows`` rows is at the level (j + 1/2) / (weight rows)."""
    drawn = [(rows, min(done, rows - 1), weight, cost) for rows, done, weight, cost in drawn]
    visits = sorted(
        (Fraction(2 * visit + 1, 2) / (Fraction(weight) * rows), place)
        for place, (rows, done, weight, _) in enumerate(drawn)
        for visit in range(done, rows)
    )
    expected = [0] * len(drawn)
    spent = reached = 0
    for _, place in visits:
        if spent < units:
            expected[place] += 1
            spent += drawn[place][3]
            reached += 1
    rows = np.array([each[0] for each in drawn], np.int32)
    left = rows - np.array([each[1] for each in drawn], np.int32)
    pace = np.array([each[2] for each in drawn]) * rows
    out = np.empty(len(drawn), np.int64)
    cost = np.array([each[3] for each in drawn], np.int64)
    highest = float(((rows - 0.5) / pace).max()) * 1.001
    given_out = promising.level_out(pace, rows, left, cost, highest, units, out)
    assert given_out == (cost * out).sum()
    assert given_out < units + 3
    assert given_out >= min(units, spent)
    levels = [float(visits[-1][0])] + [float(level) for level, _ in visits[: reached + 1]]
    for place, (share, plain) in enumerate(zip(out.tolist(), expected, strict=True)):
        if share != plain:  # by rounding two levels became one, or one two
            done, weight = drawn[place][1], drawn[place][2]
            level = (done + max(share, plain) - 0.5) / (weight * drawn[place][0])
            assert any(math.isclose(level, each, rel_tol=1e-12) for each in levels)


@st.composite
def visited(draw: st.DrawFn):
    """Stored rows, lists of probing rows, entries over both, units and floors."""
    n = draw(st.integers(1, 20))
    buckets = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    keys = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    wanted = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    lists = draw(
        st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 9), min_size=1)), min_size=1, max_size=3)
    )
    made = draw(
        st.lists(
            st.tuples(
                st.integers(0, len(lists) - 1), st.integers(0, n), st.integers(0, n), st.integers(0, 2)
            ),
            max_size=5,
        )
    )
    units = [draw(st.integers(0, 8)) for _ in made]
    return buckets, keys, wanted, lists, made, units, draw(st.integers(0, n)), draw(st.integers(0, 9))


@given(visited(), st.integers(100, 105), st.integers(8, 40))
def test_visits_go_from_new_rows_to_old_ones_and_give_pairs_of_equal_keys(drawn, first, room):
    buckets, keys, wanted, lists, made, units, stored_floor, probing_floor = drawn
    stored_floor += first
    back = np.empty(len(keys), np.int32)
    newest, counts = np.full(3, -1, np.int64), np.zeros(3, np.int64)
    promising.chain(np.array(buckets, np.int32), 0, len(keys), first, newest, counts, back)
    assert counts.tolist() == [buckets.count(bucket) for bucket in range(3)]
    of_entry = [
        [first + row for row in range(low, high) if buckets[row] == bucket][::-1]
        for _, low, high, bucket in made
    ]
    some = [place for place, rows in enumerate(of_entry) if rows]
    expected, tally, left_of = [], [0, 0, 0], []
    for place in some:
        code, probing = lists[made[place][0]]
        alive = [row for row in of_entry[place] if row >= stored_floor]
        seen = alive[: units[place]]
        expected += [
            (probe, row)
            for row in seen
            if wanted[row - first] and keys[row - first] == code
            for probe in sorted(probing)
            if probe >= probing_floor
        ]
        finished = len(seen) == len(alive)
        tally[0] += len(seen) * len(probing)
        tally[1] += (len(of_entry[place]) - len(alive)) * len(probing) if finished else 0
        tally[2] += finished
        left_of.append(0 if finished else len(of_entry[place]) - len(seen))
    starts = np.cumsum([0, *(len(each) for _, each in lists)])
    held = VisitedEntries(
        np.array([made[place][0] for place in some], np.int32),
        np.array([first + made[place][1] for place in some], np.int64),
        np.array([of_entry[place][0] for place in some], np.int64),
        np.array([len(of_entry[place]) for place in some], np.int32),
    )
    probing_lists = ProbingLists(
        starts[:-1].astype(np.int64),
        np.diff(starts).astype(np.int64),
        np.array([code for code, _ in lists], np.int64),
        np.array([row for _, each in lists for row in sorted(each)], np.int64),
    )
    rows = ChainedRows(first, np.array(keys, np.int64), np.array(wanted, np.bool_), back)
    counted, found, begin = np.zeros(3, np.int64), [], 0
    picked = np.arange(len(some), dtype=np.int64)
    allotted = np.array([units[place] for place in some], np.int64)
    while begin < len(some):
        out = np.empty((2, room), np.int64)
        begin, count = promising.visit(
            Visits(picked, allotted),
            begin,
            held,
            rows,
            probing_lists,
            Floors(stored_floor, probing_floor),
            PairsRoom(out[1], out[0]),
            counted,
        )
        found += list(zip(*out[:, :count].tolist(), strict=True))
        room *= 2
    assert found == expected
    assert counted.tolist() == tally
    assert held.left.tolist() == left_of
