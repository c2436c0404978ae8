"""The Data SteM of a stream: its retained visible rows, in (timestamp, partition, offset) order.

Rows enter in that order and get ordinals 0, 1, 2, ... for the life of the stream, so every window is a
range of ordinals, found by bisection. Matches stand beside the rows (:mod:`engine.stems.segment`).
``base <= ordinal < end`` are retained; segments wholly below base are let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engine.kernels import bitmaps
from engine.model.attributes import Attribute
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.source import Schema
from engine.results.word_column import DenseWord, pack
from engine.stems.query_stem import NewQueries
from engine.stems.segment import BitPool, Part, Tail

Match = Callable[[Batch, bitmaps.Words, int], None]


@dataclass(frozen=True, slots=True)
class Rows:
    """The visible rows as a reader sees them: immutable, with the matches of ``words`` word columns."""

    schema: Schema
    parts: tuple[Part, ...]
    base: int
    end: int

    def first_at_or_after(self, timestamp_ms: int) -> int:
        """The first ordinal >= base whose timestamp is >= the instant; ``end`` if none. O(log rows)."""
        low, high = 0, len(self.parts)
        while low < high:
            middle = (low + high) >> 1
            part = self.parts[middle]
            if part.timestamp[part.n - 1] < timestamp_ms:
                low = middle + 1
            else:
                high = middle
        if low == len(self.parts):
            return self.end
        part = self.parts[low]
        place = int(part.timestamp[: part.n].searchsorted(timestamp_ms))
        return max(self.base, part.first + place)

    def timestamp_of(self, ordinal: int) -> int:
        """The instant of a retained row."""
        for part, first, _ in self.ranges(ordinal, ordinal + 1):
            return int(part.timestamp[first])
        raise IndexError(ordinal)

    def ranges(self, start: int, stop: int) -> Iterator[tuple[Part, int, int]]:
        """(part, first, last): the places of these ordinals in each part that has any, ascending.

        O(log parts) and the parts that have some.
        """
        parts = self.parts
        low, high = 0, len(parts)
        while low < high:
            middle = (low + high) >> 1
            if parts[middle].end <= start:
                low = middle + 1
            else:
                high = middle
        for place in range(low, len(parts)):
            part = parts[place]
            if part.first >= stop:
                break
            first, last = max(0, start - part.first), min(part.n, stop - part.first)
            if first < last:
                yield part, first, last

    def slices(self, start: int, stop: int) -> Iterator[tuple[int, Batch]]:
        """(ordinal of the first row, rows) of these ordinals."""
        for part, first, last in self.ranges(start, stop):
            yield part.first + first, part.batch(self.schema).slice(first, last)


class DataStem:
    """The writing side. ``words`` is how many word columns its matches have."""

    def __init__(self, schema: Schema, base: int = 0) -> None:
        self.schema = schema
        self.base = base
        self.words = 0
        self._sealed: list[Part] = []
        self._pool = BitPool()
        self._tail = Tail(schema, base, 0, self._pool)
        self._rows: Rows | None = None

    @property
    def end(self) -> int:
        return self._tail.first + self._tail.count

    def __len__(self) -> int:
        return self.end - self.base

    def append(self, rows: Batch, match: Match) -> None:
        """Rows enter; ``match`` writes their match bits. O(rows * words)."""
        start = 0
        while start < len(rows):
            stop = min(len(rows), start + BATCH_ROWS_MAX, start + self._tail.room)
            piece = rows if stop - start == len(rows) else rows.slice(start, stop)
            match(piece, self._tail.bits, self._tail.count)
            self._tail.append(piece)
            if not self._tail.room:
                self._sealed.append(self._tail.seal(self.words))
                self._tail = Tail(self.schema, self.end, self.words, self._pool)
            start = stop
        self._rows = None

    def widen(self, words: int) -> None:
        """New queries need more word columns; parts that are there get them by :meth:`backfill`."""
        self.words = max(self.words, words)
        self._tail.widen(self.words)
        self._rows = None

    def backfill(self, queries: NewQueries) -> None:
        """Apply queries that just came to all retained rows. O(rows * new words)."""
        self._sealed = [self._backfill_sealed(part, queries) for part in self._sealed]
        tail = self._tail
        part = tail.part(self.words)
        bits = self._bits_of(part, queries)
        for i, word in enumerate(queries.words):
            bitmaps.merge_bits(tail.bits[word], bits[i], queries.masks[i], part.n)
        self._rows = None

    def _bits_of(self, part: Part, queries: NewQueries) -> bitmaps.Words:
        """uint64[words, n]; rows below base match nothing, nor do those whose zones rule them out."""
        gone = min(part.n, max(0, self.base - part.first))
        if part.zones and not queries.may_match(part.zones):
            gone = part.n
        rows = part.batch(self.schema)
        if not gone:
            return queries.match(rows)
        bits = np.zeros((len(queries.words), part.n), np.uint64)
        if gone < part.n:
            bits[:, gone:] = queries.match(rows.slice(gone, part.n))
        return bits

    def _backfill_sealed(self, part: Part, queries: NewQueries) -> Part:
        bits = self._bits_of(part, queries)
        words = list(part.words)
        for i, word in enumerate(queries.words):
            if word < len(words):
                column = words[word].dense(part.n)
                bitmaps.merge_bits(column, bits[i], queries.masks[i], part.n)
            else:
                column = bits[i]
            packed = pack(column, part.n)
            if isinstance(packed, DenseWord) and packed.column.base is not None:
                packed = DenseWord(packed.column.copy())  # a view would hold the whole block
            words[word : word + 1] = [packed]
        return part.with_words(tuple(words))

    def drop_below(self, base: int) -> None:
        """Rows below this ordinal are gone. Never moves back."""
        if base <= self.base:
            return
        self.base = base
        self._sealed = [part for part in self._sealed if part.end > base]
        self._rows = None

    def rows(self) -> Rows:
        """What readers may see now; the same object until something changes."""
        if self._rows is None:
            parts = tuple(self._sealed)
            if self._tail.count:
                parts += (self._tail.part(self.words),)
            self._rows = Rows(self.schema, parts, self.base, self.end)
        return self._rows

    def sealed_from(self, ordinal: int) -> list[Part]:
        """Sealed segments that hold rows at or after this ordinal."""
        return [part for part in self._sealed if part.end > ordinal]

    @property
    def tail_first(self) -> int:
        """The first ordinal of the open segment."""
        return self._tail.first

    def restore(self, first: int, rows: Batch, match: Match) -> None:
        """Stored rows come back; the first call decides where the ordinals begin."""
        if not self._sealed and not self._tail.count:
            self._tail = Tail(self.schema, first, self.words, self._pool)
        self.append(rows, match)

    def nbytes(self) -> tuple[int, int]:
        """Bytes of (columns, matches) of the sealed segments."""
        columns = matches = 0
        for part in self._sealed:
            columns += part.timestamp.nbytes + part.offset.nbytes + part.partition.nbytes
            for column in part.columns:
                columns += column.values.nbytes + (0 if column.valid is None else column.valid.nbytes)
            matches += sum(word.nbytes for word in part.words)
        return columns, matches

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        columns, matches = self.nbytes()
        return (
            Attribute("rows", len(self), "visible rows retained"),
            Attribute("segments", len(self._sealed), "sealed segments"),
            Attribute("column_bytes", columns, "bytes of their columns"),
            Attribute("match_bytes", matches, "bytes of their matches"),
        )

    def _check(self) -> None:
        ordinal: int | None = None
        before: int | None = None
        for part in self.rows().parts:
            assert ordinal is None or part.first == ordinal
            assert len(part.words) == self.words
            stamps = part.timestamp[: part.n]
            assert before is None or before <= stamps[0]
            assert bool((np.diff(stamps) >= 0).all())
            ordinal, before = part.end, int(stamps[-1])
        assert self.base <= self.end
