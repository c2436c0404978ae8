"""Matches of selective slots in the open segment, beside a plain filter of the log."""

from __future__ import annotations

import numpy as np
import pytest

from engine.store.matches.chunks import ChunkPool
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.part_matches import UNLISTED_MIN, PairLog, PartMatches
from engine.store.matches.segment_bits import SegmentBits
from engine.store.matches.slot_lists import lists_of


def slots_all_selective(count: int) -> Cohorts:
    return Cohorts(0, np.full(count, SELECTIVE, np.int32))


@pytest.mark.parametrize("slots", [5, 300, 40 * UNLISTED_MIN])
def test_rows_of_a_slot_are_those_of_the_log_in_views_of_every_age(slots: int) -> None:
    rng = np.random.default_rng(slots)
    cohorts, log = slots_all_selective(slots), PairLog()
    late = lists_of(np.array([3, 9], np.uint16), np.array([1, 1], np.int32), np.array([1], np.int32), 2_000)
    rows, owners = np.empty(0, np.int64), np.empty(0, np.int64)
    views: list[tuple[int, PartMatches]] = []
    n = 0
    for _ in range(40):
        came = int(rng.integers(0, 1_500))
        new = np.repeat(np.arange(came), rng.integers(0, 3, came))
        which = rng.integers(0, slots, len(new))
        log.append(new.astype(np.uint16), which.astype(np.int32), n)
        rows, owners = np.concatenate([rows, n + new]), np.concatenate([owners, which])
        n += came
        views.append((n, PartMatches(cohorts, SegmentBits(ChunkPool(), 65_536), (late,), log)))
        for seen, matches in (views[-1], views[int(rng.integers(len(views)))]):
            first, last = sorted(rng.integers(0, seen + 1, 2).tolist())
            for slot in (0, 1, int(rng.integers(slots)), slots - 1):
                after = max(first, 2_000) if slot == 1 else first
                expected = rows[(owners == slot) & (rows >= after) & (rows < last)].tolist()
                if slot == 1:
                    expected = [row for row in (3, 9) if first <= row < last] + expected
                assert matches.rows_of(slot, first, last).tolist() == expected
                assert matches.count_of(slot, first, last) == len(expected)
