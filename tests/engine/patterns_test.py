"""Who accepts which rows, by sets of slots: what each slot by itself says."""

from __future__ import annotations

import numpy as np
import pytest

from engine.store.matches.accepted import Slots, accepted_of
from engine.store.matches.chunks import ChunkPool
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.part_matches import PartMatches
from engine.store.matches.patterns import sets_of
from engine.store.matches.segment_bits import SegmentBits
from engine.store.matches.slot_lists import lists_of

ROWS, SLOTS = 600, 200


def matches_of(rng: np.random.Generator, shares: np.ndarray, different: int) -> PartMatches:
    """Slots match a share of so many kinds of rows; every third is kept as lists, a block may be."""
    kinds = rng.integers(0, different, ROWS)
    accepts = (rng.random((SLOTS, different)) < shares[:, None])[:, kinds]
    place = np.where(np.arange(SLOTS) % 3 == 0, SELECTIVE, rng.permutation(SLOTS)).astype(np.int32)
    bits = SegmentBits(ChunkPool(), ROWS)
    words = np.zeros((-(-SLOTS // 64), ROWS), np.uint64)
    for slot in np.flatnonzero(place >= 0).tolist():
        words[place[slot] >> 6] |= accepts[slot].astype(np.uint64) << np.uint64(place[slot] & 63)
    for word, each in enumerate(words):
        bits.merge_dense(word, each, (1 << 64) - 1, ROWS)
    selective = np.flatnonzero(place == SELECTIVE)
    rows, slots = np.nonzero(accepts[selective].T)
    listed = lists_of(rows.astype(np.uint16), selective[slots].astype(np.int32), None, ROWS)
    while not bits.pack(0, ROWS):
        pass
    return PartMatches(Cohorts(0, place), bits, (listed,))


@pytest.mark.parametrize("share", [0.0, 0.002, 0.5, 1.0])
@pytest.mark.parametrize("different", [1, 5, 600])
@pytest.mark.parametrize("patterns_max", [1, 256])
def test_sets_of_rows_are_the_slots_that_accept_them(share: float, different: int, patterns_max: int) -> None:
    rng = np.random.default_rng(different)
    matches = matches_of(rng, np.full(SLOTS, share), different)
    for count in (1, SLOTS):
        asked = rng.choice(SLOTS, count, replace=False).astype(np.int32)
        slots = Slots(asked, asked + np.int32(7))
        for kept in (0.0, 0.01, 1.0):
            rows = np.flatnonzero(rng.random(ROWS) < kept)
            found = sets_of(matches, slots, rows, patterns_max)
            pairs = sorted(
                (row, slot)
                for row, number in zip(found.rows.tolist(), found.numbers.tolist(), strict=True)
                for slot in found.sets[number].tolist()
            )
            at, owners = accepted_of(matches, slots, rows)
            assert pairs == sorted(zip(at.tolist(), owners.tolist(), strict=True))
