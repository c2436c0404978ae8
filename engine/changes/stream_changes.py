"""How a window over a stream of a subquery changes from instant to instant.

Cost: that of the changes of the stages below, and O(elements that the window holds).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engine.algebra.streamed.stage import Streamed
from engine.changes.context import EvaluationContext
from engine.changes.elements import Elements, joined, placed
from engine.changes.known_elements import first_held, gone_before_ms, later
from engine.changes.source_interval import doubled
from engine.changes.streams import Followed, Streams
from engine.changes.temporal_relation import TemporalRelation
from engine.changes.transition import FOREVER, NEVER
from engine.changes.windows import begins_of, ends_of
from engine.language.evaluate import truth
from engine.language.query import Query
from engine.model.batch import Int64Array
from engine.operators.keys import number
from engine.windows.clauses import RowWindow


@dataclass(frozen=True, slots=True)
class Log:
    """The elements of a stream up to an instant that a window may still hold, and who tells those after it;
    None: they are the answers.
    """

    until_ms: int
    elements: Elements
    followed: Followed | None


class StreamChanges:
    """The elements in the window of a query's last stage over an interval: each comes with its instant, or
    when a window that trails behind reaches it, and goes when the window leaves it behind.

    Cost: that of the changes of the stages below, and O(elements that the window holds). Without a log
    elements are worked out from the first that the window holds at the begin of the interval.
    """

    def __init__(
        self,
        query: Query,
        stage: Streamed,
        context: EvaluationContext,
        streams: Streams,
        log: Log | None = None,
    ) -> None:
        """context: one for which :func:`is_settled`. log: that of the intervals before."""
        self._below, self._stage, self._context = replace(query, stages=query.stages[:-1]), stage, context
        self._streams = streams
        self._before = log
        self._alive: TemporalRelation | None = None
        self.log: Log | None = None
        """With the elements of this interval, once they are known."""

    def changed(self) -> TemporalRelation:
        """Elements that come or go."""
        return self.alive().changing(self._context.interval)

    def alive(self) -> TemporalRelation:
        """Elements that are in the window at some instant."""
        if self._alive is None:
            self._alive = self._made().there(self._context.interval)
        return self._alive

    def _made(self) -> TemporalRelation:
        window, elements = self._stage.window, self._elements()
        if isinstance(window, RowWindow):
            begins, ends = elements.timestamps, _pushed_out(window, elements)
        else:
            begins, ends = begins_of(window, elements.timestamps), ends_of(window, elements.timestamps)
        begins, ends = doubled(begins), doubled(ends)
        return TemporalRelation(placed(elements), begins, ends).where(begins < ends)

    def _elements(self) -> Elements:
        """Those that the window may hold at an instant of the interval."""
        window, transition, limits = self._stage.window, self._context.transition, self._context.limits
        before, since_ms = self._before, transition.since_ms
        if before is None:
            first_ms = None if isinstance(window, RowWindow) else first_held(window, since_ms)
            followed = self._streams.followed(self._below, self._stage.operator)
            if since_ms <= NEVER + 1:
                earlier = None
            else:
                at = {
                    name: self._context.within(name).as_of(2 * since_ms + 1) for name in transition.by_source
                }
                first_ms = later(first_ms, gone_before_ms(at))
                earlier = self._streams.elements(self._below, self._stage, at, first_ms, since_ms, limits)
        else:
            followed, earlier = before.followed, before.elements
        came = self._streams.of_transition(self._below, self._stage, self._context, followed)
        elements = came if earlier is None else joined([earlier, came])
        self.log = Log(transition.until_ms, self._held(elements), followed)
        return elements

    def _held(self, elements: Elements) -> Elements:
        """Those that the window may hold after the interval."""
        window = self._stage.window
        if isinstance(window, RowWindow):
            start = max(0, len(elements.timestamps) - window.rows) if window.plain else 0
        else:
            first_ms = first_held(window, self._context.transition.until_ms)
            start = 0 if first_ms is None else int(elements.timestamps.searchsorted(first_ms))
        return elements.slice(start, len(elements.timestamps)).copied()


def _pushed_out(window: RowWindow, elements: Elements) -> Int64Array:
    """int64[n]: the instants at which elements go; those before their own of elements that are never held."""
    n = len(elements.timestamps)
    ends = np.full(n, FOREVER)
    candidates = np.arange(n)
    if window.filter is not None:
        accepted = truth(window.filter, elements.relation.columns, n)[0]
        ends[~accepted] = NEVER
        candidates = np.flatnonzero(accepted)
    columns, _ = elements.relation.take(candidates).values_of(window.keys)
    codes, _ = number(columns, len(candidates))
    order = np.argsort(codes, kind="stable") if window.keys else np.arange(len(candidates))
    before, after = order[: max(0, len(order) - window.rows)], order[window.rows :]
    alike = codes[before] == codes[after]
    ends[candidates[before[alike]]] = elements.timestamps[candidates[after[alike]]]
    return ends
