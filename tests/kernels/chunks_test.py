"""Words that lie in chunks are read and written as the plain columns they stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import chunks
from tests.strategies import examples

WORDS = 3


@dataclass
class Block:
    """Chunks of ``rows`` rows, and the plain matrix beside them."""

    rows: int
    memory: np.ndarray
    at: np.ndarray
    used: np.ndarray

    @classmethod
    def random(cls, rng: np.random.Generator, rows: int, n: int, density: float = 0.5) -> Block:
        count = -(-n // rows)
        bits = rng.random((count, WORDS, rows, 64)) < density
        memory = np.packbits(bits, axis=-1, bitorder="little").view(np.uint64)[..., 0]
        at = np.array([chunk.ctypes.data for chunk in memory], np.int64)
        return cls(rows, memory, at, rng.integers(0, WORDS + 1, count))

    def plain(self) -> np.ndarray:
        """uint64[WORDS, rows]."""
        there = np.arange(WORDS)[None, :, None] < self.used[:, None, None]
        return np.where(there, self.memory, np.uint64(0)).transpose(1, 0, 2).reshape(WORDS, -1)


BLOCKS = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 40))


@given(BLOCKS, st.integers(0, 64 * WORDS - 1), st.floats(0, 1), st.integers(1, 5))
@settings(max_examples=examples(80))
def test_reading(block, place, density, step):
    seed, rows, n = block
    rng = np.random.default_rng(seed)
    held = Block.random(rng, rows, n, density)
    plain = held.plain()
    where = held.at, held.used, rows
    first, last = sorted(rng.integers(0, n + 1, 2).tolist())
    column = plain[place >> 6]
    expected = [r for r in range(first, last) if int(column[r]) >> (place & 63) & 1]
    out = np.empty(max(1, last - first), np.int64)
    assert chunks.rows_with_bit(*where, place, first, last, out) == len(expected)
    assert out[: len(expected)].tolist() == expected
    assert chunks.count_bit(*where, place, first, last) == len(expected)
    copied = np.full(last - first, 7, np.uint64)
    chunks.read(*where, place >> 6, first, copied)
    assert (copied == column[first:last]).all()

    some = np.full(len(range(first, last, step)), 8, np.uint64)
    chunks.unite(*where, first, step, some)
    assert (some == np.bitwise_or.reduce(plain[:, first:last:step], axis=0) | np.uint64(8)).all()


@given(BLOCKS, st.floats(0, 1), st.integers(0, 60))
def test_pairs_of_rows_and_places(block, density, room):
    """As many as there is room for, and how many there are."""
    seed, rows, n = block
    rng = np.random.default_rng(seed)
    held = Block.random(rng, rows, n, density)
    plain = held.plain()
    first, last = sorted(rng.integers(0, n + 1, 2).tolist())
    masks = rng.integers(0, 2**64, 8, np.uint64) & rng.integers(0, 2**64, 8, np.uint64)
    expected = {
        (row, place)
        for row in range(first, last)
        for place in range(64 * WORDS)
        if int(plain[place >> 6][row]) & int(masks[place >> 6]) & 1 << (place & 63)
    }
    found_rows, named = np.empty(room, np.int64), np.empty(room, np.int32)
    names = rng.permutation(512).astype(np.int32)
    count = chunks.pairs(held.at, held.used, rows, masks, names, first, last, found_rows, named)
    places = np.argsort(names)[named[: min(room, count)]]
    assert count == len(expected)
    found = list(zip(found_rows[:count].tolist(), places[:count].tolist(), strict=True))
    assert len(set(found)) == len(found) == min(room, count)
    assert set(found) <= expected


@given(BLOCKS, st.integers(0, WORDS - 1), st.integers(0, 2**64 - 1))
@settings(max_examples=examples(60))
def test_writing_takes_the_masked_bits_alone(block, word, mask):
    seed, rows, n = block
    rng = np.random.default_rng(seed)
    held = Block.random(rng, rows, n)
    held.used[:] = WORDS
    first, last = sorted(rng.integers(0, n + 1, 2).tolist())
    bits, expected = rng.integers(0, 2**64, last - first, np.uint64), held.plain().copy()
    kept = expected[word, first:last] & ~np.uint64(mask)
    expected[word, first:last] = kept | bits & np.uint64(mask)
    chunks.write(held.at, rows, word, first, bits, np.uint64(mask))
    assert (held.plain() == expected).all()


def test_zeros_leave_the_rest():
    held = Block.random(np.random.default_rng(3), 20, 40, 1.0)
    chunks.zero(held.at[1], 20, 1, 3, 4, 9)
    zeros = np.argwhere(held.memory == 0).tolist()
    assert zeros == [[1, word, row] for word in (1, 2) for row in range(4, 9)]


@pytest.mark.parametrize(
    ("rows", "n", "runs"), [(100, 250, 4), (100, 250, 2), (100, 300, 1), (5, 8, 2), (9, 0, 3)]
)
def test_sampled_bits(rows, n, runs):
    held = Block.random(np.random.default_rng(2), rows, n)
    total = 0
    for chunk, used in enumerate(held.used.tolist()):
        here = min(rows, n - chunk * rows)
        for word in range(used):
            column = [int(bits).bit_count() for bits in held.memory[chunk, word, :here]]
            if runs * chunks.SAMPLE_RUN >= here:
                total += sum(column)
                continue
            firsts = [(here - chunks.SAMPLE_RUN) * i // max(1, runs - 1) for i in range(runs)]
            read = [count for f in firsts for count in column[f : f + chunks.SAMPLE_RUN]]
            total += sum(read) * here // len(read)
    assert chunks.sample(held.at, held.used, rows, n, runs) == total


def test_every_page_is_touched():
    pages = np.ones((3, chunks.PAGE_WORDS), np.uint64)
    chunks.touch(pages.ctypes.data, pages.size)
    assert (pages[:, 0] == 0).all()
    assert (pages[:, 1:] == 1).all()
