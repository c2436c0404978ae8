"""One input of a promising join: its stored rows, how they are looked up, and what probes them.

Rows are numbered by their join key, alike for both inputs, and hang in chains by the buckets of the input's
summary. A row may have a partner if no part of its key is NULL and some query's predicate accepts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.joins.bounds import Reach
from engine.joins.key_codes import KeyCodes
from engine.language.evaluate import truth
from engine.language.expressions import Column as ColumnOf
from engine.language.expressions import Expression
from engine.language.preference import Priority
from engine.model.batch import Batch, BoolArray, Column, Int64Array, concatenate_columns
from engine.model.source import SourceName
from engine.operators.relation import Relation
from engine.promising.promising_set import PromisingSet
from engine.promising.row_chains import RowChains
from engine.stems.data_stem import Rows
from engine.summaries.summary import Summary

PREDICATES_MAX = 64
"""Distinct predicates that rows are looked at for; where there are more, all rows may have partners."""

Predicates = frozenset[Expression] | None
"""Of which a row has to satisfy one; None: it need not."""


@dataclass(slots=True)
class ProbedInput:
    """An input of a join of two."""

    source: SourceName
    # Its side of the join's keys.
    keys: tuple[Expression, ...]
    # Over its rows: what equals the other's summarised attribute.
    lookup: Expression
    # The p that is used when this input is probed.
    priority: Priority
    # Of this input, on the attribute of ``priority``.
    summary: Summary
    chains: RowChains = field(init=False)
    # Entries that lead to rows of this input.
    entries: PromisingSet = field(init=False)
    # What of the stored rows some query's window may hold, and which predicates they were looked at for.
    reach: Reach | None = None
    predicates: Predicates = None
    # Rows below are in no window; rows below ``seen`` have probed.
    floor: int = 0
    seen: int = 0
    # How many rows were looked at for each predicate, and how many satisfied it.
    passed: dict[Expression, tuple[int, int]] = field(default_factory=dict)
    # The values of ``lookup`` of the rows that just came, by the ordinal of the first of each piece.
    _fresh: list[tuple[int, Column]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart(0)

    def restart(self, ordinal: int) -> None:
        """There is nothing; the next row has this ordinal."""
        self.chains = RowChains(self.summary.definition.settings.buckets + 1, ordinal)
        self.entries = PromisingSet()
        self.floor = self.seen = ordinal
        self._fresh = []

    def append(self, rows: Rows, end: int, codes: KeyCodes, flags: BoolArray | None = None) -> None:
        """Take in the rows that are not in and lie below ``end``. flags: which of them may have a partner, as
        it was told before; None: find out.
        """
        self._fresh = []
        if rows.base > self.chains.end:
            self.chains = RowChains(self.summary.definition.settings.buckets + 1, rows.base)
        zones = self.summary.zones
        cuts = np.concatenate([zones.first, zones.end]).tolist()
        begun = self.chains.end
        for ordinal, batch in rows.slices(begun, end):
            relation = Relation(batch.columns, len(batch))
            columns, _ = relation.values_of(self.keys)
            numbered = codes.number(columns)
            if flags is None:
                wanted = self._accepted(batch)
            else:
                wanted = flags[ordinal - begun : ordinal - begun + len(batch)].copy()
            if len(numbered.null):
                wanted &= ~numbered.null
            (lookup,), _ = relation.values_of([self.lookup])
            self._fresh.append((ordinal, lookup))
            buckets = self.summary.buckets_of(ordinal, ordinal + len(batch))
            self.chains.append(numbered.keys, wanted, buckets, cuts)

    def _accepted(self, batch: Batch) -> BoolArray:
        """bool[n]: which rows satisfy one of the predicates."""
        n = len(batch)
        if self.predicates is None:
            return np.ones(n, np.bool_)
        accepted = np.zeros(n, np.bool_)
        for predicate in sorted(self.predicates, key=repr):
            true, _ = truth(predicate, batch.columns, n)
            accepted |= true
            seen, passed = self.passed.get(predicate, (0, 0))
            self.passed[predicate] = seen + n, passed + int(np.count_nonzero(true))
        return accepted

    def pass_rate(self, predicate: Expression | None) -> float:
        """The share of rows that satisfy a predicate, as far as is known; of those that may have partners."""
        if predicate is None:
            return 1.0
        seen, passed = self.passed.get(predicate, (0, 0))
        return passed / seen if seen else 1.0

    def values(self, ordinals: Int64Array) -> Column:
        """The values of ``lookup`` of some of the rows that just came, ascending."""
        pieces = []
        for first, column in self._fresh:
            start, stop = ordinals.searchsorted([first, first + len(column)])
            if start < stop:
                pieces.append(column.take(ordinals[start:stop] - first))
        return pieces[0] if len(pieces) == 1 else concatenate_columns(self.lookup.type, pieces)

    @property
    def nbytes(self) -> int:
        return self.chains.nbytes + self.entries.nbytes


def lookup_of(own: Sequence[Expression], others: Sequence[Expression], column: int) -> Expression | None:
    """Of a join's keys the own side of the one whose other side is this column; None: there is none."""
    for one, other in zip(own, others, strict=True):
        if isinstance(other, ColumnOf) and other.index == column:
            return one
    return None
