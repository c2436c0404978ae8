"""Kernels of selections against plain twins."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels import selections
from engine.kernels.selections import Constants, EntryCells, Promise, Sharers, VisitedRows

MEMBERS, WORDS = 70, 2


def looks_for(wanted: np.ndarray, entry: int, member: int) -> bool:
    return bool(int(wanted[entry, member >> 6]) >> (int(member) & 63) & 1)


def members_of(wanted: np.ndarray, entry: int) -> list[int]:
    return [member for member in range(MEMBERS) if looks_for(wanted, entry, member)]


def some_wanted(rng: np.random.Generator, n: int) -> np.ndarray:
    mask = np.zeros((n, 64 * WORDS), np.bool_)
    mask[:, :MEMBERS] = rng.random((n, MEMBERS)) < 0.5
    return np.packbits(mask, axis=1, bitorder="little").view(np.uint64)


def ascending(rng: np.random.Generator, places: int, n: int) -> np.ndarray:
    """int32[places + 1]: where n things of so many places begin."""
    cuts = np.sort(rng.integers(0, n + 1, places - 1))
    return np.concatenate([[0], cuts, [n]]).astype(np.int32)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("room", [0, 10_000], ids=["no room", "room"])
def test_hits_are_those_of_accepting_predicates_whose_members_look_for_the_row(seed: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    n, listed = 40, 15
    places = 64 + 4
    rows = VisitedRows(
        rng.integers(0, 2**63, (1, n)).astype(np.uint64) & rng.integers(0, 2**63, (1, n)).astype(np.uint64),
        rng.integers(0, n, listed).astype(np.int32),
        rng.integers(64, places, listed).astype(np.int32),
        rng.integers(0, 5, n).astype(np.int32),
        np.sort(rng.choice(1_000, n, replace=False)),
    )
    sharers = Sharers(
        ascending(rng, places, 90),
        rng.integers(0, MEMBERS, 90).astype(np.int32),
        rng.integers(0, 600, MEMBERS),
    )
    wanted = some_wanted(rng, 5)
    accepted = [
        (row, place) for row in range(n) for place in range(64) if int(rows.bits[0, row]) >> place & 1
    ] + list(zip(rows.row.tolist(), rows.place.tolist(), strict=True))
    expected = sorted(
        (int(member), row)
        for row, place in accepted
        for member in sharers.members[sharers.starts[place] : sharers.starts[place + 1]]
        if looks_for(wanted, rows.entry[row], member) and rows.ordinal[row] >= sharers.floor[member]
    )
    member, row = np.empty(room, np.int32), np.empty(room, np.int32)
    count = selections.hits_of(rows, sharers, wanted, member, row)
    assert count == len(expected)
    if not room:
        return
    assert sorted(zip(member[:count].tolist(), row[:count].tolist(), strict=True)) == expected
    starts, out = np.zeros(MEMBERS + 1, np.int64), np.empty(count, np.int64)
    selections.by_member(member[:count], row[:count], starts, out)
    for one in range(MEMBERS):
        np.testing.assert_array_equal(
            out[starts[one] : starts[one + 1]], row[:count][member[:count] == one].astype(np.int64)
        )
    cells, bucket = np.ones((MEMBERS, 3), np.int64), rng.integers(0, 3, 5).astype(np.int32)
    entry = rows.entry[out]
    twin = cells.copy()
    for one in range(MEMBERS):
        for hit in range(starts[one], starts[one + 1]):
            twin[one, bucket[entry[hit]]] += 1
    selections.count_cells(starts, entry, bucket, cells)
    np.testing.assert_array_equal(cells, twin)


@pytest.mark.parametrize("seed", range(3))
def test_promise_and_estimates_of_constants_are_sums_over_members_that_look_for_the_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, places, zones, keys = 12, 6, 3, 9
    cells = EntryCells(
        rng.integers(0, places, n).astype(np.int32),
        rng.integers(0, zones, n).astype(np.int32),
        some_wanted(rng, n),
    )
    constants = Constants(
        ascending(rng, places, 40),
        rng.integers(0, MEMBERS, 40).astype(np.int32),
        rng.integers(0, keys, 40).astype(np.int32),
    )
    estimate = rng.integers(0, 4, (keys, zones)).astype(np.int32)
    priority = rng.integers(-3, 9, (keys, zones)).astype(np.float64)
    priority[rng.random(priority.shape) < 0.2] = np.nan
    weight = rng.integers(1, 4, MEMBERS).astype(np.float64)
    share = rng.integers(0, 3, n).astype(np.float64)
    promise = Promise(np.zeros(n), np.zeros(n), np.full(n, np.inf), np.zeros(n, np.int64))
    estimated = np.zeros(40)
    selections.promise_of_constants(cells, constants, estimate, priority, weight, promise)
    selections.estimates_of_constants(cells, constants, estimate, share, estimated)
    of_constants = np.zeros(40)
    for cell in range(n):
        place, zone = cells.place[cell], cells.zone[cell]
        mine = [
            at
            for at in range(constants.starts[place], constants.starts[place + 1])
            if looks_for(cells.wanted, cell, constants.member[at])
        ]
        for at in mine:
            of_constants[at] += share[cell] * estimate[constants.key[at], zone]
        there = [at for at in mine if estimate[constants.key[at], zone] > 0]
        weights = [weight[constants.member[at]] for at in there]
        values = [priority[constants.key[at], zone] for at in there]
        ranked = [each for each in zip(weights, values, strict=True) if not np.isnan(each[1])]
        counts = [estimate[constants.key[at], zone] for at in there]
        assert promise.rows[cell] == sum(w * c for w, c in zip(weights, counts, strict=True))
        assert promise.priority[cell] == sum(w * p for w, p in ranked)
        assert promise.least[cell] == min((p for _, p in ranked), default=np.inf)
        assert promise.ranked[cell] == len(ranked)
    np.testing.assert_array_equal(estimated, of_constants)


@pytest.mark.parametrize("seed", range(3))
def test_rows_wanted_are_those_of_entries_in_the_windows_of_members(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, rows = 6, 50
    wanted, starts = some_wanted(rng, n), ascending(rng, n, rows).astype(np.int64)
    ordinal, floor = rng.integers(0, 100, rows), rng.integers(0, 100, MEMBERS)
    for entry in range(n):
        ordinal[starts[entry] : starts[entry + 1]].sort()
    bucket = rng.integers(0, 4, n).astype(np.int32)
    twin = np.zeros((MEMBERS, 4), np.int64)
    for entry in range(n):
        for member in members_of(wanted, entry):
            held = ordinal[starts[entry] : starts[entry + 1]] >= floor[member]
            twin[member, bucket[entry]] += np.count_nonzero(held)
    out = np.zeros((MEMBERS, 4), np.int64)
    selections.rows_wanted(wanted, bucket, starts, ordinal, floor, out)
    np.testing.assert_array_equal(out, twin)
