"""Spelling out set bits agrees with a plain twin on random input."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import pairs
from tests.strategies import examples


@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.integers(0, 40), st.sampled_from([0.0, 0.05, 0.9]))
@settings(max_examples=examples(60))
def test_each_bit_is_a_pair_with_each_of_its_holders(seed: int, width: int, n: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.random((width, n, 64)) < density
    words = np.packbits(bits, axis=-1, bitorder="little").view(np.uint64).reshape(width, n)
    lengths = rng.integers(0, 3, 64 * width)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    holders = rng.permutation(int(lengths.sum())).astype(np.int32)
    expected = [
        (row, holder)
        for word in range(width)
        for row in range(n)
        for bit in np.flatnonzero(bits[word, row])
        for holder in holders[starts[64 * word + bit] : starts[64 * word + bit + 1]]
    ]

    total, room = len(expected), int(rng.integers(0, len(expected) + 3))
    rows, found = np.full(room + 1, -1, np.int32), np.full(room + 1, -1, np.int32)

    assert pairs.spell_bits(words, starts, holders, rows[:room], found[:room]) == total

    written = min(total, room)
    assert list(zip(rows[:written], found[:written], strict=True)) == expected[:written]
    assert (rows[written:] == -1).all()
    assert (found[written:] == -1).all()
