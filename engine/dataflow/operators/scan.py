"""Scans: rows that enter or leave a window of a source, and which queries' predicates accept them.

The window is the same for all queries of the node, so what moves is found once; who accepts it is read from
the kept matches (:mod:`engine.store.matches.accepted`). A column is a predicate: one whose matches are kept
is known by its slot; another is evaluated.

Cost: O(rows that move + pairs), and an evaluation for each column without a slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.source_interval import by_retention, doubled
from engine.changes.temporal_relation import TemporalRelation
from engine.changes.windows import ends_of
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.columns import KeyNumbers
from engine.dataflow.delta import Delta, SetDelta
from engine.dataflow.node import Node
from engine.dataflow.turn import Turn
from engine.kernels import grouping
from engine.language.evaluate import truth
from engine.language.query import Scan
from engine.model.batch import Int32Array, Int64Array
from engine.model.expressions import Expression
from engine.model.runs import places_of
from engine.operators.gather import rows_at
from engine.operators.relation import Relation
from engine.stems.rows import Rows
from engine.store.matches.accepted import Slots, accepted_at_most, accepted_of
from engine.store.matches.part_matches import PartMatches
from engine.store.matches.patterns import sets_of
from engine.windows.clauses import TimeWindow

PAIRS_MAX = 1 << 20
"""Rows that stand are given in pieces of about so many pairs."""

SETS = 4
"""Pieces by sets of columns hold so many times the rows: they have fewer pairs than those by columns."""

SAMPLE = 128
"""How many columns accept a row is seen from so many rows."""

Predicate = int | Expression | None
"""The slot of a predicate, or what is evaluated; None: every row."""


class ScanNode(Node):
    """A scan of a source by a window; predicates are columns."""

    def __init__(
        self, kind: Scan, *, exits_known: bool = False, settings: StateSettings | None = None
    ) -> None:
        """kind: without a predicate. exits_known: of a window of time."""
        super().__init__(settings=settings)
        self.kind = kind
        self.sources = (kind.source,)
        self.exits_known = exits_known
        self.id_words = 1 if kind.assignment is None else 3
        self.ordered = True
        self._predicates: KeyNumbers[Predicate] = KeyNumbers()
        self._asked: AskedColumns | None = None

    def column(self, predicate: Predicate) -> int:
        """The column of a predicate; it has one as long as somebody wants that."""
        return self._predicates.number(predicate)

    def want(self, column: int) -> None:
        if self.columns.want(column):
            self._asked = None

    def leave(self, column: int) -> None:
        if self.columns.leave(column):
            self._asked = None
            self._give_back(column)

    def _give_back(self, column: int) -> None:
        """Nobody wants a column any more."""
        self._predicates.give_back(column)

    def _predicate(self, column: int) -> Predicate:
        """Which rows are a column's."""
        return self._predicates[column]

    def moved(self, context: EvaluationContext) -> TemporalRelation:
        """The rows that enter or leave the window on a transition, whoever accepts them."""
        return context.scan_history(self.kind).changed()

    def columns_a_row(self, context: EvaluationContext) -> float:
        """About how many columns accept a row that moves on a transition, from some of them."""
        moved = self.moved(context)
        if len(moved) <= SAMPLE:
            return self.columns.count
        some = moved.take(np.linspace(0, len(moved) - 1, SAMPLE, dtype=np.int64))
        rows = context.transition.by_source[self.kind.source].at.rows
        return len(self._accepted(some, rows, self._all())) / SAMPLE

    def is_cut(self, context: EvaluationContext) -> bool:
        """Whether rows leave the window on a transition before its end has passed them, by retention."""
        moved = self.moved(context)
        return bool((by_retention(moved.valid_to) & context.interval.among(moved.valid_to)).any())

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        return stored_rows(context.transition.by_source[self.kind.source].at.rows, ids[:, 0])

    def _changed(self, turn: Turn) -> Delta:
        temporal = self.moved(turn.context)
        if self.exits_known:
            temporal = temporal.where(turn.interval.among(temporal.valid_from))
        else:
            temporal = temporal.changing(turn.interval)
        self.visited += len(temporal)
        rows = turn.context.transition.by_source[self.kind.source].at.rows
        return self._accepted(temporal, rows, self._all()).owned()

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        temporal = self._rows_that_stand(context)
        rows = context.transition.by_source[self.kind.source].at.rows
        yield from self._in_pieces(temporal, rows, columns)

    def standing_sets(self, context: EvaluationContext, columns: Int32Array) -> Iterator[SetDelta]:
        temporal = self._rows_that_stand(context)
        rows = context.transition.by_source[self.kind.source].at.rows
        asked = AskedColumns({int(column): self._predicate(int(column)) for column in columns})
        ordinals = temporal.relation.stored_ordinals()
        if asked.evaluated or not len(ordinals) or bool((ordinals[1:] <= ordinals[:-1]).any()):
            for delta in self._in_pieces(temporal, rows, columns):
                yield SetDelta(delta, None)
            return
        size = max(1, int(SETS * PAIRS_MAX / max(1.0, asked.columns_a_row(temporal, rows))))
        for part, low, high in rows.ranges(int(ordinals[0]), int(ordinals[-1]) + 1):
            start, stop = np.searchsorted(ordinals, (part.first + low, part.first + high)).tolist()
            for first in range(start, stop, size):
                last = min(first + size, stop)
                places = ordinals[first:last] - part.first
                yield asked.by_sets(temporal.slice(first, last), part.matches, places)

    def _rows_that_stand(self, context: EvaluationContext) -> TemporalRelation:
        """The rows that are there at the beginning of a transition."""
        temporal = context.scan_history(self.kind).alive()
        temporal = temporal.where(temporal.valid_from <= context.interval.since)
        if self.exits_known and not context.transition.by_source[self.kind.source].moves:
            temporal = self._with_exits(context, temporal)
        self.visited += len(temporal)
        return temporal

    def _in_pieces(self, temporal: TemporalRelation, rows: Rows, columns: Int32Array) -> Iterator[Delta]:
        """Rows with those of some columns that accept each. At least one delta."""
        asked = AskedColumns({int(column): self._predicate(int(column)) for column in columns})
        size = max(1, int(PAIRS_MAX / max(1.0, asked.columns_a_row(temporal, rows))))
        for start in range(0, max(1, len(temporal)), size):
            stop = min(start + size, len(temporal))
            yield self._accepted(temporal.slice(start, stop), rows, asked).owned()

    def _with_exits(self, context: EvaluationContext, temporal: TemporalRelation) -> TemporalRelation:
        """Rows of a source that stands still, with the exits that they will have when it moves on."""
        assert isinstance(self.kind.window, TimeWindow)
        ends = doubled(ends_of(self.kind.window, self._timestamps(context, temporal.relation)))
        return TemporalRelation(temporal.relation, temporal.valid_from, np.minimum(temporal.valid_to, ends))

    def _timestamps(self, context: EvaluationContext, relation: Relation) -> Int64Array:
        """int64[n], ms: of rows of the source."""
        rows = context.transition.by_source[self.kind.source].at.rows
        ordinals = relation.stored_ordinals()
        low, high = _span_of(ordinals)
        parts = [part.timestamp[first:last] for part, first, last in rows.ranges(low, high)]
        return np.concatenate([np.empty(0, np.int64), *parts])[ordinals - low]

    def asked(self, column: int) -> AskedColumns:
        """What a column asks for, as long as somebody wants it."""
        return AskedColumns({column: self._predicate(column)})

    def _all(self) -> AskedColumns:
        if self._asked is None:
            self._asked = AskedColumns(
                {column: self._predicate(column) for column in self.columns.all().tolist()}
            )
        return self._asked

    def _accepted(self, temporal: TemporalRelation, rows: Rows, asked: AskedColumns) -> Delta:
        """The rows with the columns that accept each."""
        n = len(temporal)
        found: list[tuple[Int64Array, Int32Array]] = [
            (np.arange(n), np.full(n, column, np.int32)) for column in asked.every
        ]
        seen = temporal.relation
        if asked.evaluated and self.kind.assignment is not None:
            seen = stored_rows(rows, seen.stored_ordinals())  # conditions are of the source's columns
        for column, predicate in asked.evaluated:
            places = np.flatnonzero(truth(predicate, seen.columns, n)[0])
            found.append((places, np.full(len(places), column, np.int32)))
        if len(asked.slots.slots) and n:
            found.append(asked.by_slot(temporal, rows))
        ids = lambda: self._ids(temporal.relation)  # noqa: E731
        if len(found) == 1 and len(asked.every) == 1:
            return Delta.of_one_each(temporal, found[0][1], ids)
        places = np.concatenate([each for each, _ in found]) if found else np.empty(0, np.int64)
        owners = np.concatenate([each for _, each in found]) if found else np.empty(0, np.int32)
        if (places[1:] >= places[:-1]).all():
            return Delta(temporal, starts_of(places, n), owners, ids)
        starts, order = np.empty(n + 1, np.int64), np.empty(len(places), np.int64)
        grouping.bring_together(places, starts, order)
        return Delta(temporal, starts, owners[order], ids)

    def _ids(self, relation: Relation) -> Int64Array:
        """The end and the start of each row's window, where rows have one, and its ordinal in the source."""
        ordinals = relation.stored_ordinals()
        if self.kind.assignment is None:
            return ordinals.reshape(-1, 1)
        start, end = relation.columns[-2:]
        return np.stack([end.values, start.values, ordinals], axis=1)


def stored_rows(rows: Rows, ordinals: Int64Array) -> Relation:
    """Rows of the source, with the columns of the stream."""
    parts = [part for part, _, _ in rows.ranges(*_span_of(ordinals))]
    if len(parts) == 1:
        return rows_at(rows.schema, [(parts[0], ordinals - parts[0].first)])
    part_of = np.searchsorted([part.first for part in parts], ordinals, side="right").astype(np.int16) - 1
    order = np.argsort(part_of, kind="stable")
    borders = np.searchsorted(part_of[order], np.arange(len(parts) + 1))
    found = [
        (part, ordinals[order[start:stop]] - part.first)
        for part, (start, stop) in zip(parts, pairwise(borders.tolist()), strict=True)
    ]
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return rows_at(rows.schema, found).take(places)


def starts_of(places: Int64Array, n: int) -> Int64Array:
    """int64[n + 1]: where those of each of n rows begin. places: ascending."""
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(places, minlength=n), out=starts[1:])
    return starts


def _span_of(ordinals: Int64Array) -> tuple[int, int]:
    """From the least to behind the greatest."""
    return (int(ordinals.min()), int(ordinals.max()) + 1) if len(ordinals) else (0, 0)


class AskedColumns:
    """Columns by how it is known what they accept. every: those without a predicate. evaluated: those whose
    matches are not kept. slots: of the others, by the names of their columns.
    """

    def __init__(self, predicates: dict[int, Predicate]) -> None:
        self.every = [column for column, predicate in predicates.items() if predicate is None]
        self.evaluated: list[tuple[int, Expression]] = [
            (column, predicate)
            for column, predicate in predicates.items()
            if predicate is not None and not isinstance(predicate, int)
        ]
        held = {predicate: column for column, predicate in predicates.items() if isinstance(predicate, int)}
        columns = np.array(list(held.values()), np.int32)
        self.slots = Slots(np.array(list(held), np.int32), columns)

    def places(self, temporal: TemporalRelation, rows: Rows) -> Int64Array:
        """The places of the rows that some of them accept, of one column alone; of a scan without windows of
        its own.
        """
        n = len(temporal)
        if self.every or not n:
            return np.arange(n)
        if self.evaluated:
            return np.flatnonzero(truth(self.evaluated[0][1], temporal.relation.columns, n)[0])
        return self.by_slot(temporal, rows)[0]

    def columns_a_row(self, temporal: TemporalRelation, rows: Rows) -> float:
        """At most so many of the columns accept a row, in each segment on average."""
        most, n = 0.0, len(temporal)
        if len(self.slots.slots) and n:
            ordinals = temporal.relation.stored_ordinals()
            for part, first, last in rows.ranges(int(ordinals.min()), int(ordinals.max()) + 1):
                most = max(most, accepted_at_most(part.matches, self.slots, last - first) / (last - first))
        return len(self.every) + len(self.evaluated) + most

    def by_sets(self, temporal: TemporalRelation, matches: PartMatches, rows: Int64Array) -> SetDelta:
        """Rows of a segment, int64[n], ascending, with the sets of columns that accept each; no rows of
        nobody.
        """
        found = sets_of(matches, self.slots, rows)
        n, sets = len(rows), found.sets
        places, numbers = found.rows, found.numbers
        if self.every:
            places = np.concatenate([places, np.arange(n)])
            numbers = np.concatenate([numbers, np.full(n, len(sets), np.int32)])
            sets = [*sets, np.array(self.every, np.int32)]
        if bool((places[1:] >= places[:-1]).all()):
            starts = starts_of(places, n)
        else:
            starts, order = np.empty(n + 1, np.int64), np.empty(len(places), np.int64)
            grouping.bring_together(places, starts, order)
            numbers = numbers[order]
        return SetDelta(Delta(temporal, starts, numbers).owned(), sets)

    def by_slot(self, temporal: TemporalRelation, rows: Rows) -> tuple[Int64Array, Int32Array]:
        """(row, column) of every acceptance."""
        ordinals = temporal.relation.stored_ordinals()
        ascend = bool((ordinals[1:] > ordinals[:-1]).all())
        distinct = ordinals if ascend else np.unique(ordinals)
        found_rows, found_columns = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for part, low, high in rows.ranges(int(distinct[0]), int(distinct[-1]) + 1):
            start, stop = np.searchsorted(distinct, (part.first + low, part.first + high)).tolist()
            if start < stop:
                places, columns = accepted_of(part.matches, self.slots, distinct[start:stop] - part.first)
                found_rows.append(start + places)
                found_columns.append(columns)
        places, columns = np.concatenate(found_rows), np.concatenate(found_columns)
        return (places, columns) if ascend else _repeated(ordinals, distinct, places, columns)


def _repeated(
    ordinals: Int64Array, distinct: Int64Array, places: Int64Array, columns: Int32Array
) -> tuple[Int64Array, Int32Array]:
    """From acceptances of distinct rows to those of rows that stand several times."""
    starts, order = np.empty(len(distinct) + 1, np.int64), np.empty(len(places), np.int64)
    grouping.bring_together(places, starts, order)
    columns = columns[order]
    which = np.searchsorted(distinct, ordinals)
    counts = np.diff(starts)[which]
    rows = np.repeat(np.arange(len(ordinals)), counts)
    return rows, columns[places_of(starts[which], counts)]
