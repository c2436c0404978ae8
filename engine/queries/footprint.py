"""How much memory an engine's state takes, by structure, and which query could give some of it back.

Counted from the arrays that are held, so it is a lower bound: what Python and the allocator add is not in it.
Cost of :func:`footprint`: O(segments * columns + queries' indexes); of :func:`heaviest`: O(queries).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from engine.dataflow.strategy_state import ByStrategy
from engine.model.source import SourceName
from engine.model.string_table import StringTable
from engine.queries.source_set import SourceSet
from engine.sources.source import Source
from engine.stems.table_stem import TableStem

QUERY_BYTES = 600
"""Bytes of a standing query with its registration, without the indexes it is in (benchmark ``memory``)."""
VERSION_BYTES = 120
"""Bytes of a version of a table's row, without its columns: what supersedes it, and its key."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes by structure.

    rows: columns of visible rows, but for those on disk. pending: of rows above NOW. matches: which rows
    satisfy which predicates. versions: what supersedes what in tables. indexes: of predicates, and of rows by
    keys of joins.
    composites: combinations of rows that are kept of joins. answers: what is kept for eager queries.
    changes: state of the operators that changes of followed queries come from. queries: the queries
    themselves. summaries: counters and rows by value of the summaries of streams. promising: the sets of
    queries with a preference, and what was found for them. by_source: rows and pending together, of each
    source. by_strategy: ``changes`` by the strategy of the queries that they are of.
    """

    rows: int = 0
    pending: int = 0
    matches: int = 0
    versions: int = 0
    indexes: int = 0
    composites: int = 0
    answers: int = 0
    changes: int = 0
    queries: int = 0
    summaries: int = 0
    promising: int = 0
    by_source: Mapping[SourceName, int] = field(default_factory=dict)
    by_strategy: ByStrategy = field(default_factory=dict)

    @property
    def structures(self) -> dict[str, int]:
        """The structures by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if not one.name.startswith("by_")}

    @property
    def total(self) -> int:
        return sum(self.structures.values())


@dataclass(frozen=True, slots=True)
class Heavy:
    """A query that could be paused, and the bytes that it keeps for itself alone."""

    query_id: str
    nbytes: int


def footprint(
    sources: Iterable[Source],
    sets: Iterable[SourceSet],
    index_bytes: int,
    changes: int,
    by_strategy: ByStrategy,
) -> Footprint:
    """Adds up the memory of these sources and sets of sources. index_bytes: bytes of the indexes by keys of
    joins. changes: bytes of the operators that changes come from; by_strategy: these by the strategy of their
    queries.
    """
    rows = pending = matches = versions = composites = answers = queries = summaries = promising = 0
    by_source: dict[SourceName, int] = {}
    for source in sources:
        held = held_by(source)
        rows += held.rows
        pending += held.pending
        matches += held.matches
        versions += held.versions
        by_source[source.stream.name] = held.rows + held.pending
        index_bytes += source.queries.nbytes()
        summaries += sum(summary.nbytes for summary in source.summarised.at_work.values())
    for over in sets:
        composites += over.joins.nbytes
        answers += over.eager.nbytes
        queries += QUERY_BYTES * len(over.standing)
        promising += over.promising.nbytes
    return Footprint(
        rows,
        pending,
        matches,
        versions,
        index_bytes,
        composites,
        answers,
        changes,
        queries,
        summaries,
        promising,
        by_source,
        by_strategy,
    )


@dataclass(frozen=True, slots=True)
class HeldBySource:
    """Bytes that one source holds, as of a :class:`Footprint`."""

    rows: int
    pending: int
    matches: int
    versions: int


def held_by(source: Source) -> HeldBySource:
    """O(segments * columns)."""
    visible = waiting = matches = 0
    tables: set[StringTable] = set()
    for part in source.rows.rows().parts:
        visible += part.nbytes
        tables.update(column.strings for column in part.columns if column.strings is not None)
        matches += part.matches.nbytes
    for piece in source.pending.pieces():
        waiting += piece.timestamp.nbytes + piece.offset.nbytes + piece.partition.nbytes
        for one in piece.columns:
            waiting += _bytes(one.values, one.valid)
            if isinstance(one.strings, StringTable):
                tables.add(one.strings)
    visible += sum(table.nbytes for table in tables)
    versions = VERSION_BYTES * len(source.rows) if isinstance(source.rows, TableStem) else 0
    return HeldBySource(visible, waiting, matches, versions)


def heaviest(sets: Iterable[SourceSet], followed: Mapping[str, int]) -> Heavy | None:
    """The query that pausing would free most of, of those that keep something for themselves; of equal ones
    the last by its id. followed: what followed queries keep for that. Rows are held by windows and retention,
    paused or not, so they do not count.
    """
    held = dict(followed)
    for over in sets:
        for query_id, nbytes in held_of(over):
            if nbytes:
                held[query_id] = held.get(query_id, 0) + nbytes
    heavy = (Heavy(query_id, nbytes) for query_id, nbytes in held.items() if nbytes)
    return max(heavy, key=lambda one: (one.nbytes, one.query_id), default=None)


def held_of(over: SourceSet) -> Iterator[tuple[str, int]]:
    """The queries of a set that are not paused, and the bytes that each keeps for itself. O(queries)."""
    groups = {id(group) for group in over.joins if group.nbytes}
    for query_id, query in over.standing.items():
        if query.paused:
            continue
        held = over.eager.bytes_of(query_id)
        if groups and query.keeps_matches:
            group = over.joins.group_of(query.query)
            if group is not None and id(group) in groups:
                held += group.nbytes // group.queries
        yield query_id, held


def _bytes(*arrays: Any) -> int:
    return sum(int(array.nbytes) for array in arrays if array is not None)
