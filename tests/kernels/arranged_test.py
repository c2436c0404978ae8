"""Rows by key: the kernels against twins over lists."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import arranged as kernels
from engine.kernels.arranged import NOBODY, Arranged


def rows_of(keys: list[int]) -> Arranged:
    """Rows of these keys, one a slot, in no chain yet."""
    n = len(keys)
    return Arranged(
        first=np.full(8, NOBODY, np.int32),
        key=np.array(keys, np.int32),
        following=np.full(n, NOBODY, np.int32),
        previous=np.full(n, NOBODY, np.int32),
        valid_from=np.zeros(n, np.int64),
        valid_to=np.zeros(n, np.int64),
        starts=np.zeros(n, np.int64),
        counts=np.zeros(n, np.int32),
        words=np.zeros(0, np.int32),
        bits=np.zeros(0, np.uint64),
    )


@given(st.lists(st.integers(-1, 7), max_size=40), st.sets(st.integers(0, 7)), st.integers(0, 2**32 - 1))
def test_slots_of_keys_are_all_that_are_in_their_chains(keys: list[int], wanted: set[int], seed: int) -> None:
    rows, rng = rows_of(keys), random.Random(seed)
    slots = list(range(len(keys)))
    rng.shuffle(slots)
    kernels.link(np.array(slots, np.int32), rows)
    gone = slots[: len(slots) // 3]
    kernels.unlink(np.array(gone, np.int32), rows)
    out = np.empty(len(keys), np.int32)
    count = kernels.slots_of(np.array(sorted(wanted), np.int32), rows, out)
    expected = [slot for slot in slots if keys[slot] in wanted and slot not in gone]
    assert sorted(out[:count].tolist()) == sorted(expected)
