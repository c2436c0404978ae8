"""Which elements of a stream are known for certain, of rows that retention takes.

Elements are made of the rows that are retained now. They are known after the first instant from which on
nothing is gone that the windows below reach back to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.changes.context import EvaluationContext
from engine.changes.transition import NEVER
from engine.language.query import Query
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.earlier import can_answer, first_answer_ms, nothing_before_ms
from engine.operators.scan import ScanAt
from engine.operators.stream_source import StreamSource
from engine.windows.clauses import RowWindow, TimeWindow


def gone_before_ms(at: Mapping[SourceName, ScanAt]) -> int | None:
    """Elements of instants before this one are gone with the rows of one of the sources; None: none are."""
    gone = [gone_ms for source in at.values() if (gone_ms := source.gone_before_ms) is not None]
    return max(gone, default=None)


def later(one_ms: int | None, other_ms: int | None) -> int | None:
    """The later of two instants that need not be there."""
    return max((ms for ms in (one_ms, other_ms) if ms is not None), default=None)


def first_held(window: TimeWindow, since_ms: int) -> int | None:
    """The first instant of elements that a window holds at an instant or later, None: the first of all."""
    if window.begin is None or since_ms <= NEVER + 1:
        return None
    first_ms, _ = window.bounds_ms(since_ms)
    return first_ms


def is_settled(query: Query, context: EvaluationContext, streams: StreamSource) -> bool:
    """Whether the last stage of a query makes a stream whose elements are the same whichever instant of the
    interval they are looked at: NOW goes on, and retention takes nothing that they are made of.
    """
    stage, transition = query.stages[-1].stream, context.transition
    if stage is None or transition.instant_ms is not None or transition.floor_ms != NEVER:
        return False
    if any(not at_source.moves for at_source in transition.by_source.values()):
        return False
    by_source = transition.by_source
    if all(at_source.retained_to_ms is None for at_source in by_source.values()):
        return True
    at = {
        name: at_source.at
        if at_source.retained_to_ms is None
        else replace(at_source.at, retained_from_ms=at_source.retained_to_ms)
        for name, at_source in by_source.items()
    }
    first_ms = None if isinstance(stage.window, RowWindow) else first_held(stage.window, transition.since_ms)
    floor_ms = gone_before_ms(at)
    if floor_ms is None:
        return True
    if first_ms is None or first_ms < floor_ms:
        return False
    below = replace(query, stages=query.stages[:-1])
    first = standing_at(at, first_ms - 1)
    return can_answer(below, first, context.limits, streams) and can_answer(
        below, at, context.limits, streams
    )


def known_from_ms(
    below: Query,
    at: Mapping[SourceName, ScanAt],
    first_ms: int | None,
    now_ms: int,
    limits: Limits,
    streams: StreamSource,
) -> int | None:
    """From when on elements are known, None where all from ``first_ms`` on are (None: from the first one on).
    What is lacking even now is told by the relation itself.
    """

    def standing(instant_ms: int) -> Mapping[SourceName, ScanAt]:
        return standing_at(at, instant_ms)

    def stands(instant_ms: int) -> bool:
        return can_answer(below, standing(instant_ms), limits, streams)

    floor_ms = gone_before_ms(at)
    low_ms = _nothing_known_ms(at, now_ms) if first_ms is None else first_ms - 1
    if not stands(now_ms):
        return None
    if stands(low_ms):
        is_there = floor_ms is None or (first_ms is not None and first_ms >= floor_ms)
        return None if is_there else floor_ms
    known_ms = first_answer_ms(below, standing, low_ms, now_ms, limits, streams)
    assert known_ms is not None
    return later(known_ms + 1, floor_ms)


def _nothing_known_ms(at: Mapping[SourceName, ScanAt], now_ms: int) -> int:
    """An instant before all that is there, or that is known to have been."""
    gone = [gone_ms - 1 for source in at.values() if (gone_ms := source.gone_before_ms) is not None]
    return min([nothing_before_ms(at, now_ms), *gone])


def standing_at(at: Mapping[SourceName, ScanAt], instant_ms: int) -> dict[SourceName, ScanAt]:
    """The sources at an earlier instant, each as it stands where it is behind that."""
    found = {}
    for name, source in at.items():
        if source.now_ms is not None and source.now_ms > instant_ms:
            end = min(source.end, source.rows.first_at_or_after(instant_ms + 1))
            source = replace(source, now_ms=instant_ms, end=end)
        found[name] = source
    return found
