"""Which columns constraints would be of use for: those by which live queries join and group their streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.algebra.project.stage import Output
from engine.joins.shape import shape_of
from engine.language.query import Query
from engine.language.templates import BoundTemplate
from engine.model.expressions import Column, Expression
from engine.model.source import SourceName, Stream
from engine.model.types import Kind
from engine.sources.source import Source
from engine.sources.waits import Pair, Waits
from engine.standing.query import StandingQuery

PAIRS_MAX = 64
"""Joins of two streams that are observed, either way."""

Candidate = tuple[SourceName, tuple[str, ...]]
"""A stream and some of its columns, in the order of their names."""


def candidates_of(query: Query, streams: Mapping[str, Stream]) -> Iterator[Candidate]:
    """Those of one query; of a join only keys that are columns of one source. O(its size)."""
    shape = shape_of(query, {name: len(streams[name].schema) for name in query.sources})
    if shape is not None:
        for edge in shape.edges:
            for place, keys in ((edge.left, edge.left_keys), (edge.right, edge.right_keys)):
                yield from _of(shape.inputs[place], keys)
    outputs: tuple[Output, ...] | None = None
    for stage in query.stages:
        if stage.condition_of_rows is not None:
            continue
        if outputs is None and stage.outputs_of_rows is not None:
            outputs = stage.outputs_of_rows
            continue
        grouped = outputs if stage.aggregate is None else stage.aggregate.keys if outputs is None else None
        if stage.groups and grouped is not None:
            yield from _of(query.source, [output.expression for output in grouped])
        return


def pairs_of(query: Query, streams: Mapping[str, Stream]) -> Iterator[Pair]:
    """The joins of one query by single columns of two streams, either way. O(its size)."""
    shape = shape_of(query, {name: len(streams[name].schema) for name in query.sources})
    for edge in () if shape is None else shape.edges:
        assert shape is not None
        ones, others = edge.left_keys, edge.right_keys
        left, right = shape.inputs[edge.left], shape.inputs[edge.right]
        if left == right or len(ones) != 1 or streams[left].is_table or streams[right].is_table:
            continue
        one, other = ones[0], others[0]
        if isinstance(one, Column) and isinstance(other, Column) and one.type.kind in _PLAIN:
            yield left, one.name, right, other.name
            yield right, other.name, left, one.name


_PLAIN = (Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP)


def _of(source: SourceName, keys: Sequence[Expression]) -> Iterator[Candidate]:
    names = [key.name for key in keys if isinstance(key, Column)]
    if names and len(names) == len(keys):
        yield source, tuple(sorted(set(names)))


class ConstraintCandidates:
    """Those of all live queries, gathered some queries at a time."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._coming: dict[SourceName, dict[tuple[str, ...], None]] = {}
        self._pairs: dict[Pair, None] = {}
        self._waits: dict[Pair, Waits] = {}
        self._seen: dict[int, BoundTemplate] = {}
        """By identity: texts that differ in constants mean the same here."""

    def look_at(self, standing: StandingQuery) -> None:
        """A live query. O(its size), O(1) for another with its meaning."""
        if id(standing.template) in self._seen:
            return
        self._seen[id(standing.template)] = standing.template
        streams: dict[str, Stream] = {name: self._sources[name].stream for name in standing.sources}
        for source, columns in candidates_of(standing.query, streams):
            schema = streams[source].schema
            if not streams[source].is_table and all(schema.index(one) is not None for one in columns):
                self._coming.setdefault(source, {})[columns] = None

        for pair in pairs_of(standing.query, streams):
            self._pairs[pair] = None

    def all_seen(self) -> None:
        """All live queries were looked at: what they have is observed, and nothing else."""
        before, self._waits = self._waits, {}
        for pair in list(self._pairs)[:PAIRS_MAX]:
            place, target_place = self._place(*pair[:2]), self._place(*pair[2:])
            if place is not None and target_place is not None:
                known = before.get(pair)
                same = known is not None and known.places == (place, target_place)
                self._waits[pair] = known if known and same else Waits((place, target_place))
        for name, source in self._sources.items():
            source.monitor.watch(self._coming.get(SourceName(name), ()))
            mine = {pair: one for pair, one in self._waits.items() if name in (pair[0], pair[2])}
            source.monitor.watch_waits(mine)
        self._coming, self._pairs, self._seen = {}, {}, {}

    def _place(self, source: SourceName, column: str) -> int | None:
        """Returns the place of a column in the schema of its stream; None where the stream is gone, or has no
        such column.
        """
        there = self._sources.get(source)
        return None if there is None else there.stream.schema.index(column)
