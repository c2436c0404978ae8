"""Which rows of an input may have partners: those that some query's predicate may accept.

What the predicates compare with constants stands in a grouped filter of the group's own, which a row meets
once for all of them. Conditions beyond that are not looked at: a row too many costs a visit, no answer.
"""

from __future__ import annotations

import numpy as np

from engine.model.batch import Batch, BoolArray
from engine.model.expressions import Expression
from engine.model.lazy_columns import readable
from engine.model.source import Schema
from engine.stems.factors import Factors, factors
from engine.stems.query_stem import QueryStem

Predicates = frozenset[Expression] | None
"""Predicates of which a row has to satisfy one; None: it need not."""


class WantedRows:
    """Which rows of an input may have a partner, by ``predicates``, which may be set at any time."""

    def __init__(self) -> None:
        self.predicates: Predicates = None
        self._made: tuple[Predicates, Acceptance] | None = None

    def of(self, rows: Batch) -> BoolArray:
        """bool[n]: which rows some query's predicate may accept."""
        if self.predicates is None:
            return np.ones(len(rows), np.bool_)
        if self._made is None or self._made[0] != self.predicates:
            self._made = self.predicates, Acceptance(rows.schema, self.predicates)
        return self._made[1].of(rows)


class Acceptance:
    """Tells which rows of one schema some predicate of a set may accept; the set has one at least.
    O(predicates) to make.
    """

    def __init__(self, schema: Schema, predicates: frozenset[Expression]) -> None:
        taken = [factors(each) for each in sorted(predicates, key=repr)]
        self._columns = sorted({place for each in taken for term in each.terms for place in term})
        self._stem = QueryStem(Schema(tuple(schema.field(place) for place in self._columns)))
        at = {place: number for number, place in enumerate(self._columns)}
        slots = self._stem.add(
            [
                Factors([{at[place]: region for place, region in term.items()} for term in each.terms], ())
                for each in taken
            ]
        ).slots
        self._filter = self._stem.probe(slots, self._stem.cohorts)

    def of(self, rows: Batch) -> BoolArray:
        """bool[n]: which rows one of them may accept. At most 65,536 rows. O(rows * words + matches)."""
        n, columns = len(rows), readable(rows)
        read = tuple(columns[place] for place in self._columns)
        found = self._filter.match(
            Batch(self._stem.schema, read, rows.partition, rows.offset, rows.timestamp), 0
        )
        accepted = np.zeros(n, np.bool_)
        for word in found.bits:
            accepted |= word != 0
        accepted[found.lists.pairs()[0]] = True
        return accepted
