"""Packs the words of sealed segments, a few with each batch that enters."""

from __future__ import annotations

from collections import deque

from engine.stems.segment import SegmentView
from engine.store.matches.chunks import CHUNK_WORDS, ChunkPool

PACKING_PACE = 2
"""Words of sealed segments are packed so many times as fast as they come."""


class Packing:
    """One owner, as the engine."""

    def __init__(self, chunks: ChunkPool) -> None:
        """chunks: memory of the blocks that are packed, and of those to come."""
        self._chunks = chunks
        self._unpacked: deque[tuple[SegmentView, int]] = deque()

    def add(self, part: SegmentView) -> None:
        """A segment was sealed: its blocks are to be packed."""
        self._unpacked.extend((part, number) for number in range(len(part.matches.bits.blocks)))

    def pack(self, rows: int) -> None:
        """Pack words of sealed segments, as many as a segment has for as many rows as it has; but of those
        that become lists one or two, unless a whole segment waits.
        """
        self._chunks.tidy()
        if not self._unpacked:
            return
        last, _ = self._unpacked[-1]
        blocks = len(last.matches.bits.blocks)
        for _ in range(-(-PACKING_PACE * CHUNK_WORDS * blocks * rows // len(last.timestamp))):
            if not self._unpacked or not (self._pack_some() or len(self._unpacked) > blocks):
                break

    def _pack_some(self) -> bool:
        """A word of the next block; returns whether the block is done with."""
        part, number = self._unpacked[0]
        done = part.matches.bits.pack(number, part.n)
        if done:
            self._unpacked.popleft()
        return done

    def idle(self) -> bool:
        """Nothing else is to be done: pack a word, or get memory for rows to come. Returns whether there was
        anything to do.
        """
        if self._unpacked:
            self._pack_some()
            return True
        return self._chunks.prepare()
