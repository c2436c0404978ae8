"""Counters, confidence, estimates, lists and the way down pyramids: kernels against their plain twins."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import descents, sketches, top_values, value_hashes
from engine.kernels.descents import STACK, CandidateRoom, DescentRoom, Forest
from engine.kernels.sketches import LIKENESS, ROWS_MAX, ZoneTally
from engine.kernels.top_values import TOP, Top, TopRoom, Values
from tests.summaries import plain

DEPTHS = st.sampled_from([1, 2, 3, 5])
WIDTH = 4
BUCKETS = 3


def places_of(values: list[int], depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(hashes, places, buckets) of values, as the kernels make them."""
    hashes = np.empty(len(values), np.uint64)
    value_hashes.integer_hashes(np.array(values, np.int64), hashes)
    places, bucket = np.empty((len(values), depth), np.int32), np.empty(len(values), np.int32)
    sketches.sketch_places(hashes, WIDTH, places)
    sketches.hash_buckets(hashes, BUCKETS, bucket)
    return hashes, places, bucket


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), DEPTHS)
def test_places_are_those_of_the_hash(values: list[int], depth: int) -> None:
    hashes, places, bucket = places_of(values, depth)
    assert hashes.tolist() == [plain.integer_hash(value) for value in values]
    for i, value in enumerate(values):
        hash_ = plain.integer_hash(value)
        assert bucket[i] == plain.bucket_of(hash_, BUCKETS)
        wanted = [2 * counter + (sign < 0) for counter, sign in plain.places_of(hash_, depth, WIDTH)]
        assert places[i].tolist() == wanted


@given(st.lists(st.floats() | st.integers(-(2**62), 2**62).map(float), max_size=20))
def test_doubles_have_the_hash_of_the_integer_that_they_equal(values: list[float]) -> None:
    doubles = np.array(values, np.float64)
    hashes = np.empty(len(values), np.uint64)
    value_hashes.double_hashes(doubles, doubles.view(np.int64), hashes)
    for value, hash_ in zip(values, hashes.tolist(), strict=True):
        if value == value and abs(value) < 2**63 and value == int(value):
            assert hash_ == plain.integer_hash(int(value))
        else:
            assert hash_ == plain.integer_hash(int(np.float64(value).view(np.int64)))


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 3), st.integers(0, 300)), max_size=80),
    DEPTHS,
    st.sampled_from([0.0, 0.5, 0.9]),
    st.integers(2, 6),
    st.integers(1, 20),
    st.lists(st.integers(0, 80), max_size=3),
)
def test_a_zone_ends_at_the_row_where_its_confidence_falls(
    values: list[int | None], depth: int, theta: float, rows_min: int, piece: int, cuts: list[int]
) -> None:
    hashes, places, bucket = places_of([value or 0 for value in values], depth)
    bucket[[value is None for value in values]] = BUCKETS
    size = depth * WIDTH
    counters, rows = np.zeros((BUCKETS, size), np.int32), np.zeros(BUCKETS + 1, np.int32)
    tally = ZoneTally(
        np.zeros(depth, np.int64),
        np.array([0.0, -1.0, 0.0, 0.0, 1.0]),
        np.zeros((BUCKETS, size), np.int32),
        np.zeros(depth, np.int64),
    )
    scratch = np.empty(depth, np.int64)
    ended, at = -1, 0
    for stop in [*sorted(min(cut, len(values)) for cut in cuts), len(values)]:
        if ended < 0:
            args = (places, bucket, (at, stop), theta, rows_min, piece, scratch)
            ended, at = sketches.summarise(counters, rows, tally, *args), stop

    cells, before = plain.PlainCells(depth, WIDTH), plain.PlainCells(depth, WIDTH)
    reference: float | None = None
    wanted, likeness = -1, 1.0
    for i, value in enumerate(values):
        if value is None:
            cells.rows[BUCKETS] += 1
        else:
            cells.enter(int(hashes[i]), int(bucket[i]))
        n = sum(count for one, count in cells.rows.items() if one < BUCKETS)
        if value is not None and n >= rows_min and (theta > 0 or reference is None):
            only = plain.PlainCells(depth, WIDTH, cells.counters, defaultdict(int, {0: n}))
            now, reference = plain.confidence(only, reference, rows_min)
            if now < theta:
                wanted = i + 1
                break
        if theta > 0 and (i + 1) % piece == 0:
            likeness = plain.likeness(before, cells, BUCKETS, rows_min)
            before = plain.PlainCells(depth, WIDTH, cells.counters.copy(), cells.rows.copy())
            if likeness < theta:
                wanted = i + 1
                break
    assert ended == wanted
    assert tally.progress[LIKENESS] == likeness
    assert rows.tolist() == [cells.rows[one] for one in range(BUCKETS + 1)]
    for one, counter in np.ndindex(counters.shape):
        assert counters[one, counter] == cells.counters[one, counter]
    assert tally.squares.tolist() == cells.squares()


@given(st.lists(st.lists(st.integers(0, 40), max_size=30), min_size=2, max_size=5), DEPTHS, st.integers(0, 2))
def test_add_then_subtract_is_the_identity_and_add_is_a_sketch_of_all_rows(
    zones: list[list[int]], depth: int, shift: int
) -> None:
    upper, upper_rows = np.zeros((BUCKETS, depth * WIDTH), np.int32), np.zeros(BUCKETS + 1, np.int32)
    whole = plain.PlainCells(depth, WIDTH)
    parts = []
    for values in zones:
        cells = plain.PlainCells(depth, WIDTH)
        for value in values:
            hash_ = plain.integer_hash(value)
            cells.enter(hash_, plain.bucket_of(hash_, BUCKETS))
            whole.enter(hash_, plain.bucket_of(hash_, BUCKETS) >> shift)
        parts.append(arrays_of(cells, depth))
        assert sketches.fold(upper, upper_rows, *parts[-1], shift, 1)
    for one, other in zip((upper, upper_rows), arrays_of(whole, depth), strict=True):
        assert (one == other).all()
    for part in parts[1:]:
        sketches.fold(upper, upper_rows, *part, shift, -1)
    alone, alone_rows = np.zeros_like(upper), np.zeros_like(upper_rows)
    sketches.fold(alone, alone_rows, *parts[0], shift, 1)
    assert (upper == alone).all()
    assert (upper_rows == alone_rows).all()


def arrays_of(cells: plain.PlainCells, depth: int) -> tuple[np.ndarray, np.ndarray]:
    counters, rows = np.zeros((BUCKETS, depth * WIDTH), np.int32), np.zeros(BUCKETS + 1, np.int32)
    for (bucket, counter), count in cells.counters.items():
        counters[bucket, counter] = count
    for bucket, count in cells.rows.items():
        rows[bucket] = count
    return counters, rows


def test_add_refuses_more_rows_than_a_counter_counts_and_changes_nothing() -> None:
    one, other = np.ones((1, 4), np.int32), np.ones((1, 4), np.int32)
    rows, more = np.array([ROWS_MAX - 1, 1], np.int32), np.array([1, 0], np.int32)
    assert not sketches.fold(one, rows, other, more, 0, 1)
    assert (one == 1).all()
    assert rows.tolist() == [ROWS_MAX - 1, 1]


@given(st.lists(st.integers(0, 200), max_size=150), st.lists(st.integers(1, 60), min_size=1), DEPTHS)
def test_lists_have_the_largest_estimates_of_what_competed(
    values: list[int], cuts: list[int], depth: int
) -> None:
    hashes, places, bucket = places_of(values, depth)
    counters, rows = np.zeros((BUCKETS, depth * WIDTH), np.int32), np.zeros(BUCKETS + 1, np.int32)
    tally = ZoneTally(
        np.zeros(depth, np.int64),
        np.array([0.0, -1.0, 0.0, 0.0, 1.0]),
        np.zeros_like(counters),
        np.zeros(depth, np.int64),
    )
    top = Top(
        np.zeros((BUCKETS, TOP), np.uint64),
        np.zeros((BUCKETS, TOP), np.int64),
        np.zeros((BUCKETS, TOP), np.int32),
        np.ones((BUCKETS, TOP), np.int32),
        np.zeros((BUCKETS, TOP, depth), np.int32),
    )
    room = TopRoom(np.empty(depth, np.int64), np.empty(depth, np.int32))
    table, chosen = np.zeros((512, 2), np.uint64), np.empty(len(values), np.int64)
    times = np.empty(len(values), np.int32)
    cells = plain.PlainCells(depth, WIDTH)
    listed: list[dict[int, int]] = [{} for _ in range(BUCKETS)]  # last row by hash
    at = piece = 0
    while at < len(values):
        stop = min(len(values), at + cuts[piece % len(cuts)])
        args = ((at, stop), 0.0, 2, 1_000, np.empty(depth, np.int64))
        sketches.summarise(counters, rows, tally, places, bucket, *args)
        part = Values(hashes[at:stop], bucket[at:stop], places[at:stop], np.ones(stop - at, np.int32))
        distinct = top_values.latest(part, stop - at, at, top, table, chosen, times)
        assert (table[:, 1] == 0).all()
        top_values.refresh(counters, rows, top, room)
        full = top.estimate[:, -1] > 0
        top_values.offer(counters, rows, part, chosen, times, distinct, at, full, top, room)

        for row in range(at, stop):
            cells.enter(int(hashes[row]), int(bucket[row]))
        for one, values_of in enumerate(listed):
            came = [row for row in range(at, stop) if bucket[row] == one]
            held = {hash_: row for hash_, row in values_of.items() if cells.estimate(hash_, one)}
            offered = {int(hashes[row]): row for row in came}
            held |= {hash_: row for hash_, row in offered.items() if hash_ in held}
            if len(held) == TOP:
                often = Counter(int(hashes[row]) for row in came)
                offered = {hash_: row for hash_, row in offered.items() if often[hash_] > 1}
            values_of = held | offered
            ranked = sorted((-cells.estimate(hash_, one), hash_) for hash_ in values_of)
            kept = [(about, hash_) for about, hash_ in ranked if about < 0][:TOP]
            count = len(kept)
            assert top.hash[one, :count].tolist() == [hash_ for _, hash_ in kept]
            assert top.row[one, :count].tolist() == [values_of[hash_] for _, hash_ in kept]
            assert top.estimate[one].tolist() == [-about for about, _ in kept] + [0] * (TOP - count)
            listed[one] = {hash_: values_of[hash_] for _, hash_ in kept}
        at, piece = stop, piece + 1


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=7),
    DEPTHS,
    st.lists(st.integers(0, 40), max_size=8, unique=True),
    st.integers(0, 127),
)
def test_way_down_goes_where_estimates_are(
    zones: list[list[int]], depth: int, asked: list[int], wanted: int
) -> None:
    """Zones 2k and 2k + 1 are below the node k."""
    slots = len(zones) + (len(zones) + 1) // 2
    counters = np.zeros((slots, BUCKETS, depth * WIDTH), np.int32)
    rows = np.zeros((slots, BUCKETS + 1), np.int32)
    cells = [plain.PlainCells(depth, WIDTH) for _ in range(slots)]
    for zone, values in enumerate(zones):
        above = len(zones) + zone // 2
        for value in values:
            hash_ = plain.integer_hash(value)
            cells[zone].enter(hash_, plain.bucket_of(hash_, BUCKETS))
            cells[above].enter(hash_, plain.bucket_of(hash_, BUCKETS) >> 1)
    for slot, one in enumerate(cells):
        counters[slot], rows[slot] = arrays_of(one, depth)
    child = np.full((slots, 2), -1)
    for zone in range(len(zones)):
        child[len(zones) + zone // 2, zone % 2] = zone
    place = np.array([zone if wanted >> zone & 1 and zone < len(zones) else -1 for zone in range(slots)])
    upper = np.arange(slots) >= len(zones)
    forest = Forest(np.arange(slots), upper.astype(np.int64), child, place, np.flatnonzero(upper))
    _, places, bucket = places_of(asked, depth)
    out = CandidateRoom(*(np.empty(len(asked) * len(zones) + 1, np.int32) for _ in range(4)))
    room = DescentRoom(np.empty(depth, np.int64), np.empty(STACK, np.int64))
    share = np.ones(len(asked), np.int32)
    count = descents.descend(counters, rows, places, bucket, share, forest, out, room)

    expected = []
    for key, value in enumerate(asked):
        hash_ = plain.integer_hash(value)
        its = plain.bucket_of(hash_, BUCKETS)
        for zone in range(len(zones)):
            if wanted >> zone & 1 and cells[zone].rows[its]:
                above = cells[len(zones) + zone // 2].estimate(hash_, its >> 1)
                expected.append((key, zone, its, cells[zone].estimate(hash_, its) if above else 0))
    assert list(zip(*(column[:count].tolist() for column in out), strict=True)) == expected


@pytest.mark.parametrize(
    "numbers", [[3], [4, 1], [9, 1, 5], [2, 8, 4, 7], [5, 5, 1, 9, -3], [6, 5, 4, 3, 2, 1]]
)
def test_f2_is_the_median_of_the_sums_of_squares(numbers: list[int]) -> None:
    counters = np.array(numbers, np.int32).reshape(1, 1, -1)
    out = np.zeros((1, 1), np.int64)
    sketches.squared(counters, len(numbers), out)
    assert out[0, 0] == plain.median([number * number for number in numbers])
