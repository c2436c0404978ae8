"""Rows of the archive, newest first, in pieces that begin and end between two instants.

A stream says from which instant on it is complete, so what one step brings back has all rows of its first
instant: a piece is larger than asked for where one millisecond holds more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engine.model.batch import Batch, BoolArray, concatenate
from engine.model.source import Schema


@dataclass(frozen=True, slots=True)
class ArchiveChunk:
    """All rows of from_ms <= instant < until_ms, in (timestamp, partition, offset) order."""

    rows: Batch
    from_ms: int
    until_ms: int


class Backward:
    """Cuts what an archive gives, batches in order from the latest back, each in order within.

    from_ms, until_ms: what the batches cover. wanted: which rows of a batch count. Cost: O(rows) where
    batches are about as large as pieces.
    """

    def __init__(
        self,
        schema: Schema,
        batches: Iterator[Batch],
        from_ms: int,
        until_ms: int,
        wanted: Callable[[Batch], BoolArray],
    ) -> None:
        self._schema = schema
        self._batches = batches
        self._from_ms = from_ms
        self._wanted = wanted
        self._read = Batch.empty(schema)
        """What was read and not given yet, in order."""
        self._exhausted = False
        self.until_ms = until_ms
        """What was given so far reaches back to here."""

    def next(self, rows: int) -> ArchiveChunk | None:
        """The piece before, of so many rows at most, or of one instant; None where nothing is left."""
        if self.until_ms <= self._from_ms:
            return None
        while (cut := self._cut(rows)) is None:
            batch = next(self._batches, None)
            if batch is None:
                self._exhausted = True
                continue
            wanted = self._wanted(batch)
            if not wanted.all():
                batch = batch.take(np.flatnonzero(wanted))
            self._read = concatenate(self._schema, [batch, self._read])
        read, until_ms = self._read, self.until_ms
        self._read = read.slice(0, cut)
        self.until_ms = int(read.timestamp[cut - 1]) + 1 if cut else self._from_ms
        return ArchiveChunk(read.slice(cut, len(read)), self.until_ms, until_ms)

    def _cut(self, rows: int) -> int | None:
        """Where the piece begins in what was read; None where more has to be read to know."""
        stamps = self._read.timestamp
        if self._exhausted and len(stamps) <= rows:
            return 0
        if len(stamps) <= rows:
            return None
        known = 0 if self._exhausted else int(stamps.searchsorted(stamps[0], side="right"))
        cut = max(known, len(stamps) - rows)
        if cut < len(stamps) and cut > 0 and stamps[cut] == stamps[cut - 1]:
            cut = int(stamps.searchsorted(stamps[cut], side="right"))
        if cut == len(stamps):
            cut = int(stamps.searchsorted(stamps[-1], side="left"))
            return cut if cut or self._exhausted else None
        return cut
