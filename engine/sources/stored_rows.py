"""The rows of a source as the store has them, and what of them it lacks."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.persistence import StateSink
from engine.model.source import SourceName
from engine.stems.data_stem import DataStem
from engine.stems.pending import PendingRows, Piece


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save handed over, to be confirmed once it is durable."""

    end: int
    base: int
    pieces: list[tuple[int, Piece]]
    gone: tuple[int, ...]


class StoredRows:
    """One owner, as the engine."""

    def __init__(self, name: SourceName, rows: DataStem, pending: PendingRows, base: int) -> None:
        """The store has no row of the source yet; base: the ordinal of the first."""
        self._name = name
        self._rows = rows
        self._pending = pending
        self._end = self._base = base
        self._unsaved_below: int | None = None

    def history_came(self, changed: int) -> None:
        """History came back, and segments before this ordinal are others than before."""
        self._unsaved_below = max(changed, self._unsaved_below or changed)
        self._base = self._rows.base

    def copy(self, sink: StateSink) -> None:
        """Hand over all there is, to a sink that has nothing; saves know nothing of it."""
        self._put(sink, self._rows.base)
        for number, piece in enumerate(self._pending.pieces()):
            sink.put_pending(self._name, number, piece)

    def _put(self, sink: StateSink, first: int) -> None:
        """From this ordinal on, segments that begin before it whole."""
        for part in self._rows.sealed_from(first):
            sink.seal(self._name, part.first, part.batch(self._rows.schema))
            first = part.end
        for ordinal, rows in self._rows.rows().slices(max(first, self._rows.base), self._rows.end):
            sink.append_rows(self._name, ordinal, rows)

    def _put_history(self, sink: StateSink, below: int) -> int:
        """In place of all rows that are stored below an ordinal, segments that begin there, whole. Returns
        where they end.
        """
        end = below
        sink.cut_rows(self._name, below)
        for part in self._rows.rows().parts:
            if part.first < below:
                sink.seal(self._name, part.first, part.batch(self._rows.schema))
                end = part.end
        return end

    def save(self, sink: StateSink) -> Saved:
        """Hand over what changed since the last save; :meth:`saved` confirms it."""
        end, first = self._rows.end, self._end
        if self._unsaved_below is not None:
            first = max(first, self._put_history(sink, self._unsaved_below))
        self._put(sink, first)
        if self._rows.base > self._base:
            sink.drop_rows(self._name, self._rows.base)
        pieces, gone = self._pending.unsaved(), self._pending.gone()
        for number, piece in pieces:
            sink.put_pending(self._name, number, piece.rows)
        for number in gone:
            sink.drop_pending(self._name, number)
        return Saved(end, self._rows.base, pieces, gone)

    def saved(self, saved: Saved) -> None:
        """The last save is durable."""
        self.has(saved.base, saved.end)
        self._unsaved_below = None
        self._pending.saved(saved.pieces, saved.gone)

    def has(self, base: int, end: int) -> None:
        """The store has the rows of these ordinals."""
        self._end, self._base = end, base
