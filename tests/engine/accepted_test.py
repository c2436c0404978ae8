"""Who accepts which rows of a segment: many slots at once, beside each slot by itself."""

from __future__ import annotations

import numpy as np
import pytest

from engine.store.matches.accepted import FEW_SLOTS, Slots, accepted, accepted_at_most, accepted_of
from engine.store.matches.chunks import ChunkPool
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.part_matches import PairLog, PartMatches
from engine.store.matches.segment_bits import SegmentBits
from engine.store.matches.slot_lists import SlotLists, lists_of

ROWS, SLOTS = 3_000, 200


def drawn(rng: np.random.Generator, pairs: int, spoken_for: np.ndarray | None, upto: int = ROWS) -> SlotLists:
    among = np.arange(SLOTS) if spoken_for is None else spoken_for
    codes = np.unique(rng.integers(0, upto, pairs) * SLOTS + rng.choice(among, pairs))
    slots = (codes % SLOTS).astype(np.int32)
    return lists_of((codes // SLOTS).astype(np.uint16), slots, spoken_for, upto)


def logged(rng: np.random.Generator, pairs: int) -> PairLog:
    """Pairs by row, of all slots. Those of a late slot below its lists are of whoever had it before."""
    log, codes = PairLog(), np.unique(rng.integers(0, ROWS * SLOTS, pairs))
    log.append((codes // SLOTS).astype(np.uint16), (codes % SLOTS).astype(np.int32), 0)
    return log


def together(matches: PartMatches, slots: Slots, first: int, last: int) -> list[tuple[int, int]]:
    rows, owners = accepted(matches, slots, first, last)
    return sorted(zip(rows.tolist(), owners.tolist(), strict=True))


@pytest.mark.parametrize("lots", [0, 1, 3])
@pytest.mark.parametrize("count", [1, FEW_SLOTS, FEW_SLOTS + 1, 150])
def test_pairs_are_those_of_each_slot(lots: int, count: int) -> None:
    rng = np.random.default_rng(10 * count + lots)
    late = [np.sort(rng.choice(SLOTS, 40, replace=False)).astype(np.int32) for _ in range(lots)]
    lists = tuple(drawn(rng, 2_000, None if place == 0 else slots) for place, slots in enumerate(late))
    nothing = SlotLists(np.empty(0, np.int32), np.zeros(1, np.int32), np.empty(0, np.uint16), ROWS)
    cohorts = Cohorts(0, np.full(SLOTS, SELECTIVE, np.int32))
    matches = PartMatches(cohorts, SegmentBits(ChunkPool(), ROWS), (*lists[:1], nothing, *lists[1:]))
    slots = Slots(rng.choice(SLOTS + 20, count, replace=False).astype(np.int32))
    for _ in range(5):
        first, last = sorted(rng.integers(0, ROWS + 1, 2).tolist())
        each = [
            (row, slot)
            for slot in slots.slots.tolist()
            for row in matches.rows_of(slot, first, last).tolist()
        ]
        assert together(matches, slots, first, last) == sorted(each)
        assert len(each) <= accepted_at_most(matches, slots, last - first)
        rows = np.flatnonzero(rng.random(ROWS) < rng.choice([0.001, 0.2, 1.0]))
        at, owners = accepted_of(matches, slots, rows)
        each = [
            (row, slot) for slot in slots.slots.tolist() for row in matches.rows_of(slot, 0, ROWS).tolist()
        ]
        wanted = sorted(pair for pair in each if pair[0] in set(rows.tolist()))
        assert sorted(zip(rows[at].tolist(), owners.tolist(), strict=True)) == wanted
        each = [pair for pair in each if first <= pair[0] < last]
        named = Slots(slots.slots[::-1], -slots.slots[::-1])
        assert together(matches, named, first, last) == sorted((row, -slot) for row, slot in each)
        # A query that comes: those who asked before see its matches as well.
        mine = np.array([int(rng.integers(SLOTS))], np.int32)
        matches = matches.made([], drawn(rng, 30, mine), np.ones(SLOTS, np.bool_))


@pytest.mark.parametrize("lots", [1, 3])
@pytest.mark.parametrize("count", [1, FEW_SLOTS, FEW_SLOTS + 1, 150])
def test_pairs_of_an_open_segment(lots: int, count: int) -> None:
    rng = np.random.default_rng(100 * count + lots)
    slots = Slots(rng.choice(SLOTS + 20, count, replace=False).astype(np.int32))
    cohorts, late = Cohorts(0, np.full(SLOTS, SELECTIVE, np.int32)), list[SlotLists]()
    for upto in np.sort(rng.integers(1, ROWS, lots)).tolist():
        mine = np.sort(rng.choice(SLOTS, 80, replace=False)).astype(np.int32)
        late.append(drawn(rng, 2_000, mine, upto))
        matches = PartMatches(cohorts, SegmentBits(ChunkPool(), ROWS), tuple(late), logged(rng, 4_000))
        each = [
            (row, slot) for slot in slots.slots.tolist() for row in matches.rows_of(slot, 0, ROWS).tolist()
        ]
        first, last = sorted(rng.integers(0, ROWS + 1, 2).tolist())
        assert together(matches, slots, first, last) == sorted(
            (row, slot) for row, slot in each if first <= row < last
        )
        rows = np.flatnonzero(rng.random(ROWS) < 0.01)
        at, owners = accepted_of(matches, slots, rows)
        wanted = sorted(pair for pair in each if pair[0] in set(rows.tolist()))
        assert sorted(zip(rows[at].tolist(), owners.tolist(), strict=True)) == wanted
