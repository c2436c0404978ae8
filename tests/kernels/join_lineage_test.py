"""Marks of rows and what they leave of combinations, against plain twins."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import join_lineage, key_table
from engine.kernels.join_lineage import EVERY, MANY
from engine.kernels.key_table import ABSENT, EMPTY, UNKNOWN
from engine.store.matches.chunks import ChunkPool
from engine.store.matches.segment_bits import DenseBlock
from tests.strategies import examples

CHUNK_ROWS = 128


@given(st.integers(0, 2**32), st.integers(1, 200), st.integers(1, 4), st.sampled_from([0.001, 0.02, 0.3]))
def test_mark_dense(seed: int, n: int, words: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    pool = ChunkPool(CHUNK_ROWS)
    block = DenseBlock(pool, -(-n // CHUNK_ROWS))
    block.room(0, n, words, n)
    accepted = rng.random((64 * words, n)) < rate
    for place, row in np.argwhere(accepted).tolist():
        chunk = row // CHUNK_ROWS
        column = join_lineage.column_at(
            block.at[chunk], CHUNK_ROWS, place >> 6, row % CHUNK_ROWS, 1 + row % CHUNK_ROWS
        )
        column[0] |= np.uint64(1 << (place & 63))
    asked = rng.random(512) < 0.5
    masks = np.zeros(8, np.uint64)
    for place in np.flatnonzero(asked).tolist():
        masks[place >> 6] |= np.uint64(1 << (place & 63))
    names = rng.permutation(512).astype(np.int32)
    marks = np.uint64(1) << rng.integers(0, 64, 512).astype(np.uint64)
    first = int(rng.integers(0, n))
    out = np.where(rng.random(n - first) < 0.1, np.uint64(EVERY), np.uint64(0))
    expected = out.tolist()
    for i in range(n - first):
        for word in range(words):
            places = [p for p in range(64 * word, 64 * word + 64) if accepted[p, first + i] and asked[p]]
            if len(places) > MANY:
                expected[i] = EVERY
            for place in places:
                expected[i] |= int(marks[names[place]])
    join_lineage.mark_dense(block.at, block.used, CHUNK_ROWS, masks, names, marks, first, out)
    assert out.tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=30), st.data())
def test_mark_pairs(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    rows = np.array([row for row, _ in pairs], np.uint16)
    slots = np.array([slot for _, slot in pairs], np.int32)
    upto = np.array(data.draw(st.lists(st.integers(0, 40), min_size=8, max_size=8)), np.int64)
    marks = np.uint64(1) << np.arange(8, dtype=np.uint64)
    first, n = data.draw(st.integers(0, 20)), data.draw(st.integers(0, 20))
    out = np.zeros(n, np.uint64)
    expected = [0] * n
    for row, slot in pairs:
        if first <= row < first + n and slot < 8 and row >= upto[slot]:
            expected[row - first] |= int(marks[slot])
    join_lineage.mark_pairs(rows, slots, upto, marks, first, out)
    assert out.tolist() == expected


@given(st.lists(st.integers(0, 15), max_size=12), st.integers(0, 15))
def test_common(marks: list[int], bits: int) -> None:
    held = np.array(marks, np.uint64)
    expected = bits
    for mark in marks[::2]:
        expected &= mark
    assert join_lineage.common(np.arange(7, 7 + len(marks), 2), 7, held, np.uint64(bits)) == expected


@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(0, 40), st.integers(-1, 3))
def test_keep_wanted(seed: int, inputs: int, count: int, came: int) -> None:
    rng = np.random.default_rng(seed)
    came = min(came, inputs - 1)
    others = int(rng.integers(0, came + 1)) if came >= 0 else 0
    first, rows = 1_000, 12
    now = rng.integers(0, 8, (inputs, rows)).astype(np.uint64)
    new = now & rng.integers(0, 8, (inputs, rows)).astype(np.uint64)
    before = now & ~new
    line = [[marks[j].ctypes.data for marks in (now, before, new)] + [first] for j in range(inputs)]
    origin = first + rng.integers(-3, 4, inputs)
    chosen = first + rng.integers(0, rows, (count, inputs))
    parts = (chosen - origin).astype(np.int32)
    begin = int(rng.integers(0, count + 1))
    expected = parts[:begin].tolist()
    for c in range(begin, count):
        at = [int(chosen[c, j] - first) for j in range(inputs)]
        wanted = np.bitwise_and.reduce([now[j, at[j]] for j in range(inputs)]) != 0
        known = np.bitwise_and.reduce([before[j, at[j]] for j in range(inputs)]) != 0
        fresh = came < 0 or (new[came, at[came]] != 0 and not any(new[j, at[j]] for j in range(others, came)))
        if wanted and fresh and not (came >= 0 and known):
            expected.append(parts[c].tolist())
    end = join_lineage.keep_wanted(parts, begin, count, origin, np.array(line, np.int64), came, others)
    assert parts[:end].tolist() == expected


@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=40), st.data())
@settings(max_examples=examples(30))
def test_rows_are_put_between_others(keys: list[int | None], data: st.DataObject) -> None:
    """In any order of lots, as if all had come in order."""
    n, first, base = len(keys), 100, 100 + data.draw(st.integers(0, 3))
    base = min(base, first + n)
    table = np.full(64, EMPTY, np.int32)
    held, back, used = np.zeros(n, np.int64), np.full(n, ABSENT, np.int32), 0
    lot_of = [data.draw(st.integers(0, 3)) for _ in keys]
    for lot in range(4):
        chosen = [i for i in range(n) if lot_of[i] == lot and first + i >= base]
        coming = np.array([keys[i] or 0 for i in chosen], np.int64)
        null = np.array([keys[i] is None for i in chosen], np.bool_)
        ordinals = first + np.array(chosen, np.int64)
        place, steps = 0, data.draw(st.integers(0, 3))
        while place < len(chosen):
            rows = key_table.SomeRows(coming, null, ordinals)
            index = key_table.Index(table, held, back, base, first, 0)
            place, used, steps = key_table.insert_some(rows, place, index, used, steps)
            assert steps >= 0
            if place < len(chosen):
                assert not steps
                steps = 100
    newest: dict[int, int] = {}
    for i, key in enumerate(keys):
        if first + i < base:
            assert back[i] == ABSENT
        elif key is None:
            assert back[i] == UNKNOWN
        else:
            assert held[i] == key
            assert back[i] == (first + i - newest[key] if key in newest else 0)
            newest[key] = first + i
    newest_rows = table[table != EMPTY]
    found = zip(held[newest_rows].tolist(), (first + newest_rows).tolist(), strict=True)
    assert sorted(found) == sorted(newest.items())
