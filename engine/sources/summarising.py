"""Summaries of one source at work: made from its rows, kept up with them, and brought back.

A summary takes rows in after each step of the source, in the order of their ordinals, and is then at NOW of
the source, or of queries that lag behind it. One that comes later is built from the retained rows, as if it
had always been there; so is every one where rows get other ordinals (history comes back). Cost: O(rows) to
build one.

Rows are taken in piece by piece, and the summary goes on with each: what a piece makes is collapsed before
the next one comes. So building one needs no more memory than it has in the end, however sparse the rows are.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from engine.model.capacities import USUAL, Capacities
from engine.model.source import Stream
from engine.model.state_tree import Tree, of_tree
from engine.model.summary import SummaryDefinition, SummaryName
from engine.stems.rows import Rows
from engine.summaries.state import SummaryState
from engine.summaries.summary import Summary

PIECE = 8
"""Granularities that a piece of rows spans at most: so many zones come before any is collapsed."""


class SummarisedRows:
    """The summaries of a source, by name; ``at_work`` is theirs to read."""

    def __init__(self, stream: Stream, capacities: Capacities = USUAL) -> None:
        self._capacities = capacities
        self.at_work: dict[SummaryName, Summary] = {}
        self._stream = stream
        self._next = 0
        """The first ordinal that the summaries have not taken in, while there are some."""

    def create(self, definition: SummaryDefinition, rows: Rows, now_ms: int | None) -> None:
        """As if it had always been there. O(rows within its reach); of a summary that learns how values are
        spread, which it does from the first rows, O(retained rows).
        """
        place = self._place(definition)
        summary = Summary(definition, self._stream.schema.field(place).type, self._capacities)
        self.at_work[definition.name] = summary
        self._next = rows.end
        _take(summary, place, rows, _first_of(summary, rows, now_ms), now_ms)

    def zones_of(self, definition: SummaryDefinition, rows: Rows, now_ms: int | None) -> int:
        """How many zones :meth:`create` would make at least: one of the rows of each granularity."""
        kind = self._stream.schema.field(self._place(definition)).type
        first = _first_of(Summary(definition, kind), rows, now_ms)
        begins = [
            part.timestamp[start:stop] // definition.granularity_ms
            for part, start, stop in (rows.ranges(first, rows.end) if first < rows.end else ())
        ]
        return sum(1 + int(np.count_nonzero(np.diff(one))) for one in begins)

    def alter(self, definition: SummaryDefinition) -> None:
        """Other settings for the rows to come."""
        settings = definition.settings
        rows_min = max(2, settings.zone_rows_min)  # one row tells nothing of a zone
        self.at_work[definition.name].alter(theta=settings.theta, zone_rows_min=rows_min)

    def forget(self, name: SummaryName) -> None:
        del self.at_work[name]

    def restore(self, definition: SummaryDefinition, counts: Tree, rows: Rows, now_ms: int | None) -> None:
        """As saved, but for rows that are gone since; counts: None where they are to be made anew."""
        if counts is None:
            self.create(definition, rows, now_ms)
            return
        kind = self._stream.schema.field(self._place(definition)).type
        summary = Summary.restored(definition, kind, of_tree(SummaryState, counts), self._capacities)
        summary.drop_below(rows.base)
        self.at_work[definition.name] = summary
        self._next = rows.end

    def advance(self, rows: Rows, now_ms: int | None, held_ms: Mapping[SummaryName, int | None]) -> bool:
        """NOW of the source is this instant, and these are its rows. held_ms: NOW of queries over several
        sources that use a summary, where they have one; it goes no further than that, since their windows
        reach back from there. Returns whether NOW of a summary moved. O(new rows) a summary.
        """
        first, self._next = self._next, rows.end
        moved = False
        for name, summary in self.at_work.items():
            to_ms = now_ms
            if now_ms is not None and name in held_ms:
                held = held_ms[name]
                to_ms = None if held is None else min(now_ms, held)
            before_ms = summary.now_ms
            _take(summary, self._place(summary.definition), rows, first, to_ms)
            moved |= summary.now_ms != before_ms
        return moved

    def begin_anew(self, rows: Rows) -> None:
        """Rows have other ordinals: every summary is made again. O(retained rows) a summary."""
        for summary in list(self.at_work.values()):
            self.create(summary.definition, rows, summary.now_ms)

    def drop_below(self, ordinal: int) -> None:
        """The source let go of the rows below."""
        for summary in self.at_work.values():
            summary.drop_below(ordinal)

    def _place(self, definition: SummaryDefinition) -> int:
        place = self._stream.schema.index(definition.attribute)
        assert place is not None
        return place


def _first_of(summary: Summary, rows: Rows, now_ms: int | None) -> int:
    """The first ordinal that a summary would still have something of, had it always been there."""
    if now_ms is None or summary.bucketing.learning is not None:
        return rows.base
    definition = summary.definition
    # Zones begin anew at each multiple of T1. The last one reaches back to a multiple of its own length.
    zone_ms = definition.lengths_ms[max(0, definition.depth - 2)]
    from_ms = ((now_ms - definition.reach_ms) // zone_ms - 1) * zone_ms
    return max(rows.base, rows.first_at_or_after(from_ms))


def _take(summary: Summary, place: int, rows: Rows, first: int, now_ms: int | None) -> None:
    """The rows from this ordinal on, then NOW, if there is one. place: of the attribute among the columns."""
    span_ms = PIECE * summary.definition.granularity_ms
    for part, start, stop in rows.ranges(first, rows.end) if first < rows.end else ():
        values = part.columns[place].whole(part.n)
        cuts = start + 1 + np.flatnonzero(np.diff(part.timestamp[start:stop] // span_ms))
        for at, end in pairwise((start, *cuts.tolist(), stop)):
            summary.enter(values.slice(at, end), part.timestamp[at:end], part.first + at)
            if now_ms is not None:
                _advance(summary, min(now_ms, int(part.timestamp[end - 1])))
    if now_ms is not None:
        _advance(summary, now_ms)


def _advance(summary: Summary, now_ms: int) -> None:
    if summary.now_ms is None or now_ms > summary.now_ms:
        summary.advance(now_ms)
