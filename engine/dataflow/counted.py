"""Values of cells under numbers, *entries*: those that calls count, add up once, or take the least of.

Where rows are told apart by their ids an entry is a row of a cell with its value.
"""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.pairs import Pairs
from engine.dataflow.delta import Delta
from engine.model.batch import Column, Int32Array
from engine.model.capacities import USUAL, Capacities
from engine.model.expressions import Expression
from engine.model.types import BIGINT
from engine.operators.aggregates.members import select
from engine.operators.keys import with_one_zero


class Counted:
    """Numbers the values that cells have of one argument, in the rows that a condition lets through; rows
    without a value do not count.
    """

    def __init__(
        self,
        argument: Expression | None,
        condition: Expression | None,
        id_words: int = 0,
        capacities: Capacities = USUAL,
    ) -> None:
        """argument: None: rows count as such, by their ids. id_words: 0: by their values."""
        self._argument = argument
        self._condition = condition
        self._id_words = id_words
        types = [] if argument is None else [argument.type]
        self.pairs = Pairs([*([BIGINT] * id_words), *types], capacities)

    def of(self, delta: Delta, cells: Int32Array) -> tuple[Int32Array, Int32Array, list[Column]]:
        """(the entry of each pair, -1 of a row that does not count; the entries of those that do; their id
        words and values). cells: of each pair of the delta.
        """
        relation = delta.temporal.relation
        n = len(relation)
        of_rows = [] if self._argument is None else [self._argument]
        members, _ = select(relation, of_rows, self._condition, False, np.arange(n), n)
        rows = members.codes
        assert rows is not None
        columns = []
        if self._id_words:
            ids = delta.ids_of()[rows]
            columns += [Column(BIGINT, np.ascontiguousarray(ids[:, word])) for word in range(self._id_words)]
        if self._argument is not None:
            columns.append(members.values if self._id_words else with_one_zero(members.values))
        place = np.full(n, -1)
        place[rows] = np.arange(len(rows))
        of_pairs = np.repeat(place, np.diff(delta.starts))
        counting = np.flatnonzero(of_pairs >= 0)
        held = of_pairs[counting]
        keys = self.pairs.number_keys(columns, len(rows))
        entries = np.full(len(of_pairs), -1, np.int32)
        entries[counting] = found = self.pairs.of(keys[held], cells[counting])
        return entries, found, [column.take(held) for column in columns]

    def of_cells(self, cells: Int32Array) -> Int32Array:
        """The entries of some cells. O(entries)."""
        used = self.pairs.used()
        return used[np.isin(self.pairs.places_of(used), cells)]
