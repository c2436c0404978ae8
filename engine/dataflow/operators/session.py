"""SESSION: rows of sessions that come when their session ends, and go as the window behind it has it.

A session ends when no row of its keys came for the gap. Which do is seen from the rows whose gap has passed
(:mod:`engine.dataflow.arrangements.session_rows`), so a step looks at what came and at the rows of sessions
that come, go or lose rows to retention. Cost: O(rows that came + rows of these sessions); O(retained) when a
query comes.
"""

from __future__ import annotations

from engine.changes.assigned import session_lives
from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.changes.windows import moving
from engine.dataflow.arrangements.session_rows import SessionRows
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.operators.readers import SeenByReaders
from engine.dataflow.operators.scan import ScanNode, stored_rows
from engine.language.query import Scan
from engine.operators.gather import ordinals_of, rows_at
from engine.operators.places import timestamps_at
from engine.operators.scan import ScanAt
from engine.windows.assignment import Session
from engine.windows.clauses import TimeWindow


class SessionNode(SeenByReaders, ScanNode):
    """Sessions depend on which rows there are, so the predicate is the same for all queries of the node."""

    def __init__(self, kind: Scan, settings: StateSettings | None = None) -> None:
        """kind: with its predicate."""
        super().__init__(kind, settings=settings)
        assert isinstance(kind.assignment, Session)
        assert isinstance(kind.window, TimeWindow)
        self._session, self._window = kind.assignment, kind.window
        self.readers = {}
        self.forget()

    def forget(self) -> None:
        self._rows: SessionRows | None = None
        self._end = 0
        """The ordinal behind the last row that was looked at."""
        self._moved: tuple[EvaluationContext, TemporalRelation] | None = None

    def rest(self) -> None:
        super().rest()
        self._moved = None

    def moved(self, context: EvaluationContext) -> TemporalRelation:
        if self._moved is None or self._moved[0] is not context:
            self._moved = context, self._moving(context)
        return self._moved[1]

    def _moving(self, context: EvaluationContext) -> TemporalRelation:
        within = self._seen(context).within(self.kind.source)
        at_source = within.at_source
        if not at_source.moves or at_source.at.now_ms is None:
            return context.scan_history(self.kind).changed()
        rows = self._take_up(at_source.at)
        spans = moving(self._window, within.since_ms, within.until_ms)
        ordinals, sessions = rows.ending(spans, at_source.retained_to_ms)
        self.visited += len(ordinals)
        stream = stored_rows(at_source.at.rows, ordinals)
        lives = session_lives(stream, sessions, self._window, within, changing=True)
        return lives.changing(within.interval)

    def _take_up(self, at: ScanAt) -> SessionRows:
        """All rows that are retained when a transition begins, and those that came with it."""
        rows = self._rows
        if rows is None:
            types = [key.type for key in self._session.keys]
            rows = self._rows = SessionRows(self._session.gap_ms, types, self.settings.capacities)
        rows.leave(at.first_retained)
        start, self._end = max(self._end, at.first_retained), at.end
        if start < at.end:
            places = at.matching(self.kind.predicate, start, at.end)
            stream = rows_at(at.rows.schema, places)
            keys, _ = stream.values_of(self._session.keys)
            self.visited += len(stream)
            rows.append(ordinals_of(places), timestamps_at(places), keys)
        return rows

    @property
    def rows(self) -> int:
        return 0 if self._rows is None else len(self._rows)

    @property
    def nbytes(self) -> int:
        return 0 if self._rows is None else self._rows.nbytes

    def _check(self) -> None:
        super()._check()
        if self._rows is not None:
            self._rows._check()
