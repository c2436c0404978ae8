"""Loops over the entries of state buffers against plain ones."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import blocks as pool
from engine.kernels import buffers, exit_order
from engine.kernels.blocks import SIZE, Blocks

seeds = st.integers(0, 2**32 - 1)
NO_POSITIONS = np.empty(0, np.int32)


@given(seeds, st.sampled_from((0, 1, 20, 100, 3_000)), st.sampled_from((1, 50, 10**6, 2**62)))
def test_sorted_by_exit_and_equal_ones_as_they_stood(seed: int, n: int, span: int) -> None:
    rng = np.random.default_rng(seed)
    places, exits = rng.permutation(n).astype(np.int32), rng.integers(-span, span, n) // 2
    start, stop = sorted(rng.integers(0, n + 1, 2).tolist())
    order = np.arange(n)
    order[start:stop] = start + np.argsort(exits[start:stop], kind="stable")
    expected = places[order].tolist(), exits[order].tolist()
    exit_order.sort(places, exits, start, stop)
    assert (places.tolist(), exits.tolist()) == expected


@given(seeds, st.integers(0, 60))
def test_heap_whose_owner_knows_where_each_entry_is(seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    places, exits, positions = np.empty(64, np.int32), np.empty(64, np.int64), np.full(64, -1, np.int32)
    plain: list[tuple[int, int]] = []
    for step in range(steps):
        if rng.random() < 0.6 or not plain:
            size = len(plain)
            places[size], exits[size] = step, rng.integers(0, 20)
            heapq.heappush(plain, (int(exits[size]), step))
            exit_order.sift_up(size, places, exits, positions)
        else:
            i = 0 if rng.random() < 0.5 else int(rng.integers(len(plain)))
            plain.remove((int(exits[i]), int(places[i])))
            heapq.heapify(plain)
            exit_order.remove(i, len(plain) + 1, places, exits, positions)
        size = len(plain)
        assert sorted(zip(exits[:size].tolist(), places[:size].tolist(), strict=True)) == sorted(plain)
        assert not size or exits[0] == plain[0][0]
        assert [int(positions[place]) for place in places[:size]] == list(
            map(exit_order.code_of_heap, range(size))
        )
        assert int((positions != -1).sum()) == size


@given(seeds, st.integers(0, 40))
def test_split_and_leave_out(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    places, exits = rng.permutation(n).astype(np.int32), rng.integers(0, 9, n)
    count = int(rng.integers(0, n + 1))
    until = int(rng.integers(0, 9))
    entries = list(zip(places[:count].tolist(), exits[:count].tolist(), strict=True))
    gone_places, gone_exits = np.empty(n, np.int32), np.empty(n, np.int64)
    gone = buffers.split(places, exits, count, until, gone_places, gone_exits)
    stay = [entry for entry in entries if entry[1] > until]
    assert list(zip(gone_places[:gone].tolist(), gone_exits[:gone].tolist(), strict=True)) == [
        entry for entry in entries if entry[1] <= until
    ]
    assert list(zip(places[: len(stay)].tolist(), exits[: len(stay)].tolist(), strict=True)) == stay
    out = [entry for entry in stay if rng.random() < 0.5]
    wrong = [(place, exit_at + 1) for place, exit_at in stay if (place, exit_at) not in out]
    asked = np.array([place for place, _ in out + wrong], np.int32)
    found = buffers.leave_out(
        places, exits, len(stay), asked, np.array([exit_at for _, exit_at in out + wrong], np.int64)
    )
    assert found == len(out)
    left = [entry for entry in stay if entry not in out]
    assert list(zip(places[: len(left)].tolist(), exits[: len(left)].tolist(), strict=True)) == left


@given(seeds, st.integers(0, 16))
def test_search_in_a_ring(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    head = int(rng.integers(16))
    entries = np.sort(rng.integers(0, 9, count))
    exits, places = np.zeros(16, np.int64), np.zeros(16, np.int32)
    at = (head + np.arange(count)) % 16
    exits[at], places[at] = entries, np.arange(count)
    for instant in range(-1, 10):
        assert buffers.first_after(exits, head, count, instant) == int((entries <= instant).sum())
    gone = rng.permutation(count)[: int(rng.integers(0, count + 1))].astype(np.int32)
    found, visited = buffers.cross_out(places, exits, head, count, gone, entries[gone])
    assert found == len(gone)
    assert visited >= found
    assert [int(place) for place in places[at] if place != -1] == [n for n in range(count) if n not in gone]


def no_blocks(count: int, lists: int) -> Blocks:
    one, many = np.zeros(count, np.int32), np.zeros(count * SIZE, np.int32)
    counts = np.zeros(lists, np.int64)
    lasts = np.zeros(lists, np.int32), np.zeros(lists, np.int32)
    made = Blocks(
        many,
        many.astype(np.int64),
        one,
        one.copy(),
        one.copy(),
        one.copy(),
        *lasts,
        counts,
        np.array([-1, 0]),
    )
    pool.set_free(0, made)
    return made


def listed(of: int, blocks: Blocks) -> list[tuple[int, int]]:
    n = int(blocks.counts[of])
    places, exits = np.empty(n, np.int32), np.empty(n, np.int64)
    assert pool.copy(of, blocks, places, exits, 0) == n
    return list(zip(places.tolist(), exits.tolist(), strict=True))


@given(seeds, st.integers(0, 300))
def test_lists_in_blocks(seed: int, steps: int) -> None:
    """The last of three lists has what was dropped."""
    rng = np.random.default_rng(seed)
    blocks, positions = no_blocks(12, 3), np.full(4_000, -1, np.int32)
    plain: list[list[tuple[int, int]]] = [[], []]
    dropped: set[int] = set()
    place = 0
    for _ in range(steps):
        of, chosen = int(rng.integers(2)), rng.random()
        if chosen < 0.8:
            for _ in range(int(rng.integers(1, 9))):
                exit_at = int(rng.integers(0, 50))
                if pool.append(of, place, exit_at, blocks, positions):
                    plain[of].append((place, exit_at))
                else:
                    assert blocks.free[pool.FREE_COUNT] == 0
                place += 1
        elif chosen < 0.9 and plain[of]:
            i = int(rng.integers(len(plain[of])))
            pool.remove_at(int(positions[plain[of][i][0]]), blocks, positions)
            last = plain[of].pop()
            if i < len(plain[of]):
                plain[of][i] = last
        elif chosen < 0.96:
            until = int(rng.integers(0, 50))
            gone = np.empty(500, np.int32), np.empty(500, np.int64)
            n = pool.take_until(of, until, blocks, positions, *gone, 0)
            assert [tuple(map(int, pair)) for pair in zip(gone[0][:n], gone[1][:n], strict=True)] == [
                entry for entry in plain[of] if entry[1] <= until
            ]
            plain[of] = [entry for entry in plain[of] if entry[1] > until]
        else:
            dropped |= {place for place, _ in plain[of]}
            pool.pass_on(of, 2, blocks)
            plain[of] = []
            wanted = int(rng.integers(0, 60))
            places = np.empty(wanted + SIZE, np.int32)
            taken = set(places[: pool.take_whole(2, wanted, blocks, places)].tolist())
            assert len(taken) >= min(wanted, len(dropped))
            assert taken <= dropped
            dropped -= taken
        assert [listed(each, blocks) for each in range(2)] == plain
        assert int(blocks.counts[2]) == len(dropped)
        for each in plain:
            assert [int(blocks.places[positions[place]]) for place, _ in each] == [place for place, _ in each]
