"""Rows above NOW: stored, invisible, released in (timestamp, partition, offset) order as NOW passes them.

Held as pieces, each sorted; the pieces lie in a sorted list by their first timestamp, so that a step touches
only those that NOW has reached. Cost of a release: O(released + pieces touched * log pieces).
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.kernels.admission import in_order, order_of
from engine.model.attributes import Attribute
from engine.model.batch import Batch
from engine.model.source import Schema
from engine.stems.entering import EnteringRows, merged


@dataclass(slots=True)
class Piece:
    """Sorted rows. ``number`` is what the store knows it by, None before its first save."""

    rows: Batch
    number: int | None = None


def _first_ms(piece: Piece) -> int:
    return int(piece.rows.timestamp[0])


def sort_rows(rows: Batch) -> Batch:
    """Rows by (timestamp, partition, offset); the batch itself where they are in order."""
    if in_order(rows.timestamp, rows.partition, rows.offset):
        return rows
    order = np.empty(len(rows), np.int64)
    order_of(rows.timestamp, rows.partition, rows.offset, order, np.empty(len(rows), np.int64))
    return rows.take(order)


def _in_succession(batches: list[Batch]) -> bool:
    """Whether each of these, in order itself, begins at or after the end of the one before."""
    return all(
        (before.timestamp[-1], before.partition[-1], before.offset[-1])
        <= (after.timestamp[0], after.partition[0], after.offset[0])
        for before, after in pairwise(batches)
    )


class PendingRows:
    """The rows of one source that wait for NOW."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._pieces: list[Piece] = []
        self._count = 0
        self._next_number = 0
        self._gone: list[int] = []

    def __len__(self) -> int:
        return self._count

    def pass_through(self, arrived: Batch, now_ms: int | None, ascending: bool | None = None) -> EnteringRows:
        """Take new rows, give back all that are at or before NOW, in order.

        ascending: whether the new rows are in order; None: it is not known.
        """
        if now_ms is None:
            self._put(Piece(sort_rows(arrived)))
            return EnteringRows(self.schema, (), 0)
        batches = self._release(now_ms)
        if ascending is None:
            ascending = bool(in_order(arrived.timestamp, arrived.partition, arrived.offset))
        if not ascending:
            released = sum(map(len, batches))
            entering, waiting = merged(self.schema, [*batches, arrived], now_ms)
            self._put(Piece(arrived.take(waiting - released)))
            return entering
        reached = int(arrived.timestamp.searchsorted(now_ms, "right"))
        self._put(Piece(arrived.slice(reached, len(arrived))))
        if reached:
            batches.append(arrived.slice(0, reached))
        if _in_succession(batches):
            return EnteringRows(self.schema, tuple(batches), sum(map(len, batches)))
        return merged(self.schema, batches, now_ms)[0]

    def _put(self, piece: Piece) -> None:
        if len(piece.rows):
            insort(self._pieces, piece, key=_first_ms)
            self._count += len(piece.rows)

    def _release(self, now_ms: int) -> list[Batch]:
        released: list[Batch] = []
        leftovers: list[Piece] = []
        while self._pieces and self._pieces[0].rows.timestamp[0] <= now_ms:
            piece = self._pieces.pop(0)
            rows = piece.rows
            self._count -= len(rows)
            reached = int(rows.timestamp.searchsorted(now_ms, "right"))
            released.append(rows.slice(0, reached))
            if reached < len(rows):
                leftovers.append(Piece(rows.slice(reached, len(rows)), piece.number))
            elif piece.number is not None:
                self._gone.append(piece.number)
        for piece in leftovers:
            self._put(piece)
        return released

    # --- the store's side -------------------------------------------------------------------------

    def attributes(self, clock_ms: int) -> tuple[Attribute, ...]:
        """What can be read of it, as of a queue. clock_ms: the journalled clock."""
        oldest_ms = max(0, clock_ms - _first_ms(self._pieces[0])) if self._pieces else None
        return (
            Attribute("queued_rows", self._count, "rows that wait"),
            Attribute("oldest_ms", oldest_ms, "by how much the clock is past the timestamp of the first"),
        )

    def pieces(self) -> list[Batch]:
        """All rows, as they are held."""
        return [piece.rows for piece in self._pieces]

    def unsaved(self) -> list[tuple[int, Piece]]:
        """Pieces the store does not know, each with the number it will have."""
        pieces = [piece for piece in self._pieces if piece.number is None]
        return [(self._next_number + i, piece) for i, piece in enumerate(pieces)]

    def gone(self) -> tuple[int, ...]:
        """Numbers of saved pieces whose rows are all visible."""
        return tuple(self._gone)

    def saved(self, pieces: list[tuple[int, Piece]], gone: tuple[int, ...]) -> None:
        """The store has these now, and dropped those."""
        for number, piece in pieces:
            piece.number = number
        self._next_number += len(pieces)
        del self._gone[: len(gone)]

    def restore(self, number: int, rows: Batch, now_ms: int | None) -> None:
        """A stored piece comes back; what NOW has passed was released before the save."""
        self._next_number = max(self._next_number, number + 1)
        first = 0 if now_ms is None else int(np.searchsorted(rows.timestamp, now_ms, "right"))
        if first < len(rows):
            self._put(Piece(rows.slice(first, len(rows)), number))
        else:
            self._gone.append(number)

    def _check(self) -> None:
        assert self._count == sum(len(piece.rows) for piece in self._pieces)
        for piece in self._pieces:
            assert len(piece.rows)
            assert in_order(piece.rows.timestamp, piece.rows.partition, piece.rows.offset)
