"""Composites that are kept: ordinals of their parts, in the order in which they were found.

They lie in chunks that fill from the front. What is below a chunk's count never changes, so a reader who took
chunks and counts needs no lock. A composite dies with the first of its parts. A chunk goes as a whole when
one input's parts have all left: mostly that is enough, for windows slide over chunks in order. Where the dead
are many all the same, those that live move together.

Memory: 4 bytes a part, for at most 2n times as many as live, n inputs; mostly n. Cost: O(1) a composite,
amortised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.joins.array_pool import ROWS, ArrayPool
from engine.kernels import composites
from engine.model.batch import Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.limits import Limits

Int32Array = npt.NDArray[np.int32]

CHUNK = ROWS
POOLED_MAX = 64
"""Chunks that wait to be filled again: fresh memory costs more than all that is written into it."""
SPAN_MAX = 2**31 - 1


@dataclass(slots=True)
class CompositeChunk:
    """parts: int32[room, inputs], less origin, int64[inputs]; the first ``count`` of them are there. end:
    int64[inputs], all parts are below it.
    """

    parts: Int32Array
    origin: Int64Array
    count: int
    end: Int64Array

    @property
    def room(self) -> int:
        return len(self.parts) - self.count


Snapshot = tuple[tuple[Int32Array, int, Int64Array], ...]
"""(parts, count, origin) of each chunk."""


class Composites:
    """The kept composites of a shape of ``inputs`` inputs, at most ``most``. ``wanted``: whether they are to
    be kept; ``refused``: whether they were too many. ``found``: how many were written.
    """

    def __init__(
        self,
        inputs: int,
        most: int = Limits().composites_max,
        capacities: Capacities = USUAL,
        told: Callable[[Int32Array, Int64Array], None] = lambda *_: None,
    ) -> None:
        """told: of those that are written, int32[n, inputs], less origin, int64[inputs]."""
        self.wanted, self.refused = True, False
        self.most = most
        self.found = 0
        self._told = told
        self._chunk = capacities.first(CHUNK)
        self._inputs = inputs
        self._pool = ArrayPool(POOLED_MAX)
        self._chunks: list[CompositeChunk] = []
        self._count = 0
        self._alive = 0
        self._view: Snapshot | None = None

    def __len__(self) -> int:
        """How many are held, dead ones with them."""
        return self._count

    def want(self, *, keeps: bool) -> None:
        """Keep them, or do not, from the next step on."""
        self.wanted, self.refused = keeps, False

    def keep_at_most(self, count: int) -> None:
        """How many are kept at most from the next step on; where they were too many, they are found anew
        then.
        """
        self.most, self.refused = count, False

    def are_too_many(self, floor: Int64Array) -> bool:
        """Whether those without a part below floor are more than are to be kept. O(1), or O(composites)."""
        return self._count > self.most and self.sweep(floor) > self.most

    def chunk(self, floor: Int64Array, highest: int) -> CompositeChunk:
        """Where the next are written; :meth:`wrote` tells that they were.

        floor: no part will be below it; highest: nor above this.
        """
        chunk = self._chunks[-1] if self._chunks else None
        if chunk is None or not chunk.room or highest - int(chunk.origin.min()) > SPAN_MAX:
            room = self._chunk if chunk is None else min(CHUNK, 2 * len(chunk.parts))
            chunk = self._empty(room, floor.copy())
            self._chunks.append(chunk)
        return chunk

    def enlarge(self, floor: Int64Array) -> None:
        """The next did not fit: another chunk, twice as large as the last if that was empty."""
        room = self._chunk
        if self._chunks and not self._chunks[-1].count:
            room = 2 * self._chunks.pop().room
        self._chunks.append(self._empty(room, floor.copy()))

    def _empty(self, room: int, origin: Int64Array) -> CompositeChunk:
        words = -(-room * self._inputs // (2 * ROWS))
        numbers = self._pool.take(words).reshape(-1).view(np.int32)
        parts = numbers[: room * self._inputs].reshape(room, self._inputs)
        return CompositeChunk(parts, origin, 0, origin)

    def wrote(self, chunk: CompositeChunk, count: int, end: Int64Array) -> None:
        """Note that the chunk has ``count`` composites now. end: every part is below it."""
        self.found += count - chunk.count
        self._told(chunk.parts[chunk.count : count], chunk.origin)
        self._count += count - chunk.count
        chunk.count = count
        chunk.end = end
        self._view = None

    def drop_below(self, floor: Int64Array) -> None:
        """Drop the composites with a part below floor. O(chunks), and now and then O(composites)."""
        if not self._chunks or not (self._chunks[0].end <= floor).any():
            if self._count > 2 * self._inputs * (self._alive + self._chunk):  # of those held one in n lives
                self.sweep(floor)
            return
        dead = [bool((chunk.end <= floor).any()) for chunk in self._chunks]
        self._chunks = [chunk for chunk, gone in zip(self._chunks, dead, strict=True) if not gone]
        self._count = sum(chunk.count for chunk in self._chunks)
        self._view = None

    def sweep(self, floor: Int64Array) -> int:
        """Let go of those with a part below floor; returns how many are left. O(composites)."""
        kept: list[CompositeChunk] = []
        for chunk in self._chunks:
            alive = composites.count_alive(chunk.parts, chunk.count, chunk.origin, floor)
            if alive == chunk.count and alive:
                kept.append(chunk)
            elif alive:
                last = kept[-1] if kept else None
                if last is None or last.room < alive or not self._fits(last, chunk):
                    last = self._empty(max(self._chunk, alive), np.maximum(floor, chunk.origin))
                    kept.append(last)
                last.count = composites.keep_alive(
                    chunk.parts, chunk.count, chunk.origin, floor, last.parts, last.count, last.origin
                )
                last.end = np.maximum(last.end, chunk.end)
        self._chunks = kept
        self._count = self._alive = sum(chunk.count for chunk in kept)
        self._view = None
        return self._count

    def _fits(self, into: CompositeChunk, chunk: CompositeChunk) -> bool:
        """Whether parts of one can be told from the origin of the other."""
        return bool((np.abs(into.origin - chunk.origin) < SPAN_MAX // 2).all())

    def clear(self) -> None:
        """Let go of all."""
        self._chunks = []
        self._count = self._alive = 0
        self._view = None

    def view(self) -> Snapshot:
        """As they stand; the same object until something changes."""
        if self._view is None:
            self._view = tuple((chunk.parts, chunk.count, chunk.origin) for chunk in self._chunks)
        return self._view

    @property
    def nbytes(self) -> int:
        return sum(chunk.parts.nbytes for chunk in self._chunks)
