"""The allocation problem of queries that stand over the same sources, and what an allocation gives each.

A stream has one store, of which windows are views, so that there is one entity for it: how far back the store
reaches, up to the widest window of a tolerant query. A window is whole as long as the store reaches as far.
What exact queries hold costs nothing. Each query that may be sampled has a sampler, which takes of the time
of that query; queries of one plan are solved as one (:mod:`.grouping`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.language.query import Query, Scan
from engine.model.source import SourceName, Stream
from engine.model.tolerance import Tolerance
from engine.overload.precision.freedom import Freedom, freedoms
from engine.overload.precision.of_query import (
    WHOLE,
    CopiesOf,
    Knob,
    QueryShape,
    RowsOf,
    Turned,
    length_ms,
    not_known,
    rate_of,
    shape_of_query,
)
from engine.overload.precision.problem import Allocation, Entity, EntityId, PlannedQuery, Problem, QueryId
from engine.overload.precision.resources import MeasuredCurve
from engine.overload.precision.shape import PlanShape
from engine.windows.clauses import TimeWindow


@dataclass(frozen=True, slots=True)
class Reader:
    """A query that stands. cpu_ns: of each second, that it takes when it is given all. fixed: it is given
    what it asks for, whatever it tolerates. shed: of sources, the share of their rows that it lacks already.
    """

    query_id: QueryId
    query: Query
    tolerance: Tolerance
    weight: float = 1.0
    cpu_ns: float = 0.0
    fixed: bool = False
    shed: Mapping[SourceName, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Store:
    """Describes what is kept of one stream."""

    stream: Stream
    rows_per_s: float
    # Bytes of a row with its matches and indexes.
    row_bytes: float
    # The share of rows that come too late.
    late: float = 0.0
    # How long rows are kept, whoever reads them.
    retained_ms: int = 0
    # Bytes of what is kept besides rows for the widest of the windows that may shrink.
    state_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class ScanShare:
    """What a scan of a query is given. window_ms: how far behind NOW it reaches; rate: the share of rows that
    its sample keeps. None: what its text asks for.
    """

    window_ms: int | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class QueriesProblem:
    """problem: to be solved. widest_ms: of each stream's store. plans: the freedoms of the scans of each
    query, and what its slots are.
    """

    problem: Problem
    widest_ms: Mapping[SourceName, int]
    plans: Mapping[QueryId, tuple[Reader, tuple[Freedom, ...], tuple[Knob, ...]]]

    def given(self, allocation: Allocation) -> dict[QueryId, tuple[ScanShare, ...]]:
        """By query that tolerates something, for each of its scans."""
        return {name: self._given(allocation, *plan) for name, plan in self.plans.items()}

    def _given(
        self, allocation: Allocation, reader: Reader, free: tuple[Freedom, ...], knobs: tuple[Knob, ...]
    ) -> tuple[ScanShare, ...]:
        found = []
        for place, (scan, freedom) in enumerate(zip(reader.query.scans(), free, strict=True)):
            window_ms = rate = None
            if Knob(place, "window") in knobs and isinstance(scan.window, TimeWindow):
                asked_ms = scan.window.reach_ms or 0
                reach_ms = int(allocation.x[store_id(scan.source)] * self.widest_ms[scan.source] + 0.5)
                if reach_ms < asked_ms:
                    window_ms = max(reach_ms, int((freedom.window or 1.0) * asked_ms))
            if Knob(place, "rate") in knobs:
                kept = allocation.x[sampler_id(reader.query_id, place)]
                rate = kept * rate_of(scan) if kept < 1.0 else None
            found.append(ScanShare(window_ms, rate))
        return tuple(found)


def store_id(source: SourceName) -> EntityId:
    """The entity of a stream's store."""
    return EntityId(f"store/{source}")


def sampler_id(query_id: QueryId, scan: int) -> EntityId:
    """The entity of the sampler of a query's scan."""
    return EntityId(f"sampler/{query_id}/{scan}")


def _samplers(one: Reader, own: tuple[Freedom, ...], shape: QueryShape) -> list[Entity]:
    """What takes the time of a query whose rows may be sampled: equal parts for each scan that is."""
    scans = tuple(one.query.scans())
    sampled = [knob.scan for knob in shape.knobs if knob.kind == "rate"]
    # What the text samples is what it asks for, so the share is of that.
    least = [(own[scan].rate or 1.0) / rate_of(scans[scan]) for scan in sampled]
    cpu_ns = one.cpu_ns / max(1, len(sampled))
    return [
        Entity(sampler_id(one.query_id, scan), "sampler", low, cpu_ns=cpu_ns)
        for scan, low in zip(sampled, least, strict=True)
    ]


def _planned(one: Reader, shape: QueryShape, plan: PlanShape) -> PlannedQuery:
    scans, tolerance = tuple(one.query.scans()), one.tolerance
    names = tuple(
        store_id(scans[knob.scan].source) if knob.kind == "window" else sampler_id(one.query_id, knob.scan)
        for knob in shape.knobs
    )
    return PlannedQuery(
        one.query_id, plan, names, one.weight, tolerance.max_fp, tolerance.max_fn, tolerance.max_error
    )


def problem_of(
    readers: Sequence[Reader],
    stores: Mapping[SourceName, Store],
    rows_of: RowsOf,
    budget_bytes: float | None = None,
    budget_cpu_ns: float | None = None,
    *,
    rates: bool = True,
    copies_of: CopiesOf = not_known,
) -> QueriesProblem:
    """budget_bytes: for all that the streams' stores take; budget_cpu_ns: of each second, for all queries.

    rates: whether sampling rates may be lowered, which saves time alone. Queries that tolerate nothing are
    exact: they hold what they need. Cost: O(readers), and of each tree that readers share O(scans) and what
    rows_of costs.
    """
    streams = {name: store.stream for name, store in stores.items()}
    known: dict[tuple[int, Tolerance, bool], tuple[Freedom, ...]] = {}
    free: dict[QueryId, tuple[Freedom, ...]] = {}
    for one in readers:
        like = id(one.query), one.tolerance, one.fixed
        if like not in known:
            known[like] = _freedoms(one, streams)
        free[one.query_id] = known[like]
    widest_ms, held_ms, least_ms = _reaches(readers, free)
    entities = [
        _store(name, stores[name], widest_ms[name], held_ms.get(name, 0), least_ms[name])
        for name in widest_ms
    ]
    queries, plans = [], {}
    late = {name: store.late for name, store in stores.items()}
    spent_ns = 0.0
    shapes: dict[tuple[int, Tolerance, bool], tuple[QueryShape, PlanShape]] = {}
    for one in readers:
        own, like = free[one.query_id], (id(one.query), one.tolerance, one.fixed)
        if like not in shapes:
            turned = _turned(tuple(one.query.scans()), own, widest_ms, rates=rates)
            lost = late | {
                name: 1.0 - (1.0 - late.get(name, 0.0)) * (1.0 - share) for name, share in one.shed.items()
            }
            shape = shape_of_query(one.query, rows_of, lost, turned, copies_of=copies_of)
            shapes[like] = shape, shape.plan
        shape, plan = shapes[like]
        if not shape.knobs:
            spent_ns += one.cpu_ns
            continue
        samplers = _samplers(one, own, shape)
        if not samplers:
            spent_ns += one.cpu_ns
        entities += samplers
        queries.append(_planned(one, shape, plan))
        plans[one.query_id] = one, own, shape.knobs
    left_ns = None if budget_cpu_ns is None else max(0.0, budget_cpu_ns - spent_ns)
    return QueriesProblem(Problem(entities, queries, budget_bytes, left_ns), widest_ms, plans)


def _freedoms(reader: Reader, streams: Mapping[SourceName, Stream]) -> tuple[Freedom, ...]:
    if reader.fixed:
        return tuple(Freedom() for _ in reader.query.scans())
    return freedoms(reader.query, streams, reader.tolerance, promised=True)


def _turned(
    scans: Sequence[Scan], free: Sequence[Freedom], widest_ms: Mapping[SourceName, int], *, rates: bool
) -> Turned:
    """Which knobs a query has: its window is whole where the store reaches as far."""

    def kept_by(knob: Knob) -> MeasuredCurve | None:
        scan, freedom = scans[knob.scan], free[knob.scan]
        if knob.kind == "rate":
            return WHOLE if rates and freedom.rate is not None else None
        if freedom.window is None or not isinstance(scan.window, TimeWindow):
            return None
        return _kept_by_store(scan.window, widest_ms[scan.source])

    return kept_by


def _kept_by_store(window: TimeWindow, widest_ms: int) -> MeasuredCurve:
    """The share of a window by that of its store: what lies before its end, and what a slide holds back, come
    first.
    """
    reach_ms, whole_ms = window.reach_ms or 0, length_ms(window) or 0
    before, whole = max(0, reach_ms - whole_ms) / widest_ms, reach_ms / widest_ms
    points = [(0.0, 0.0), (before, 0.0), (whole, 1.0), (1.0, 1.0)]
    # Where two fall together, the one that gives more counts.
    by_place = dict(sorted(points))
    return MeasuredCurve(tuple(by_place), tuple(by_place.values()))


def _reaches(
    readers: Sequence[Reader], free: Mapping[QueryId, tuple[Freedom, ...]]
) -> tuple[dict[SourceName, int], dict[SourceName, int], dict[SourceName, float]]:
    """By stream: the widest window that may shrink, in ms; the widest that may not; and how far back the
    store must reach for each of the first, in ms.
    """
    widest: dict[SourceName, int] = {}
    held: dict[SourceName, int] = {}
    least: dict[SourceName, float] = {}
    for one in readers:
        for scan, freedom in zip(one.query.scans(), free[one.query_id], strict=True):
            reach_ms = scan.window.reach_ms if isinstance(scan.window, TimeWindow) else None
            if not reach_ms:
                continue
            if freedom.window is None:
                held[scan.source] = max(held.get(scan.source, 0), reach_ms)
            else:
                widest[scan.source] = max(widest.get(scan.source, 0), reach_ms)
                least[scan.source] = max(least.get(scan.source, 0.0), freedom.window * reach_ms)
    return widest, held, least


def _store(name: SourceName, store: Store, widest_ms: int, held_ms: int, least_ms: float) -> Entity:
    rows_bytes = store.rows_per_s * widest_ms / 1_000 * store.row_bytes
    if store.retained_ms >= widest_ms:
        rows_bytes = 0.0
    elif rows_bytes >= store.state_bytes:
        held_ms = max(held_ms, store.retained_ms)
    held = min(1.0, held_ms / widest_ms)
    low = min(1.0, max(least_ms / widest_ms, held))
    return Entity(store_id(name), "synopsis", low, bytes=rows_bytes + store.state_bytes, held=held)
