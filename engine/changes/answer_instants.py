"""The instants at which the answer of a query may change: rows of its scans come or go, or elements of its
streams of subqueries do.

Cost: that of the changes of the scans, a sort.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from engine.algebra.streamed.stage import Streamed
from engine.changes.context import EvaluationContext
from engine.changes.source_interval import doubled, halved
from engine.changes.transition import NEVER
from engine.changes.windows import begins_of, ends_of
from engine.language.query import Query
from engine.model.batch import Int64Array
from engine.windows.clauses import RowWindow, TimeWindow


def instants_of(query: Query, context: EvaluationContext) -> Int64Array:
    """int64, ascending, in the scale of lives: the instants of the interval at which the answer of a query
    may change. Those at which rows of its scans come or go, and, where it makes a stream of changes, those
    at which the elements that these may be come into a window or leave it.
    """
    found = [context.scan_history(query.scan).changed().instants(context.interval)]
    for place, stage in enumerate(query.stages):
        if stage.right_input is not None:
            found.append(instants_of(stage.right_input, context))
        elif stage.stream is not None:
            found += _turns(replace(query, stages=query.stages[:place]), stage.stream, context)
    return np.unique(np.concatenate(found))


def _turns(below: Query, stage: Streamed, context: EvaluationContext) -> Iterator[Int64Array]:
    """When elements come into a window of time and leave it, whichever of the instants of a relation has
    some, and when retention takes elements, or rows that they are made of.
    """
    transition, since_ms, window = context.transition, context.transition.since_ms, stage.window
    taking = {
        name: at_source.retained_to_ms
        for name, at_source in transition.by_source.items()
        if at_source.retained_to_ms is not None
    }
    if taking:
        since_ms = NEVER
    elif isinstance(window, RowWindow):
        return
    elif since_ms > NEVER + 1:
        slide_ms = window.slide_ms or 0
        lag_ms = max(0, -window.end.ms) if window.end.relative else 0
        since_ms -= max(window.reach_ms or 0, lag_ms + slide_ms) + 1
    if transition.instant_ms is None:
        earlier = EvaluationContext(replace(transition, since_ms=since_ms), context.limits)
        instants = np.unique(halved(instants_of(below, earlier)))
        if isinstance(window, TimeWindow):
            turns = np.concatenate([begins_of(window, instants), ends_of(window, instants)])
            turns = turns[(turns > transition.since_ms) & (turns <= transition.until_ms)]
            yield doubled(np.unique(turns))
    else:
        instants = np.empty(0, np.int64)
    for name, retained_to_ms in taking.items():
        within = context.within(name)
        for at_source in transition.by_source.values():
            instants = np.concatenate([instants, *(part.timestamp for part in at_source.at.rows.parts)])
        gone = within.gone(np.unique(instants[instants < retained_to_ms]))
        assert gone is not None
        yield gone[context.interval.among(gone)]
        yield np.full(1, within.end)
