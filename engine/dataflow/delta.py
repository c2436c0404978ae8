"""Deltas: the rows of an edge that enter or leave its relation over a transition, and whose they are.

All queries of a shape are columns of the same nodes, so that one batch carries the rows of all. A row that
several queries have stands once, with the columns that it belongs to:

    row  values    valid_from  valid_to   owners
    0    (a, 1)    NEVER       11         3
    1    (b, 5)    11          FOREVER    0, 3
    2    (a, 2)    12          FOREVER    0

Row 0 was there before the transition and leaves at 11. A row that is there all along is in no delta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.changes.temporal_relation import TemporalRelation
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.runs import places_of
from engine.operators.relation import Relation

Ids = Callable[[], Int64Array]
"""Makes int64[n, w], C order: the id of each row, w words."""


@dataclass(frozen=True, slots=True)
class Delta:
    """n rows and m pairs of a row and a column.

    temporal: the rows. starts: int64[n + 1], owners: int32[m]; row r is of the columns
    owners[starts[r]:starts[r + 1]]. ids: the ids of the rows, None where they have none; a row has the same
    id when it enters and when it leaves, and no two that are there at one instant have the same. by_column:
    a row stands for as many as it has columns; the id of each is that of the row, and its column
    (:meth:`apart`).
    """

    temporal: TemporalRelation
    starts: Int64Array
    owners: Int32Array
    ids: Ids | None = None
    by_column: bool = False

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.owners)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows as they are held: a word a value, two instants, and whose they are."""
        words = len(self.temporal.relation.columns) + 2
        return 8 * words * len(self.temporal) + self.starts.nbytes + self.owners.nbytes

    @classmethod
    def of_one_each(cls, temporal: TemporalRelation, owners: Int32Array, ids: Ids | None = None) -> Delta:
        """Rows that are of one column each. owners: int32[n]."""
        return cls(temporal, np.arange(len(temporal) + 1), owners, ids)

    def ids_of(self) -> Int64Array:
        """int64[n, w]: the ids of the rows, which have some."""
        assert self.ids is not None
        assert not self.by_column
        return self.ids()

    def apart(self) -> Delta:
        """These rows, each with an id of its own."""
        if not self.by_column:
            return self
        rows, owners, ids = self.rows(), self.owners, self.ids
        named = None if ids is None else lambda: np.hstack([ids()[rows], owners.reshape(-1, 1)])
        return Delta.of_one_each(self.temporal.take(rows), owners, named)

    def counts(self) -> Int64Array:
        """int64[n]: how many columns each row belongs to."""
        return self.starts[1:] - self.starts[:-1]

    def rows(self) -> Int64Array:
        """int64[m]: the row of each pair, ascending."""
        return np.repeat(np.arange(len(self.temporal)), self.counts())

    def with_relation(self, relation: Relation) -> Delta:
        """Returns these pairs over rows with other columns."""
        temporal = self.temporal.with_columns(relation.columns)
        return Delta(temporal, self.starts, self.owners, self.ids, self.by_column)

    def take(self, rows: Int64Array) -> Delta:
        """The rows at these places, in that order."""
        counts = self.counts()[rows]
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        owners = self.owners[places_of(self.starts[rows], counts)]
        ids = self.ids
        taken = None if ids is None else lambda: ids()[rows]
        return Delta(self.temporal.take(rows), starts, owners, taken, self.by_column)

    def where(self, kept: BoolArray) -> Delta:
        """The pairs of a mask, bool[m]; rows of nobody go."""
        if kept.all():
            return self.owned()
        running = np.zeros(len(kept) + 1, np.int64)
        np.cumsum(kept, out=running[1:])
        delta = Delta(self.temporal, running[self.starts], self.owners[kept], self.ids, self.by_column)
        return delta.owned()

    def owned(self) -> Delta:
        """Without rows of nobody."""
        held = self.counts() > 0
        return self if held.all() else self.take(np.flatnonzero(held))


@dataclass(frozen=True, slots=True)
class SetDelta:
    """Rows with sets of columns: the owners of a row in ``delta`` are numbers of ``sets``, which have no
    column in common there. sets: int32 each; None: the owners are columns.
    """

    delta: Delta
    sets: Sequence[Int32Array] | None

    def with_delta(self, delta: Delta) -> SetDelta:
        """Returns these sets over what became of the rows."""
        return SetDelta(delta, self.sets)
