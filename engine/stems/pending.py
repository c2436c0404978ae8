"""Rows above NOW: stored, invisible, released in (timestamp, partition, offset) order as NOW passes them.

Held as pieces, each sorted; the pieces lie in a sorted list by their first timestamp, so that a step touches
only those that NOW has reached. Cost of a release: O(released + pieces touched * log pieces).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sortedcontainers import SortedKeyList

from engine.kernels.time import in_order
from engine.model.batch import Batch, concatenate
from engine.model.source import Schema


@dataclass(slots=True)
class Piece:
    """Sorted rows. ``number`` is what the store knows it by, None before its first save."""

    rows: Batch
    number: int | None = None


def sort_rows(rows: Batch) -> Batch:
    """Rows by (timestamp, partition, offset); the batch itself where they are in order."""
    if in_order(rows.timestamp, rows.partition, rows.offset):
        return rows
    return rows.take(np.lexsort((rows.offset, rows.partition, rows.timestamp)))


class PendingRows:
    """The rows of one source that wait for NOW."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._pieces: SortedKeyList = SortedKeyList(key=lambda piece: int(piece.rows.timestamp[0]))
        self._count = 0
        self._next_number = 0
        self._gone: list[int] = []

    def __len__(self) -> int:
        return self._count

    def pass_through(self, arrived: Batch, now_ms: int | None) -> Batch:
        """Take new rows, give back all that are at or before NOW, in order."""
        if now_ms is None:
            self._put(Piece(sort_rows(arrived)))
            return arrived.slice(0, 0)
        released = self._release(now_ms)
        if len(arrived):
            arrived = sort_rows(arrived)
            reached = int(np.searchsorted(arrived.timestamp, now_ms, "right"))
            self._put(Piece(arrived.slice(reached, len(arrived))))
            if reached:
                released.append(arrived.slice(0, reached))
        if not released:
            return arrived.slice(0, 0)
        return sort_rows(concatenate(self.schema, released))

    def _put(self, piece: Piece) -> None:
        if len(piece.rows):
            self._pieces.add(piece)
            self._count += len(piece.rows)

    def _release(self, now_ms: int) -> list[Batch]:
        released: list[Batch] = []
        leftovers: list[Piece] = []
        while self._pieces and self._pieces[0].rows.timestamp[0] <= now_ms:
            piece = self._pieces.pop(0)
            rows = piece.rows
            self._count -= len(rows)
            reached = int(np.searchsorted(rows.timestamp, now_ms, "right"))
            released.append(rows.slice(0, reached))
            if reached < len(rows):
                leftovers.append(Piece(rows.slice(reached, len(rows)), piece.number))
            elif piece.number is not None:
                self._gone.append(piece.number)
        for piece in leftovers:
            self._put(piece)
        return released

    # --- the store's side -------------------------------------------------------------------------

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
