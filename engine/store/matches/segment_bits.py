"""The kept matches of the dense cohort over one segment, in blocks of 512 places.

A block is *dense*, chunks of bits (:mod:`engine.store.matches.chunks`), or *lists*, the rows of each place.
Where it has no chunk no row matches. A sealed block becomes lists where those are much smaller.

One owner writes: bits of rows that readers do not know yet, and bits of places that nobody may read yet. A
block that takes another form is replaced, so that who reads needs no lock; its chunks go back to their pool
with the last reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from engine.kernels import bitmaps, chunks, join_lineage
from engine.kernels.bitmaps import Words
from engine.model.batch import Int32Array, Int64Array
from engine.store.matches.chunks import CHUNK_WORDS, ChunkPool
from engine.store.matches.found_pairs import FoundPairs
from engine.store.matches.row_lists import RowLists, is_sparse, lists_of_bits

SAMPLED_RUNS = 2
"""Runs of rows that are sampled in each chunk of a word, to tell whether lists are smaller."""

EXPECTED_MIN = 256
EXPECTED_MAX = 1 << 16
"""Pairs that there is room for at first: EXPECTED_MIN where rows are looked up in lists; never more than
EXPECTED_MAX.
"""

NO_ROWS = np.zeros(0, np.int64)
EVERY_BIT = np.uint64(bitmaps.EVERY_BIT)


class BitTarget(Protocol):
    """Where the bits of new rows are written. Blocks are of 512 places, words of 64."""

    def room(self, block: int, start: int, n: int, words: int) -> tuple[Int64Array, int]:
        """(addresses of chunks, rows of each) of a block of which rows start .. start + n - 1 of so many
        words are about to be written; in its other words they match nothing.
        """

    def clear(self, block: int, start: int, n: int) -> None:
        """These rows match nothing in a block."""

    def words_at(self, words: Int64Array, start: int, n: int) -> Words:
        """uint64[words, n]: a copy of what these words say of rows."""

    def put_words(self, words: Int64Array, start: int, bits: Words) -> None:
        """Write that back; words ascend."""

    def some(self, start: int, n: int, step: int) -> Words:
        """uint64[rows]: the union of all words at every step-th row."""


class Matrix:
    """A plain array of words as a target: uint64[words, rows], each word's rows one after another."""

    def __init__(self, bits: Words) -> None:
        self.bits = bits
        self._rows = bits.strides[0] >> 3

    def room(self, block: int, start: int, n: int, words: int) -> tuple[Int64Array, int]:
        first = block * CHUNK_WORDS
        self.bits[first + words : first + CHUNK_WORDS, start : start + n] = 0
        return np.array([self.bits.ctypes.data + 8 * self._rows * first], np.int64), self._rows

    def clear(self, block: int, start: int, n: int) -> None:
        self.bits[block * CHUNK_WORDS : (block + 1) * CHUNK_WORDS, start : start + n] = 0

    def words_at(self, words: Int64Array, start: int, n: int) -> Words:
        return self.bits[words, start : start + n]

    def put_words(self, words: Int64Array, start: int, bits: Words) -> None:
        self.bits[words, start : start + bits.shape[1]] = bits

    def some(self, start: int, n: int, step: int) -> Words:
        found: Words = np.bitwise_or.reduce(self.bits[:, start : start + n : step], axis=0)
        return found


class DenseBlock:
    """at, used: int64[chunks], see :mod:`engine.kernels.chunks`. packed: of the first words, the row lists,
    while the block of a sealed segment is about to become lists.
    """

    __slots__ = ("_pool", "at", "packed", "used")

    def __init__(self, pool: ChunkPool, count: int) -> None:
        self._pool = pool
        self.packed: list[RowLists] = []
        self.at = np.zeros(count, np.int64)
        self.used = np.zeros(count, np.int64)

    def __del__(self) -> None:
        self._pool.give_back(chunk for chunk in self.at.tolist() if chunk)

    def room(self, start: int, n: int, words: int, zeros: int) -> None:
        """Rows start .. start + n - 1 of the first words have chunks; in words that had none, rows below
        ``zeros`` match nothing.
        """
        rows = self._pool.rows
        for chunk in range(start // rows, (start + n - 1) // rows + 1):
            known = int(self.used[chunk])
            if known >= words:
                continue
            if not known:
                self.at[chunk] = self._pool.take(n)
            if zeros > chunk * rows:
                chunks.zero(self.at[chunk], rows, known, words, 0, min(rows, zeros - chunk * rows))
            self.used[chunk] = words

    def clear(self, start: int, n: int, words: int) -> None:
        """Rows start .. start + n - 1 match nothing in words from this one on."""
        rows = self._pool.rows
        for chunk in range(start // rows, (start + n - 1) // rows + 1):
            known, begin = int(self.used[chunk]), chunk * rows
            if known > words:
                low, high = max(start, begin), min(start + n, begin + rows)
                chunks.zero(self.at[chunk], rows, words, known, low - begin, high - begin)

    def word(self, word: int, first: int, last: int) -> Words:
        """uint64[last - first]: a copy."""
        out = np.empty(last - first, np.uint64)
        chunks.read(self.at, self.used, self._pool.rows, word, first, out)
        return out


class ListBlock:
    """A block that keeps the rows of each place. lists: the row lists of each word."""

    __slots__ = ("lists",)

    def __init__(self, lists: Sequence[RowLists] = ()) -> None:
        """lists: those of the first words; no row matches in the others."""
        self.lists = [*lists, *[RowLists.empty()] * (CHUNK_WORDS - len(lists))]


GAP = 64
"""Rows that are farther apart are looked up in lists apart."""


def near(rows: Int64Array) -> list[tuple[int, int]]:
    """(start, stop) of runs of rows, ascending, that are near each other."""
    breaks = (np.flatnonzero(np.diff(rows) > GAP) + 1).tolist()
    return list(zip([0, *breaks], [*breaks, len(rows)], strict=True)) if len(rows) else []


def those_of(rows: Int64Array, found: Int64Array, names: Int32Array) -> tuple[Int64Array, Int32Array]:
    """Keeps those pairs of a row and a name whose row is one of ``rows``, and gives places in ``rows`` for
    rows. rows: ascending and near each other; none of ``found`` lies outside their range.
    """
    first = int(rows[0])
    if len(rows) == int(rows[-1]) + 1 - first:
        return found - first, names
    place_of = np.full(int(rows[-1]) + 1 - first, -1)
    place_of[rows - first] = np.arange(len(rows))
    places = place_of[found - first]
    known = places >= 0
    return places[known], names[known]


class NamedPlaces:
    """Places that are asked for together, each by a name.

    masks: uint64[8 * blocks], their bits. names: int32[512 * blocks], by place. count: how many there are.
    """

    __slots__ = ("count", "masks", "names")

    def __init__(self, places: Int32Array, names: Int32Array) -> None:
        """places: int32[n], -1 of names that have none."""
        blocks = (int(places.max(initial=-1)) >> 9) + 1
        self.count = int(np.count_nonzero(places >= 0))
        self.masks = np.zeros(CHUNK_WORDS * blocks, np.uint64)
        self.names: Int32Array = np.empty(64 * len(self.masks), np.int32)
        chunks.masks_of(places, self.masks, names, self.names)


class SegmentBits:
    """Keeps the matches of the dense cohort over one segment of at most ``rows`` rows."""

    __slots__ = ("_chunks", "_pool", "blocks")

    def __init__(self, pool: ChunkPool, rows: int) -> None:
        self._pool = pool
        self._chunks = -(-rows // pool.rows)
        self.blocks: list[DenseBlock | ListBlock | None] = []

    # --- readers ----------------------------------------------------------------------------------

    def _block(self, number: int) -> DenseBlock | ListBlock | None:
        return self.blocks[number] if number < len(self.blocks) else None

    def rows_of(self, place: int, first: int, last: int) -> Int64Array:
        """Rows first <= r < last that match, ascending. Dense: O(last - first); lists: O(rows)."""
        block = self._block(place >> 9)
        if block is None:
            return NO_ROWS
        if isinstance(block, ListBlock):
            return block.lists[place >> 6 & 7].rows(place & 63, first, last)
        out = np.empty(last - first, np.int64)
        count = chunks.rows_with_bit(block.at, block.used, self._pool.rows, place & 511, first, last, out)
        return out[:count]

    def count_of(self, place: int, first: int, last: int) -> int:
        """How many of them. Dense: O(last - first); lists: O(log matches)."""
        block = self._block(place >> 9)
        if block is None:
            return 0
        if isinstance(block, ListBlock):
            return block.lists[place >> 6 & 7].count(place & 63, first, last)
        return int(chunks.count_bit(block.at, block.used, self._pool.rows, place & 511, first, last))

    def counts(self, n: int, places: int) -> Int64Array:
        """int64[places]: how many of the first n rows match in each place. O(words * n + matches)."""
        found = np.zeros(-(-places // 64) * 64, np.int64)
        for word in range(len(found) // 64):
            block = self._block(word >> 3)
            if isinstance(block, ListBlock):
                found[64 * word : 64 * word + 64] = np.diff(block.lists[word & 7].starts)
            elif block is not None and (block.used > (word & 7)).any():
                column = block.word(word & 7, 0, n)
                bitmaps.count_per_bit(column, EVERY_BIT, n, found[64 * word : 64 * word + 64])
        return found[:places]

    def pairs(self, wanted: NamedPlaces, first: int, last: int) -> tuple[Int64Array, Int32Array]:
        """(row, name) of rows first <= r < last that match, block by block. O(words * rows + pairs) where
        bits are dense, else O(places * log matches + pairs).
        """
        found = FoundPairs(min((last - first) * wanted.count, EXPECTED_MAX))
        for number, block in enumerate(self.blocks[: len(wanted.masks) // CHUNK_WORDS]):
            if isinstance(block, DenseBlock):
                low = CHUNK_WORDS * number
                masks, names = wanted.masks[low : low + CHUNK_WORDS], wanted.names[64 * low :]
                scope = block.at, block.used, self._pool.rows, masks, names, first, last
                found.add(partial(chunks.pairs, *scope))
            elif block is not None:
                self._of_lists(number, block, wanted, first, last, found)
        return found.all()

    def _of_lists(
        self, number: int, block: ListBlock, wanted: NamedPlaces, first: int, last: int, found: FoundPairs
    ) -> None:
        for word, lists in enumerate(block.lists, CHUNK_WORDS * number):
            if wanted.masks[word] and len(lists.places):
                of = lists.starts, lists.places, wanted.masks[word], wanted.names[64 * word :], first, last
                found.add(partial(chunks.pairs_of_lists, *of))

    def dense_words(self, wanted: NamedPlaces, rows: Int64Array) -> Iterator[tuple[int, Words]]:
        """(its first place, uint64[n]) of each word in blocks of dense bits with wanted places: those of
        them that some rows match, which ascend.
        """
        if not len(rows):
            return
        first, last = int(rows[0]), int(rows[-1]) + 1
        for word in np.flatnonzero(wanted.masks).tolist():
            block = self._block(word >> 3)
            if isinstance(block, DenseBlock):
                bits = block.word(word & 7, first, last) & wanted.masks[word]
                yield 64 * word, bits if len(rows) == len(bits) else bits[rows - first]

    def pairs_of_row_lists(self, wanted: NamedPlaces, rows: Int64Array) -> tuple[Int64Array, Int32Array]:
        """(place in ``rows``, name) of those of some rows, ascending, that match in blocks that are lists."""
        if not any(isinstance(block, ListBlock) for block in self.blocks):
            return NO_ROWS, np.empty(0, np.int32)
        return self._pairs_of_lists(wanted, rows) if len(rows) else (rows, np.empty(0, np.int32))

    def _pairs_of_lists(self, wanted: NamedPlaces, rows: Int64Array) -> tuple[Int64Array, Int32Array]:
        """(place in ``rows``, name) of those in blocks that are lists."""
        places, names = [], []
        for start, stop in near(rows):
            found = FoundPairs(EXPECTED_MIN)
            first, last = int(rows[start]), int(rows[stop - 1]) + 1
            for number, block in enumerate(self.blocks[: len(wanted.masks) // CHUNK_WORDS]):
                if isinstance(block, ListBlock):
                    self._of_lists(number, block, wanted, first, last, found)
            at, called = those_of(rows[start:stop], *found.all())
            places.append(start + at)
            names.append(called)
        return np.concatenate(places), np.concatenate(names)

    def pairs_of_rows(self, wanted: NamedPlaces, rows: Int64Array) -> tuple[Int64Array, Int32Array]:
        """(place in ``rows``, name) of those of some rows, ascending, that match; row by row where all bits
        are dense. O(rows * words + pairs) there.
        """
        if not len(rows):
            return rows, np.empty(0, np.int32)
        found = FoundPairs(min(len(rows) * wanted.count, EXPECTED_MAX))
        blocks = self.blocks[: len(wanted.masks) // CHUNK_WORDS]
        nothing = np.zeros(self._chunks, np.int64)
        at = np.array([block.at if isinstance(block, DenseBlock) else nothing for block in blocks])
        used = np.array([block.used if isinstance(block, DenseBlock) else nothing for block in blocks])
        if blocks:
            scope = at, used, self._pool.rows, wanted.masks, wanted.names, rows
            found.add(partial(chunks.pairs_of_rows, *scope))
        places, names = found.all()
        if not any(isinstance(block, ListBlock) for block in blocks):
            return places, names
        others = self._pairs_of_lists(wanted, rows)
        return np.concatenate([places, others[0]]), np.concatenate([names, others[1]])

    def mark(self, wanted: NamedPlaces, marks: Words, first: int, out: Words) -> None:
        """As :func:`engine.kernels.join_lineage.mark_dense`, over all blocks. O(rows * words), and where
        blocks are lists O(places * log matches + pairs).
        """
        last = first + len(out)
        found = FoundPairs(EXPECTED_MIN)
        for number, block in enumerate(self.blocks[: len(wanted.masks) // CHUNK_WORDS]):
            low = CHUNK_WORDS * number
            if isinstance(block, DenseBlock):
                masks, names = wanted.masks[low : low + CHUNK_WORDS], wanted.names[64 * low :]
                join_lineage.mark_dense(
                    block.at, block.used, self._pool.rows, masks, names, marks, first, out
                )
            elif block is not None:
                self._of_lists(number, block, wanted, first, last, found)
        rows, slots = found.all()
        if len(rows):
            everywhere = np.zeros(len(marks), np.int64)
            join_lineage.mark_pairs(rows.astype(np.uint16), slots, everywhere, marks, first, out)

    def word(self, word: int, first: int, last: int) -> Words:
        """uint64[last - first]: the bits of a word."""
        block = self._block(word >> 3)
        if block is None:
            return np.zeros(last - first, np.uint64)
        if isinstance(block, ListBlock):
            return block.lists[word & 7].bits(first, last)
        return block.word(word & 7, first, last)

    @property
    def nbytes(self) -> int:
        """Bytes of the words in use and of the lists."""
        total = 0
        for block in self.blocks:
            if isinstance(block, DenseBlock):
                total += 8 * self._pool.rows * int(block.used.sum())
            elif block is not None:
                total += sum(lists.nbytes for lists in block.lists)
        return total

    def row_lists(self) -> Iterator[list[RowLists]]:
        """Yields the lists of the words of each block that is lists; the owner may put equal ones in their
        place.
        """
        for block in self.blocks:
            if isinstance(block, ListBlock):
                yield block.lists

    # --- new rows ---------------------------------------------------------------------------------

    def room(self, block: int, start: int, n: int, words: int) -> tuple[Int64Array, int]:
        held, rows = self._dense(block), self._pool.rows
        first = start // rows
        if held.used[first] != words or start + n > (first + 1) * rows:
            held.room(start, n, words, start)
            held.clear(start, n, words)
        return held.at, rows

    def clear(self, block: int, start: int, n: int) -> None:
        held = self._block(block)
        if isinstance(held, DenseBlock):
            held.clear(start, n, 0)

    def words_at(self, words: Int64Array, start: int, n: int) -> Words:
        out = np.empty((len(words), n), np.uint64)
        for place, word in enumerate(words.tolist()):
            out[place] = self.word(word, start, start + n)
        return out

    def put_words(self, words: Int64Array, start: int, bits: Words) -> None:
        n = bits.shape[1]
        for place, word in enumerate(words.tolist()):
            held = self._dense(word >> 3)
            held.room(start, n, (word & 7) + 1, start + n)
            chunks.write(held.at, self._pool.rows, word & 7, start, bits[place], EVERY_BIT)

    def end(self, word: int, rows: Int64Array, ended: Words) -> None:
        """Rows, ascending, lose bits of a word, uint64[rows], that no reader goes by. O(rows), and where bits
        are lists O(matches) a bit.
        """
        block = self._block(word >> 3)
        if isinstance(block, DenseBlock):
            block.packed = []
            chunks.end(block.at, block.used, self._pool.rows, word & 7, rows, ended)
        elif block is not None:
            for bit in range(64):
                gone = rows[(ended >> np.uint64(bit) & np.uint64(1)) != 0]
                if len(gone):
                    block.lists[word & 7] = block.lists[word & 7].without(bit, gone)

    def some(self, start: int, n: int, step: int) -> Words:
        found = np.zeros(len(range(0, n, step)), np.uint64)
        for block in self.blocks:
            if isinstance(block, DenseBlock):
                chunks.unite(block.at, block.used, self._pool.rows, start, step, found)
        return found

    def _dense(self, number: int) -> DenseBlock:
        while len(self.blocks) <= number:
            self.blocks.append(None)
        block = self.blocks[number]
        if block is None:
            block = self.blocks[number] = DenseBlock(self._pool, self._chunks)
        assert isinstance(block, DenseBlock)
        return block

    # --- new places -------------------------------------------------------------------------------

    def merge(self, word: int, bits: Words, mask: int, n: int) -> None:
        """All n rows take the masked bits of a word, uint64[>= n], of places that just came."""
        number = word >> 3
        block = self._block(number)
        if not isinstance(block, DenseBlock):
            lists = lists_of_bits(bits, mask, n)
            if lists is not None:
                known = block.lists[word & 7] if block is not None else RowLists.empty()
                united = known.with_lists(lists, mask)
                if is_sparse(len(united.places), n):
                    self._list_block(number).lists[word & 7] = united
                    return
            if block is not None:
                self.blocks[number] = self._unpacked(block, n)
        self.merge_dense(word, bits, mask, n)

    def merge_dense(self, word: int, bits: Words, mask: int, n: int) -> None:
        """Writes the masked bits of a word as :meth:`merge` does, into a block that is not lists."""
        held = self._dense(word >> 3)
        held.packed = []
        held.room(0, n, (word & 7) + 1, n)
        chunks.write(held.at, self._pool.rows, word & 7, 0, bits[:n], np.uint64(mask))

    def _list_block(self, number: int) -> ListBlock:
        while len(self.blocks) <= number:
            self.blocks.append(None)
        block = self.blocks[number]
        if block is None:
            block = self.blocks[number] = ListBlock()
        assert isinstance(block, ListBlock)
        return block

    def _unpacked(self, block: ListBlock, n: int) -> DenseBlock:
        """The bits of lists."""
        made = DenseBlock(self._pool, self._chunks)
        for word, lists in enumerate(block.lists):
            if len(lists.places):
                made.room(0, n, word + 1, n)
                chunks.write(made.at, self._pool.rows, word, 0, lists.bits(0, n), EVERY_BIT)
        return made

    # --- sealed -----------------------------------------------------------------------------------

    def pack(self, number: int, n: int) -> bool:
        """Make row lists of the next word of a block of n <= 65,536 rows, all there are, where those are much
        smaller; with the last word the block becomes lists. Returns whether nothing is left to do.

        Whether they are is estimated from some rows first. O(set bits + rows) where they are.
        """
        block = self.blocks[number]
        if not isinstance(block, DenseBlock):
            return True
        rows = self._pool.rows
        if not block.packed:
            matches = chunks.sample(block.at, block.used, rows, n, SAMPLED_RUNS)
            if not is_sparse(matches, rows * int(block.used.sum())):
                return True
        lists = lists_of_bits(block.word(len(block.packed), 0, n), bitmaps.EVERY_BIT, n)
        if lists is None:
            block.packed = []
            return True
        block.packed.append(lists)
        if len(block.packed) < int(block.used.max()):
            return False
        some = any(len(each.places) for each in block.packed)
        self.blocks[number] = ListBlock(block.packed) if some else None
        return True

    def _check(self, n: int) -> None:
        for block in self.blocks:
            if isinstance(block, DenseBlock):
                assert ((block.at != 0) == (block.used > 0)).all()
                assert (block.used <= CHUNK_WORDS).all()
            elif block is not None:
                for lists in block.lists:
                    lists._check(n)
