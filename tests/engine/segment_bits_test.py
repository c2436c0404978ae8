"""Bits in chunks are the plain matrix they stand for: at every boundary and in either form."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import chunks
from engine.kernels.bitmaps import EVERY_BIT
from engine.store.matches.chunks import (
    CHUNK_ROWS,
    CHUNK_WORDS,
    LENT_FOR_ONE,
    PREPARED,
    WAITING_MIN,
    ChunkPool,
)
from engine.store.matches.segment_bits import DenseBlock, ListBlock, NamedPlaces, SegmentBits
from tests.strategies import examples

POOL = ChunkPool(rows=8)


def agree(bits: SegmentBits, model: np.ndarray, n: int, rng: np.random.Generator) -> None:
    """model: bool[places, rows]."""
    bits._check(n)
    first, last = sorted(rng.integers(0, n + 1, 2).tolist())
    for place in rng.integers(0, len(model), 12).tolist():
        wanted = first + np.flatnonzero(model[place, first:last])
        assert bits.rows_of(place, first, last).tolist() == wanted.tolist()
        assert bits.count_of(place, first, last) == len(wanted)
    for word, expected in enumerate(words_of(model[:, first:last])):
        assert (bits.word(word, first, last) == expected).all()
    slots = np.flatnonzero(rng.random(len(model)) < 0.5)
    places = np.where(rng.random(len(slots)) < 0.8, slots, -1).astype(np.int32)
    if (places >= 0).any():
        named = NamedPlaces(places, slots.astype(np.int32) + 7)
        rows, names = bits.pairs(named, first, last)
        found = zip(rows.tolist(), names.tolist(), strict=True)
        asked = [place for place in places.tolist() if place >= 0]
        wanted_pairs = [
            (row, place + 7) for place in asked for row in first + np.flatnonzero(model[place, first:last])
        ]
        assert sorted(found) == sorted(wanted_pairs)
        some = np.flatnonzero(rng.random(n) < rng.random())
        at, names = bits.pairs_of_rows(named, some)
        found = zip(some[at].tolist(), names.tolist(), strict=True)
        wanted_pairs = [(row, place + 7) for place in asked for row in some[model[place, some]]]
        assert sorted(found) == sorted(wanted_pairs)


def words_of(model: np.ndarray) -> np.ndarray:
    """uint64[words, rows] of bool[64 * words, rows]."""
    words = len(model) // 64
    packed = np.packbits(model.reshape(words, 64, -1), axis=1, bitorder="little")
    return np.ascontiguousarray(packed.transpose(0, 2, 1)).view(np.uint64)[:, :, 0]


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from("rrrmmp"), max_size=14), st.floats(0, 0.4))
@settings(max_examples=examples(60), deadline=None)
def test_any_course(seed: int, course: list[str], density: float) -> None:
    """Rows come (r); once none come any more, places come (m) and blocks are packed (p)."""
    rng = np.random.default_rng(seed)
    words, capacity = int(rng.integers(1, 20)), int(rng.integers(1, 60))
    bits = SegmentBits(POOL, capacity)
    model = np.zeros((64 * words, capacity), np.bool_)
    n = 0
    for step in [one for one in course if one == "r"] + [one for one in course if one != "r"]:
        if step == "r":
            count = int(rng.integers(0, capacity - n + 1))
            silent = np.repeat(rng.random(words) < 0.5, 64)
            model[:, n : n + count] = (rng.random((64 * words, count)) < density) & ~silent[:, None]
            new = words_of(model[:, n : n + count])
            for block in range(-(-words // CHUNK_WORDS)):
                mine = np.arange(block * CHUNK_WORDS, min(words, (block + 1) * CHUNK_WORDS))
                if not new[mine].any():
                    bits.clear(block, n, count)
                    continue
                mine = mine[: np.flatnonzero(new[mine].any(axis=1))[-1] + 1]
                bits.room(block, n, count, len(mine))
                bits.put_words(mine, n, new[mine])
            n += count
            whole = words_of(model[:, :n])
            assert (bits.words_at(np.arange(words), 0, n) == whole).all()
            assert (bits.some(0, n, 3) == np.bitwise_or.reduce(whole, axis=0)[::3]).all()
        elif step == "m" and n:
            word = int(rng.integers(words))
            mask = int(rng.integers(0, EVERY_BIT, dtype=np.uint64))
            came = rng.random((64, n)) < density
            taken = np.array([mask >> bit & 1 for bit in range(64)], np.bool_)
            model[64 * word : 64 * word + 64, :n][taken] = came[taken]
            bits.merge(word, words_of(came)[0], mask, n)
        elif step == "p":
            for number in range(len(bits.blocks)):
                bits.pack(number, n)
        agree(bits, model[:, :n], n, rng)


@pytest.mark.parametrize("slots", [511, 512, 513])
@pytest.mark.parametrize("n", [CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_boundaries_of_real_chunks(slots: int, n: int) -> None:
    rng = np.random.default_rng(slots * n)
    words = -(-slots // 64)
    model = np.zeros((64 * words, n), np.bool_)
    model[:slots] = rng.random((slots, n)) < 0.01
    bits = SegmentBits(ChunkPool(), 8 * CHUNK_ROWS)
    bits.put_words(np.arange(words), 0, words_of(model))
    agree(bits, model, n, rng)
    assert isinstance(bits.blocks[0], DenseBlock)
    assert len(bits.blocks) == (2 if slots > 512 else 1)
    for number, block in enumerate(bits.blocks):
        assert isinstance(block, DenseBlock)
        for _ in range(int(block.used.max()) - 1):
            assert not bits.pack(number, n)
            agree(bits, model, n, rng)
        assert bits.pack(number, n)
        assert isinstance(bits.blocks[number], ListBlock)
        assert bits.pack(number, n)
    agree(bits, model, n, rng)


def test_a_chunk_comes_back_when_its_last_reader_lets_go() -> None:
    pool = ChunkPool()
    bits = SegmentBits(pool, CHUNK_ROWS)
    bits.put_words(np.arange(8), 0, np.full((8, 10), 7, np.uint64))
    block = bits.blocks[0]
    assert isinstance(block, DenseBlock)
    chunk = int(block.at[0])
    assert chunk % 64 == 0
    del bits
    gc.collect()
    assert pool.lent == 1
    assert chunk not in [pool.take() for _ in range(40)]
    assert block.word(3, 2, 5).tolist() == [7, 7, 7]
    del block
    gc.collect()
    assert pool.lent == 40
    assert pool.take() == chunk


def test_a_block_that_matches_nothing_is_let_go_of_when_it_is_packed() -> None:
    pool = ChunkPool()
    bits = SegmentBits(pool, 8 * CHUNK_ROWS)
    none = np.zeros((16, 100), np.uint64)
    some = none.copy()
    some[9, 99] = 1
    bits.put_words(np.arange(16), 0, none)
    bits.put_words(np.arange(16), 8_150, some)
    for number in range(2):
        while not bits.pack(number, 9_000):
            pass
    assert bits.blocks[0] is None
    assert isinstance(bits.blocks[1], ListBlock)
    assert pool.lent == 0
    assert bits.rows_of(9 * 64, 0, 9_000).tolist() == [8_249]


def test_memory_that_waits_goes_back_to_the_system() -> None:
    pool = ChunkPool()

    def column(chunk: int) -> np.ndarray:
        return chunks.column_at(chunk, CHUNK_ROWS, 0, 0, CHUNK_WORDS * CHUNK_ROWS)

    held = [pool.take() for _ in range(2 * WAITING_MIN)]
    for chunk in held:
        column(chunk)[:] = 1
    pool.give_back(held)
    for _ in range(WAITING_MIN):
        pool.tidy()
    assert pool.lent == 0
    again = [pool.take() for _ in range(2 * WAITING_MIN)]
    assert sorted(again) == sorted(held)
    assert sum(int(column(chunk).any()) for chunk in again) == WAITING_MIN


def test_a_block_that_queries_came_to_is_packed_from_the_beginning() -> None:
    bits, words = SegmentBits(POOL, 40), np.arange(8)
    bits.put_words(words, 0, np.zeros((8, 40), np.uint64))
    for _ in range(3):
        assert not bits.pack(0, 40)
    bits.merge(1, np.full(40, 1 << 5, np.uint64), 1 << 5, 40)
    while not bits.pack(0, 40):
        pass
    assert isinstance(bits.blocks[0], ListBlock)
    assert bits.count_of(64 + 5, 0, 40) == 40
    assert bits.count_of(64 + 6, 0, 40) == 0


def test_memory_is_made_ahead_of_large_batches_alone() -> None:
    pool = ChunkPool()
    few = [pool.take(1) for _ in range(LENT_FOR_ONE * PREPARED)]
    assert not pool.prepare()
    many = [pool.take(CHUNK_ROWS) for _ in range(LENT_FOR_ONE * (PREPARED + 1))]
    assert pool.prepare()
    assert pool.prepare()
    assert not pool.prepare()
    assert pool.lent == len(few) + len(many)
    ready = set(pool._ready)
    assert len(ready) == 2 * PREPARED
    assert not ready.intersection(few + many)
    assert pool.take(1) not in ready
    assert {pool.take(CHUNK_ROWS) for _ in ready} == ready
