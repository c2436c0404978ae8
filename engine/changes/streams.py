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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from engine.algebra.streamed.stage import Streamed, StreamOperator
from engine.changes.context import EvaluationContext
from engine.changes.element_keys import kept
from engine.changes.equality import codes_of
from engine.changes.source_interval import doubled, halved
from engine.changes.temporal_relation import TemporalRelation, always, one_after_another
from engine.changes.transition import FOREVER, NEVER, SourceTransition, Transition
from engine.changes.windows import begins_of, ends_of
from engine.language.evaluate import truth
from engine.language.query import Query
from engine.model.batch import Column, Int64Array
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.earlier import can_answer, first_answer_ms, nothing_before_ms
from engine.operators.keys import number
from engine.operators.pipeline import relation_of
from engine.operators.relation import Moments, Relation
from engine.operators.row_windows import last_of_relation
from engine.operators.scan import ScanAt, Scanned
from engine.stems.table_stem import TableRows
from engine.windows.clauses import RowWindow, TimeWindow
from tureen.errors import LimitExceeded

PIECE_ROWS = 1 << 18
"""About so many rows of successive answers are compared at a time."""


@dataclass(frozen=True, slots=True)
class Elements:
    """Rows of a stream in order, with their instants in ms, int64[n] ascending."""

    relation: Relation
    timestamps: Int64Array

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(self.timestamps.nbytes) + sum(int(each.values.nbytes) for each in self.relation.columns)

    def slice(self, start: int, stop: int) -> Elements:
        """Those from a place to another."""
        return Elements(self.relation.slice(start, stop), self.timestamps[start:stop])

    def take(self, places: Int64Array) -> Elements:
        """Those at these places, ascending."""
        return Elements(self.relation.take(places), self.timestamps[places])


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


@dataclass(frozen=True, slots=True)
class Log:
    """The elements of a stream up to an instant that a window may still hold, and who tells those after it;
    None: they are the answers.
    """

    until_ms: int
    elements: Elements
    followed: Followed | None


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
        window, floor_ms = stage.window, _floor_ms(at)
        begin_ms, last_ms = (None, now_ms) if isinstance(window, RowWindow) else window.bounds_ms(now_ms)
        elements = self.elements(below, stage, at, _later(begin_ms, floor_ms), now_ms, limits)
        first_ms = begin_ms
        if isinstance(window, RowWindow):
            places, is_full = last_of_relation(window, elements.relation)
            elements = elements.take(places)
            first_ms = int(elements.timestamps[0]) if is_full else None
        else:
            elements = elements.slice(0, int(elements.timestamps.searchsorted(last_ms, "right")))
        return Scanned(placed(elements), _complete_from(below, at, first_ms, now_ms, limits, self))

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
            order = _order(relation, timestamps, stage.operator, stands)
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
    found = _joined(pieces)
    return Elements(found.relation, halved(found.timestamps))


def _joined(pieces: Sequence[Elements]) -> Elements:
    """The elements of several, one behind the other. At least one."""
    relation = one_after_another([always(each.relation) for each in pieces]).relation
    return Elements(relation, np.concatenate([each.timestamps for each in pieces]))


def _floor_ms(at: Mapping[SourceName, ScanAt]) -> int | None:
    """Elements of instants before this one are gone with the rows of one of the sources; None: none are."""
    gone = [gone_ms for source in at.values() if (gone_ms := source.gone_before_ms) is not None]
    return max(gone, default=None)


def _later(one_ms: int | None, other_ms: int | None) -> int | None:
    """The later of two instants that need not be there."""
    return max((ms for ms in (one_ms, other_ms) if ms is not None), default=None)


def now_of(at: Mapping[SourceName, ScanAt]) -> int | None:
    """NOW of a query whose sources stand so: the least of its streams, of tables alone the latest of
    theirs.
    """
    streams = [source.now_ms for source in at.values() if not isinstance(source.rows, TableRows)]
    if not streams:
        return max((source.now_ms for source in at.values() if source.now_ms is not None), default=None)
    known = [now_ms for now_ms in streams if now_ms is not None]
    return min(known) if len(known) == len(streams) else None


def placed(elements: Elements) -> Relation:
    """Elements as rows in the order of time: those of one instant are numbered from 0."""
    relation, timestamps = elements.relation, elements.timestamps

    def moments() -> Moments:
        first = np.searchsorted(timestamps, timestamps)
        zeros = np.zeros(len(timestamps), np.int64)
        return Moments(timestamps, zeros, np.arange(len(timestamps)) - first)

    return Relation(relation.columns, len(relation), moments=moments)


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
            first_ms = None if isinstance(window, RowWindow) else _first_held(window, since_ms)
            followed = self._streams.followed(self._below, self._stage.operator)
            if since_ms <= NEVER + 1:
                earlier = None
            else:
                at = {
                    name: self._context.within(name).as_of(2 * since_ms + 1) for name in transition.by_source
                }
                first_ms = _later(first_ms, _floor_ms(at))
                earlier = self._streams.elements(self._below, self._stage, at, first_ms, since_ms, limits)
        else:
            followed, earlier = before.followed, before.elements
        came = self._streams.of_transition(self._below, self._stage, self._context, followed)
        elements = came if earlier is None else _joined([earlier, came])
        self.log = Log(transition.until_ms, self._held(elements), followed)
        return elements

    def _held(self, elements: Elements) -> Elements:
        """Those that the window may hold after the interval."""
        window = self._stage.window
        if isinstance(window, RowWindow):
            start = max(0, len(elements.timestamps) - window.rows) if window.plain else 0
        else:
            first_ms = _first_held(window, self._context.transition.until_ms)
            start = 0 if first_ms is None else int(elements.timestamps.searchsorted(first_ms))
        return _compact(elements.slice(start, len(elements.timestamps)))


def _compact(elements: Elements) -> Elements:
    """Copies elements, so that the arrays that they were sliced from can be freed."""
    columns = []
    for column in elements.relation.columns:
        values, dictionary = column.values.copy(), column.dictionary
        if dictionary is not None and len(dictionary):
            used, places = np.unique(values, return_inverse=True)
            values, dictionary = places.astype(values.dtype), dictionary.take(used)
        valid = None if column.valid is None else column.valid.copy()
        columns.append(Column(column.type, values, valid, dictionary))
    return Elements(Relation(columns, len(elements.relation)), elements.timestamps.copy())


def is_settled(query: Query, context: EvaluationContext, streams: Streams) -> bool:
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
    first_ms = None if isinstance(stage.window, RowWindow) else _first_held(stage.window, transition.since_ms)
    floor_ms = _floor_ms(at)
    if floor_ms is None:
        return True
    if first_ms is None or first_ms < floor_ms:
        return False
    below = replace(query, stages=query.stages[:-1])
    first = standing_at(at, first_ms - 1)
    return can_answer(below, first, context.limits, streams) and can_answer(
        below, at, context.limits, streams
    )


def _first_held(window: TimeWindow, since_ms: int) -> int | None:
    """The first instant of elements that a window holds at an instant or later, None: the first of all."""
    if window.begin is None or since_ms <= NEVER + 1:
        return None
    first_ms, _ = window.bounds_ms(since_ms)
    return first_ms


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


# --- what is known --------------------------------------------------------------------------------


def _complete_from(
    below: Query,
    at: Mapping[SourceName, ScanAt],
    first_ms: int | None,
    now_ms: int,
    limits: Limits,
    streams: Streams,
) -> int | None:
    """From when on elements are known, None where all from ``first_ms`` on are (None: from the first one on).
    What is lacking even now is told by the relation itself.
    """

    def standing(instant_ms: int) -> Mapping[SourceName, ScanAt]:
        return standing_at(at, instant_ms)

    def stands(instant_ms: int) -> bool:
        return can_answer(below, standing(instant_ms), limits, streams)

    floor_ms = _floor_ms(at)
    low_ms = _nothing_known_ms(at, now_ms) if first_ms is None else first_ms - 1
    if not stands(now_ms):
        return None
    if stands(low_ms):
        is_there = floor_ms is None or (first_ms is not None and first_ms >= floor_ms)
        return None if is_there else floor_ms
    known_ms = first_answer_ms(below, standing, low_ms, now_ms, limits, streams)
    assert known_ms is not None
    return _later(known_ms + 1, floor_ms)


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


# --- elements -------------------------------------------------------------------------------------


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


def _order(
    relation: Relation, timestamps: Int64Array, operator: StreamOperator, stands: Callable[[int], Relation]
) -> Int64Array:
    """The places of elements in their order: by instant, those of one instant as in the relation that has
    them.

    Cost: a sort, and an evaluation for each instant that has several.
    """
    instants, which, counts = np.unique(timestamps, return_inverse=True, return_counts=True)
    places = np.zeros(len(timestamps), np.int64)
    tied = np.flatnonzero(counts > 1)
    start = 0
    while start < len(tied):
        there, rows, stop = list[Relation](), 0, start
        while stop < len(tied) and (not there or rows < PIECE_ROWS):
            instant = 2 * int(instants[tied[stop]])
            there.append(stands(instant if operator == "istream" else instant - 1))
            rows, stop = rows + len(there[-1]), stop + 1
        some = np.flatnonzero((which >= tied[start]) & (which <= tied[stop - 1]) & (counts[which] > 1))
        groups = np.searchsorted(tied[start:stop], which[some])
        places[some] = _places_in(relation.take(some), groups, there)
        start = stop
    return np.lexsort((places, timestamps))


def _places_in(relation: Relation, groups: Int64Array, there: Sequence[Relation]) -> Int64Array:
    """int64[n]: where each row is in the relation of its group, of equal ones the last. groups: int64[n]."""
    n, sizes = len(relation), [len(each) for each in there]
    whole = one_after_another([always(each) for each in (relation, *there)]).relation
    group = np.concatenate([groups, np.repeat(np.arange(len(there)), sizes)])
    keys = codes_of(whole.columns, len(whole)) * len(there) + group
    mine, theirs = keys[:n], keys[n:]
    order, others = np.argsort(mine, kind="stable"), np.argsort(theirs, kind="stable")
    ordered = mine[order]
    behind = np.searchsorted(ordered, ordered, "right") - np.arange(n)  # of equal ones, itself among them
    found = np.empty(n, np.int64)
    found[order] = others[np.searchsorted(theirs[others], ordered, "right") - behind]
    return found
