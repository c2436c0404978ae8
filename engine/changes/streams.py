"""Streams of subqueries: the changes of a relation from instant to instant, and a window over them.

    FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k) [RANGE 5 MINUTES]

    at 10:00:01   (a, 1)            element (a, 1) of 10:00:01
    at 10:00:03   (a, 2)            element (a, 2) of 10:00:03
    at 11:00:02   (a, 1)            element (a, 1) of 11:00:02, as a row went

What comes into the relation and leaves it (CQL, ISTREAM and DSTREAM) is told as of any query that is
followed. RSTREAM is the relation at each instant at which a row comes into one of its scans or leaves it;
between two of them it is the same. Elements are made of the rows that are retained now. Those after the first
instant from which on nothing is gone that the relation's windows reach back to are known for certain; an
answer that holds others says so.

Cost: that of the changes, and an evaluation for each instant that has several elements; of RSTREAM an
evaluation for each instant that the window holds, and the rows of all these answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import numpy as np

from engine.algebra.streamed.stage import Streamed, StreamOperator
from engine.changes.answer_instants import instants_of
from engine.changes.context import EvaluationContext
from engine.changes.element_keys import kept
from engine.changes.element_order import element_order
from engine.changes.elements import Elements, joined, placed
from engine.changes.known_elements import gone_before_ms, known_from_ms, later
from engine.changes.source_interval import halved
from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.language.query import Query
from engine.model.batch import Int64Array
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.pipeline import relation_of
from engine.operators.relation import Relation
from engine.operators.row_windows import last_of_relation
from engine.operators.scan import ScanAt, Scanned
from engine.stems.table_stem import TableRows
from engine.windows.clauses import RowWindow
from tureen.errors import LimitExceeded


class Followed(Protocol):
    """The changes of a query by one operator, one transition after another; one that does not begin where the
    last ended is begun anew.
    """

    def __call__(self, transition: Transition, limits: Limits) -> tuple[Relation, Int64Array]:
        """The rows that come into the answer, or leave it, and when, int64[n], ms, in no order.

        Raises LimitExceeded.
        """
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept from one transition to the next."""
        ...


Follow = Callable[[Query, StreamOperator], Followed]


class Streams:
    """Gives streams of subqueries, as :class:`engine.operators.stream_source.StreamSource` says."""

    def __init__(self, follow: Follow) -> None:
        """follow: begins to tell the changes of a query."""
        self._follow = follow

    def followed(self, below: Query, operator: StreamOperator) -> Followed | None:
        """Who tells the changes of a query; None: its elements are its answers."""
        return None if operator == "rstream" else self._follow(below, operator)

    def __call__(
        self, below: Query, stage: Streamed, at: Mapping[SourceName, ScanAt], limits: Limits
    ) -> Scanned:
        now_ms = now_of(at)
        if now_ms is None:
            nothing = np.empty(0, np.int64)
            return Scanned(placed(Elements(relation_of(below, at, limits, self).slice(0, 0), nothing)))
        window, floor_ms = stage.window, gone_before_ms(at)
        begin_ms, last_ms = (None, now_ms) if isinstance(window, RowWindow) else window.bounds_ms(now_ms)
        elements = self.elements(below, stage, at, later(begin_ms, floor_ms), now_ms, limits)
        first_ms = begin_ms
        if isinstance(window, RowWindow):
            places, is_full = last_of_relation(window, elements.relation)
            elements = elements.take(places)
            first_ms = int(elements.timestamps[0]) if is_full else None
        else:
            elements = elements.slice(0, int(elements.timestamps.searchsorted(last_ms, "right")))
        return Scanned(placed(elements), known_from_ms(below, at, first_ms, now_ms, limits, self))

    def elements(
        self,
        below: Query,
        stage: Streamed,
        at: Mapping[SourceName, ScanAt],
        since_ms: int | None,
        until_ms: int,
        limits: Limits,
    ) -> Elements:
        """The elements of these instants, since_ms and until_ms among them; None: from the first one on. The
        window is not asked.

        Raises LimitExceeded.
        """
        before_ms = NEVER if since_ms is None else since_ms - 1
        transition = Transition(
            before_ms, until_ms, {name: SourceTransition(source, moves=True) for name, source in at.items()}
        )
        context = EvaluationContext(transition, limits)
        return self.of_transition(below, stage, context, self.followed(below, stage.operator))

    def of_transition(
        self, below: Query, stage: Streamed, context: EvaluationContext, followed: Followed | None
    ) -> Elements:
        """The elements of the instants of a transition. Raises LimitExceeded."""
        limits, transition = context.limits, context.transition

        def stands(instant: int) -> Relation:
            standing = {name: context.standing(name, instant) for name in transition.by_source}
            return relation_of(below, standing, limits, self)

        if followed is not None:
            relation, timestamps = followed(transition, limits)
            order = element_order(relation, timestamps, stage.operator, stands)
            found = Elements(relation.take(order), timestamps[order])
        else:
            following = ((instant, stands(instant)) for instant in instants_of(below, context).tolist())
            found = _answers(stands(context.interval.since).slice(0, 0), following, limits)
        if stage.sample is None or stage.sample.is_whole:
            return found
        return found.take(np.flatnonzero(kept(found.relation, found.timestamps, stage.sample)))


def _answers(none: Relation, following: Iterable[tuple[int, Relation]], limits: Limits) -> Elements:
    """The rows of successive relations. none: a relation without rows; following: each with its instant, in
    the scale of lives.
    """
    pieces, total = [Elements(none, np.empty(0, np.int64))], 0
    for instant, relation in following:
        total += len(relation)
        if total > limits.intermediate_rows_max:
            hint = "narrow the window over the subquery"
            raise LimitExceeded("intermediate_rows_max", limits.intermediate_rows_max, total, hint=hint)
        pieces.append(Elements(relation, np.full(len(relation), instant)))
    found = joined(pieces)
    return Elements(found.relation, halved(found.timestamps))


def now_of(at: Mapping[SourceName, ScanAt]) -> int | None:
    """NOW of a query whose sources stand so: the least of its streams, of tables alone the latest of
    theirs.
    """
    streams = [source.now_ms for source in at.values() if not isinstance(source.rows, TableRows)]
    if not streams:
        return max((source.now_ms for source in at.values() if source.now_ms is not None), default=None)
    known = [now_ms for now_ms in streams if now_ms is not None]
    return min(known) if len(known) == len(streams) else None
