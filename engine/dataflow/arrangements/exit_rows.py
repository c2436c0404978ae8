"""Blocks of rows with the instants of their entry and exit, which are never changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.runs import places_of


class RowBlock(NamedTuple):
    """n rows, each of some columns."""

    ids: Int64Array
    """int64[n, w]."""
    valid_from: Int64Array
    valid_to: Int64Array
    starts: Int64Array | None
    """int64[n + 1]: row r is of the columns owners[starts[r]:starts[r + 1]]; None: of owners[r] alone."""
    owners: Int32Array

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.valid_to)

    @classmethod
    def of(cls, delta: Delta) -> RowBlock:
        """The rows of a delta, which have ids."""
        temporal = delta.temporal
        one_each = len(delta.owners) == len(temporal)  # a delta has no rows of nobody
        starts = None if one_each else delta.starts
        return cls(delta.ids_of(), temporal.valid_from, temporal.valid_to, starts, delta.owners)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self if array is not None)

    def take(self, rows: Int64Array) -> RowBlock:
        """The rows at these places, in that order."""
        ids, valid_from, valid_to = self.ids[rows], self.valid_from[rows], self.valid_to[rows]
        if self.starts is None:
            return RowBlock(ids, valid_from, valid_to, None, self.owners[rows])
        counts = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        return RowBlock(
            ids, valid_from, valid_to, starts, self.owners[places_of(self.starts[:-1][rows], counts)]
        )

    def slice(self, start: int, stop: int) -> RowBlock:
        """Rows start to stop, copied, so that the others can go."""
        ids = self.ids[start:stop].copy()
        valid_from, valid_to = self.valid_from[start:stop].copy(), self.valid_to[start:stop].copy()
        if self.starts is None:
            return RowBlock(ids, valid_from, valid_to, None, self.owners[start:stop].copy())
        low, high = int(self.starts[start]), int(self.starts[stop])
        return RowBlock(
            ids, valid_from, valid_to, self.starts[start : stop + 1] - low, self.owners[low:high].copy()
        )

    def behind(self, start: int) -> RowBlock:
        """The rows from one on, not copied."""
        ids, valid_from, valid_to = self.ids[start:], self.valid_from[start:], self.valid_to[start:]
        if self.starts is None:
            return RowBlock(ids, valid_from, valid_to, None, self.owners[start:])
        low = self.starts[start]
        return RowBlock(ids, valid_from, valid_to, self.starts[start:] - low, self.owners[low:])

    def without(self, columns: Int32Array) -> RowBlock:
        """Not of some columns; rows of nobody go."""
        kept: BoolArray = ~np.isin(self.owners, columns)
        if kept.all():
            return self
        starts, _ = self.spread()
        starts = np.concatenate([[0], np.cumsum(kept)])[starts]
        whole = RowBlock(self.ids, self.valid_from, self.valid_to, starts, self.owners[kept])
        return whole.take(np.flatnonzero(np.diff(starts)))

    def spread(self) -> tuple[Int64Array, Int32Array]:
        """(starts, owners), whatever the form."""
        return (np.arange(self.n + 1) if self.starts is None else self.starts), self.owners


def one_block(blocks: Sequence[RowBlock], id_words: int) -> RowBlock:
    """The rows of several."""
    if len(blocks) == 1:
        return blocks[0]
    none = np.empty(0, np.int64)
    starts = None
    if any(block.starts is not None for block in blocks):
        counts = [np.diff(block.spread()[0]) for block in blocks]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return RowBlock(
        np.concatenate([none.reshape(0, id_words), *(block.ids for block in blocks)]),
        np.concatenate([none, *(block.valid_from for block in blocks)]),
        np.concatenate([none, *(block.valid_to for block in blocks)]),
        starts,
        np.concatenate([none.astype(np.int32), *(block.owners for block in blocks)]),
    )


class ExitRows(ABC):
    """Rows until their exit. Blocks are shared with readers."""

    work: Work

    @abstractmethod
    def insert(self, block: RowBlock) -> None:
        """Rows come."""

    @abstractmethod
    def expire(self, until: int) -> RowBlock:
        """The rows whose exit is at ``until`` or before, which leave."""

    def leave_early(self, ids: Int64Array) -> None:
        """Rows leave before their exit, of an edge where some do."""
        raise NotImplementedError

    @abstractmethod
    def drop_columns(self, columns: Int32Array) -> None:
        """Rows belong to these columns no more."""

    @abstractmethod
    def blocks(self) -> list[RowBlock]:
        """All rows, those included that were not taken out since their exit; they stay as they are."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @abstractmethod
    def _check(self) -> None: ...
