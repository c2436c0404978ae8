"""Summaries of one source at work: made from its rows, kept up with them, and brought back.

A summary takes rows in as they enter the source, in the order of their ordinals, and is then at NOW of the
source, or of queries that lag behind it. One that comes later is built from the retained rows, as if it had
always been there; so is every one where rows get other ordinals (history comes back). Cost: O(rows) to build
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model.source import Stream
from engine.model.state_tree import Tree, of_tree
from engine.model.summary import SummaryDefinition, SummaryName
from engine.stems.data_stem import Rows
from engine.summaries.state import SummaryState
from engine.summaries.summary import Summary


class SummarisedRows:
    """The summaries of a source, by name; ``at_work`` is theirs to read."""

    def __init__(self, stream: Stream) -> None:
        self.at_work: dict[SummaryName, Summary] = {}
        self._stream = stream

    def create(self, definition: SummaryDefinition, rows: Rows, now_ms: int | None) -> None:
        """As if it had always been there. O(retained rows)."""
        place = self._place(definition)
        summary = Summary(definition, self._stream.schema.field(place).type)
        self.at_work[definition.name] = summary
        _enter([(summary, place)], rows, rows.base, rows.end)
        if now_ms is not None:
            summary.advance(now_ms)

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
        summary = Summary.restored(definition, kind, of_tree(SummaryState, counts))
        summary.drop_below(rows.base)
        self.at_work[definition.name] = summary

    def enter(self, rows: Rows, first: int) -> None:
        """The rows from this ordinal on are new. To be followed by :meth:`advance`. O(new rows) a summary."""
        if first < rows.end:
            _enter(
                ((one, self._place(one.definition)) for one in self.at_work.values()), rows, first, rows.end
            )

    def advance(self, now_ms: int | None, held_ms: Mapping[SummaryName, int | None]) -> bool:
        """NOW of the source is this instant. held_ms: NOW of queries over several sources that use a summary,
        where they have one; it goes no further than that, since their windows reach back from there. Returns
        whether a summary went on.
        """
        moved = False
        for name, summary in self.at_work.items():
            to_ms = now_ms
            if now_ms is not None and name in held_ms:
                held = held_ms[name]
                to_ms = None if held is None else min(now_ms, held)
            if to_ms is not None and (summary.now_ms is None or to_ms > summary.now_ms):
                summary.advance(to_ms)
                moved = True
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


def _enter(summaries: Iterable[tuple[Summary, int]], rows: Rows, first: int, end: int) -> None:
    taking = list(summaries)
    for part, start, stop in rows.ranges(first, end) if taking else ():
        for summary, place in taking:
            values = part.columns[place].whole(part.n).slice(start, stop)
            summary.enter(values, part.timestamp[start:stop], part.first + start)
