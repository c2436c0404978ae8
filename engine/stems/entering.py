"""Rows that NOW has reached, on their way into the open segment: where they lie, in which order they enter.

They come from several batches (what waited, and what arrived), and are written once, into the segment's
columns, instead of being put together first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.kernels.admission import order_of
from engine.model.batch import Batch, Column, Int64Array, concatenate
from engine.model.source import Schema

Place = slice | Int64Array


@dataclass(frozen=True, slots=True)
class Run:
    """The rows of a batch at ``rows`` go to ``places``."""

    batch: Batch
    rows: Place
    places: Place

    def column(self, place: int) -> Column:
        """A column of these rows."""
        column = self.batch.columns[place]
        if isinstance(self.rows, slice):
            return column.slice(self.rows.start, self.rows.stop)
        return column.take(self.rows)


@dataclass(frozen=True, slots=True)
class EnteringRows:
    """``count`` rows, the first that enter.

    batches: where they lie. places: of each batch, int64[rows]: which row it becomes of those that enter,
    or one at or above ``count``: it does not. None: the batches enter one after another, whole.
    """

    schema: Schema
    batches: tuple[Batch, ...]
    count: int
    places: tuple[Int64Array, ...] | None = None

    def __len__(self) -> int:
        return self.count

    @classmethod
    def of(cls, rows: Batch) -> EnteringRows:
        """One batch, as it is."""
        return cls(rows.schema, (rows,), len(rows))

    def runs(self, start: int, stop: int) -> list[Run]:
        """Where rows start to stop lie, and which of them each row is, from 0 on; a run for each batch that
        has some.
        """
        runs: list[Run] = []
        if self.places is not None:
            for batch, places in zip(self.batches, self.places, strict=True):
                rows = np.flatnonzero((places >= start) & (places < stop))
                if len(rows):
                    runs.append(Run(batch, rows, places[rows] - start))
            return runs
        passed = 0
        for batch in self.batches:
            first, last = max(start - passed, 0), min(stop - passed, len(batch))
            if first < last:
                begin = passed + first - start
                runs.append(Run(batch, slice(first, last), slice(begin, begin + last - first)))
            passed += len(batch)
        return runs

    def batch(self) -> Batch:
        """The rows as one batch."""
        if self.places is None:
            return concatenate(self.schema, self.batches)
        order = np.empty(sum(map(len, self.batches)), np.int64)
        order[np.concatenate(self.places)] = np.arange(len(order))
        return concatenate(self.schema, self.batches).take(order[: self.count])


def merged(schema: Schema, batches: Sequence[Batch], now_ms: int) -> tuple[EnteringRows, Int64Array]:
    """The rows of some batches that are at or before NOW, by (timestamp, partition, offset).

    Also the others, in that order too, as places in the batches one after another.
    """
    timestamp = np.concatenate([batch.timestamp for batch in batches])
    partition = np.concatenate([batch.partition for batch in batches])
    offset = np.concatenate([batch.offset for batch in batches])
    n = len(timestamp)
    order, place = np.empty(n, np.int64), np.empty(n, np.int64)
    order_of(timestamp, partition, offset, order, place)
    place[order] = np.arange(n)
    count = int(np.searchsorted(timestamp[order], now_ms, "right"))
    ends = np.cumsum([len(batch) for batch in batches])[:-1]
    return EnteringRows(schema, tuple(batches), count, tuple(np.split(place, ends))), order[count:]
