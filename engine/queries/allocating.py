"""The allocation problem of the queries that stand on an engine: what they would hold, and may be given less.

Made between two steps from measured figures: how fast rows come, what a row takes with its matches, what is
kept besides for windows (combinations of joins, operators' state). Queries whose texts differ in constants of
conditions alone are estimated as one. Cost: O(queries that tolerate something), tens of microseconds each,
and an estimate of each shape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.dataflow.cost.estimated_rows import estimated_rows
from engine.language.cutting import cut
from engine.language.parameters import text_of
from engine.language.query import Query
from engine.model.allotment import Allotment
from engine.model.source import SourceName
from engine.operators.scan import ScanAt
from engine.overload.precision.of_queries import QueriesProblem, Reader, Store, problem_of, store_id
from engine.overload.precision.problem import Allocation
from engine.overload.room import Room, allotment_of, rooms_of
from engine.queries.copies import copies_in
from engine.queries.footprint import held_by
from engine.queries.statistics import statistics_of
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.windows.clauses import TimeWindow


@dataclass(frozen=True, slots=True)
class EngineProblem:
    """found: the problem, without budgets. bytes_now: what its entities take as queries are given now. asked:
    of each query that may be given less, its tree and what room there is.
    """

    found: QueriesProblem
    bytes_now: float
    asked: Mapping[str, tuple[Query, tuple[Room, ...]]]

    def allotments(self, allocation: Allocation) -> dict[str, Allotment]:
        """What an allocation of it gives each of them."""
        return {
            name: allotment_of(*self.asked[name], given, allocation.expected[name])
            for name, given in self.found.given(allocation).items()
        }


def engine_problem(
    queries: Iterable[StandingQuery],
    sources: Mapping[str, Source],
    at: Mapping[SourceName, ScanAt],
    state_bytes: Callable[[], Mapping[SourceName, float]],
    shed_of: Callable[[StandingQuery], Mapping[SourceName, float]],
) -> EngineProblem | None:
    """at: how sources stand. shed_of: of a query, the share of the rows of its sources that was shed for it.
    state_bytes: by source, of what is kept for windows besides its rows. None:
    nobody tolerates anything.
    """
    tolerant: list[StandingQuery] = []
    exact: dict[int, StandingQuery] = {}
    for one in queries:
        given = one.allotted
        if one.is_tolerant and (given is None or not given.allotment.by_hand):
            tolerant.append(one)
        elif one.holds_rows:
            exact.setdefault(id(one.template), one)
    if not tolerant:
        return None
    streams = {source.stream.name: source.stream for source in sources.values()}
    readers = [Reader(one.query_id, one.query, one.tolerance, fixed=True) for one in exact.values()]
    trees: dict[Hashable, tuple[Query, tuple[Room, ...]]] = {}
    asked: dict[str, tuple[Query, tuple[Room, ...]]] = {}
    for one in tolerant:
        like = _like(one)
        known = trees.get(like)
        if known is None:
            query = one.asked
            known = trees[like] = query, rooms_of(query, streams, one.tolerance)
        asked[one.query_id] = known
        readers.append(Reader(one.query_id, known[0], one.tolerance, one.weight, shed=shed_of(one)))
    named = {name for one in readers for name in one.query.sources}
    reach_ms = _reaches(tolerant)
    widest_ms = _reaches(tolerant, lambda one: one.asked)
    state = state_bytes()
    stores = {
        name: _store(sources[name], _whole(state.get(name, 0.0), reach_ms.get(name), widest_ms.get(name)))
        for name in named
    }
    copies = copies_in({source.stream.name: source for source in sources.values()})
    found = problem_of(readers, stores, _estimates(at), rates=False, copies_of=copies)
    now = 0.0
    entities = {entity.id: entity for entity in found.problem.entities}
    for name, widest in found.widest_ms.items():
        entity = entities[store_id(name)]
        share = min(1.0, reach_ms.get(name, 0) / widest)
        now += entity.bytes * max(0.0, max(share, entity.low) - entity.held)
    return EngineProblem(found, now, asked)


def _like(query: StandingQuery) -> Hashable:
    """What queries have in common that differ in constants of conditions alone."""
    text = text_of(query.registration)
    found = cut(text)
    scans = tuple((scan.window, scan.sample, scan.window_down_to_ms) for scan in query.asked.scans())
    return text if found is None else found.shape, query.tolerance, scans


def _reaches(
    queries: Iterable[StandingQuery], tree: Callable[[StandingQuery], Query] = lambda one: one.query
) -> dict[SourceName, int]:
    """By source, how far back the widest of their windows reaches, in ms."""
    found: dict[SourceName, int] = {}
    seen: set[int] = set()
    for one in queries:
        if id(one.template) in seen:
            continue
        seen.add(id(one.template))
        for scan in tree(one).scans():
            if isinstance(scan.window, TimeWindow) and scan.window.reach_ms:
                found[scan.source] = max(found.get(scan.source, 0), scan.window.reach_ms)
    return found


def _whole(nbytes: float, reach_ms: int | None, widest_ms: int | None) -> float:
    """Scales the bytes of state that is kept for a shorter window now to what the whole window would take.
    reach_ms: how far back the window reaches now; widest_ms: how far back it would. Where either is None the
    bytes stay as they are.
    """
    return nbytes * widest_ms / reach_ms if reach_ms and widest_ms else nbytes


def _store(source: Source, state_bytes: float) -> Store:
    held, rows, name = held_by(source), len(source.rows), source.stream.name
    row_bytes = (held.rows + held.matches) / rows if rows else 0.0
    return Store(
        source.stream,
        statistics_of({name: source}).rows_per_s[name],
        row_bytes,
        source.late_share,
        source.stream.retain_ms,
        state_bytes,
    )


def _estimates(at: Mapping[SourceName, ScanAt]) -> Callable[[Query], Sequence[float]]:
    known: dict[int, Sequence[float]] = {}

    def rows_of(query: Query) -> Sequence[float]:
        found = known.get(id(query))
        if found is None:
            found = known[id(query)] = list(estimated_rows(query, at))
        return found

    return rows_of
