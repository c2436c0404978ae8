"""The entities of an engine: what they use and hold, and who pays for it.

An entity is anything that has attributes: a source, a synopsis (the rows of a Data SteM, an index by keys,
what an operator keeps), the Query SteM of a source, a join, an operator or a sink of a graph, a query, the
engine itself. Most are shared. What a shared entity uses is divided among the queries that read it, in equal
parts, so that the shares of all queries, and of the entities that nobody reads, are the whole:

    query q1 ... q10 over s      each a tenth of source, SteMs and engine
    q1, q2 share a join          each half of it as well
    q1 alone is followed         all of the operators and the sink of its changes as well

A :class:`Report` is taken between two steps and is immutable; what a query pays is read off it in any thread.
Its cost is O(entities but for queries), and O(1) a query that shares a join, has something of its own or is
followed; a report of which nobody asks what queries pay (``queries=False``) is without the latter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.dataflow.entities import GraphEntities, OperatorEntity
from engine.joins.key_index import KeyIndex
from engine.model.attributes import Attribute, AttributeValue
from engine.model.usage import Usage
from engine.queries.footprint import QUERY_BYTES, held_by
from engine.queries.plan_preference import group_id
from engine.queries.source_set import SourceSet
from engine.queries.source_sets import SourceSets
from engine.sources.source import Source
from engine.standing.query import SetKey, StandingQuery, set_key

KINDS = {
    "engine": "engine",
    "state-buffers": "settings",
    "source": "source",
    "data-stem": "synopsis",
    "index": "synopsis",
    "query-stem": "operator",
    "join": "operator",
    "summary": "synopsis",
    "promising": "operator",
    "operator": "operator",
    "sink": "sink",
    "queries": "operator",
    "query": "query",
    "shard": "shard",
}
"""By the first part of an id; others are called by that part itself: ``queue/...`` is a queue."""

KINDS_KNOWN = frozenset(KINDS.values()) | {"queue", "scheduler", "monitor", "constraint"}


LISTED = frozenset(
    {
        "rows",
        "kept_rows",
        "queued_rows",
        "queued_bytes",
        "oldest_ms",
        "lag_ms",
        "behind_ms",
        "k_declared",
        "k_observed",
        "violations",
        "fp",
        "fn",
    }
)
"""Attributes that lists show besides usage, of the entities that have them."""

ENGINE_ALONE = ("engine",)
"""What a paused query shares."""


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """A :class:`engine.model.usage.Usage` as it stood."""

    cpu_ns: float = 0.0
    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    @classmethod
    def of(cls, usage: Usage) -> MeasuredUsage:
        return cls(usage.cpu_ns, usage.rows_in, usage.rows_out, usage.bytes_in, usage.bytes_out)


@dataclass(frozen=True, slots=True)
class EntityPart:
    """An entity that is no query. attributes: its own, besides usage. readers: queries that share it.
    reads: ids of entities that it takes rows from.
    """

    id: str
    attributes: tuple[Attribute, ...]
    usage: MeasuredUsage
    nbytes: int
    readers: int
    reads: tuple[str, ...] = ()

    def listed(self) -> dict[str, AttributeValue]:
        """What lists show of its own attributes."""
        return {one.name: one.value for one in self.attributes if one.name in LISTED}

    @property
    def kind(self) -> str:
        """As :data:`KINDS` has it."""
        return kind_of(self.id)


@dataclass(frozen=True, slots=True)
class Paid:
    """What a query pays. rows_in: rows of its sources that entered. queued_rows: that wait in queues that it
    shares. behind_ms: of the source whose NOW is furthest behind its newest record.
    """

    cpu_ns: float
    nbytes: float
    rows_in: int = 0
    queued_rows: int = 0
    behind_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The entities at a position. queries: how many stand. own_bytes: of what queries keep for themselves
    alone, all together.

    What follows is empty in a report that leaves queries out. group_of, sink_of: of queries, the join and the
    sink that they share. own: bytes that a query keeps for itself alone.
    """

    position: str
    parts: tuple[EntityPart, ...]
    queries: int
    own_bytes: int
    group_of: Mapping[str, str]
    below: Mapping[str, Sequence[str]]
    sink_of: Mapping[str, str]
    own: Mapping[str, int]
    _by_id: dict[str, EntityPart] = field(default_factory=dict)
    _classes: dict[tuple[SetKey, str | None, str | None], Paid] = field(default_factory=dict)
    _ids: dict[tuple[SetKey, str | None, str | None], tuple[str, ...]] = field(default_factory=dict)

    def part(self, id_: str) -> EntityPart | None:
        """The entity with an id, if there is one and it is no query."""
        if not self._by_id:
            self._by_id.update((part.id, part) for part in self.parts)
        return self._by_id.get(id_)

    @property
    def cpu_ns(self) -> float:
        """Time of all entities."""
        return sum(part.usage.cpu_ns for part in self.parts)

    def nbytes(self) -> int:
        """Bytes of all entities."""
        return sum(part.nbytes for part in self.parts) + QUERY_BYTES * self.queries + self.own_bytes

    def paid(self, query: StandingQuery) -> Paid:
        """What a query pays. O(1), but O(its entities) for the first of those that share the same ones."""
        query_id = query.registration.query_id
        own = QUERY_BYTES + (self.own.get(query_id, 0) if self.own else 0)
        if query.paused:
            engine = self._share("engine")
            return Paid(engine.cpu_ns, engine.nbytes + own)
        of = set_key(query.template.sources), self.group_of.get(query_id), self.sink_of.get(query_id)
        shared = self._classes.get(of)
        if shared is None:
            shared = self._classes[of] = self._shared(*of)
        return Paid(shared.cpu_ns, shared.nbytes + own, shared.rows_in, shared.queued_rows, shared.behind_ms)

    def entities_of(self, query: StandingQuery) -> tuple[str, ...]:
        """The ids of the entities that a query shares; one object for all that share the same ones."""
        query_id = query.query_id
        if query.paused:
            return ENGINE_ALONE
        of = query.set_key, self.group_of.get(query_id), self.sink_of.get(query_id)
        ids = self._ids.get(of)
        if ids is None:
            ids = self._ids[of] = tuple(self._shared_ids(*of))
        return ids

    def _shared_ids(self, key: SetKey, group: str | None, sink: str | None) -> Iterator[str]:
        yield "engine"
        for name in key:
            yield from (f"source/{name}", f"queue/pending/{name}", f"data-stem/{name}", f"query-stem/{name}")
            if self.part(f"monitor/{name}") is not None:
                yield f"monitor/{name}"
        yield set_id(key)
        if group is not None:
            yield group
            for id_ in self._part(group).reads:
                if id_.startswith(("index/", "summary/")):
                    yield id_
        if sink is not None:
            yield from dict.fromkeys(self.below[sink])
            yield sink

    def _shared(self, key: SetKey, group: str | None, sink: str | None) -> Paid:
        cpu_ns = nbytes = 0.0
        rows_in = queued = 0
        behind_ms: int | None = None
        for id_ in self._shared_ids(key, group, sink):
            share, part = self._share(id_), self._part(id_)
            cpu_ns += share.cpu_ns
            nbytes += share.nbytes
            if id_.startswith("source/"):
                rows_in += part.usage.rows_out
            own = part.listed()
            queued += int(own.get("queued_rows") or 0)
            if isinstance(behind := own.get("behind_ms"), int):
                behind_ms = max(behind, behind_ms or 0)
        return Paid(cpu_ns, nbytes, rows_in, queued, behind_ms)

    def _part(self, id_: str) -> EntityPart:
        part = self.part(id_)
        assert part is not None, id_
        return part

    def _share(self, id_: str) -> Paid:
        part = self._part(id_)
        readers = max(1, part.readers)
        return Paid(part.usage.cpu_ns / readers, part.nbytes / readers)


def kind_of(id_: str) -> str:
    """Returns the kind of an entity, given its id.

    >>> kind_of("data-stem/orders"), kind_of("queue/orders/3")
    ('synopsis', 'queue')
    """
    first = id_.partition("/")[0]
    return KINDS.get(first, first)


def set_id(key: Iterable[str]) -> str:
    """Returns the id of the entity that stands for what is kept for the queries over a set of sources."""
    return f"queries/{'+'.join(key)}"


def report(
    position: str,
    modules: Mapping[str, tuple[Attribute, ...]],
    engine: Usage,
    queries: int,
    sources: Mapping[str, Source],
    sets: SourceSets,
    graphs: Mapping[SetKey, GraphEntities],
    *,
    of_queries: bool = True,
) -> Report:
    """Makes the report of an engine. modules: their attributes by id, as
    :meth:`engine.inspection.Inspection.modules` has them. of_queries: whether anybody asks what single
    queries pay.
    """
    indexes = list(sets.indexes())
    shared = _Shared(indexes, of_queries)
    shared.usages["engine"], shared.readers["engine"] = engine, queries
    for over in sets:
        shared.add_set(over)
    for name, source in sources.items():
        shared.add_source(name, source)
    parts = [shared.part(id_, attributes) for id_, attributes in modules.items()]
    parts += [shared.index(index) for index in indexes]
    parts += [_operator(one, key) for key, graph in graphs.items() for one in graph.operators]
    return Report(
        position,
        tuple(parts),
        queries,
        shared.own_bytes + sum(shared.own.values()),
        shared.group_of,
        {id_: below for graph in graphs.values() for id_, below in graph.below.items()},
        {query_id: sink for graph in graphs.values() for query_id, sink in graph.sink_of.items()},
        shared.own,
    )


class _Shared:
    """What entities that queries share use and hold, by id, while a report is made.

    readers: how many queries share one. reads: ids of entities that it takes rows from. group_of, own,
    own_bytes: as a report has them.
    """

    def __init__(self, indexes: Sequence[KeyIndex], of_queries: bool) -> None:
        self.usages: dict[str, Usage] = {}
        self.nbytes: dict[str, int] = {}
        self.readers: dict[str, int] = {}
        self.reads: dict[str, tuple[str, ...]] = {}
        self.group_of: dict[str, str] = {}
        self.own: dict[str, int] = {}
        self.own_bytes = 0
        self._of_queries = of_queries
        self._of_sources = Counter[str]()
        """How many queries read a source."""
        self._of_summaries = Counter[str]()
        self._indexes = {id(index): f"index/{index.source}/{number}" for number, index in enumerate(indexes)}

    def add_set(self, over: SourceSet) -> None:
        self._of_sources.update(dict.fromkeys(over.sources, over.running))
        id_ = set_id(over.sources)
        self.readers[id_], self.usages[id_] = over.running, over.usage
        self.reads[id_] = tuple(f"query-stem/{name}" for name in over.sources)
        if self._of_queries:
            self.own.update({one: held for one in over.eager if (held := over.eager.bytes_of(one))})
            self.group_of.update((one, f"join/{name}") for one, name in over.joins.shared_by().items())
        else:
            self.own_bytes += over.eager.nbytes
        for name, group in over.joins.named():
            id_ = f"join/{name}"
            self.readers[id_], self.usages[id_] = group.queries, group.usage
            self.nbytes[id_] = group.nbytes
            probed = dict.fromkeys(self._indexes[id(one)] for one in group.indexes())
            self.reads[id_] = (*probed, *(f"query-stem/{name}" for name in group.shape.inputs))
            for index in probed:
                self.readers[index] = self.readers.get(index, 0) + group.queries
        for numbered in over.promising:
            id_, members = group_id(numbered), len(numbered.members)
            summaries = tuple(dict.fromkeys(f"summary/{one.summary}" for one in numbered.key.priorities))
            self.readers[id_], self.reads[id_] = members, summaries
            self.nbytes[id_] = 0 if numbered.group is None else numbered.group.nbytes
            self._of_summaries.update(dict.fromkeys(summaries, members))
            if self._of_queries:
                self.group_of.update(dict.fromkeys(numbered.members, id_))

    def add_source(self, name: str, source: Source) -> None:
        """After all sets."""
        held, readers = held_by(source), self._of_sources[name]
        rows, stem, queue = f"data-stem/{name}", f"query-stem/{name}", f"queue/pending/{name}"
        self.usages[f"source/{name}"] = source.usage
        self.usages[rows], self.usages[stem] = source.rows.usage, source.queries.usage
        self.readers |= dict.fromkeys((f"source/{name}", rows, stem, queue), readers)
        self.nbytes[queue], self.reads[queue] = held.pending, (f"source/{name}",)
        self.nbytes[rows], self.reads[rows] = held.rows + held.matches + held.versions, (stem,)
        self.nbytes[stem], self.reads[stem] = source.queries.nbytes(), (queue,)
        if not source.stream.is_table:
            id_ = f"monitor/{name}"
            self.usages[id_], self.readers[id_] = source.monitor.usage, readers
            self.nbytes[id_], self.reads[id_] = source.monitor.nbytes, (queue,)
        for summary, at_work in source.summarised.at_work.items():
            id_ = f"summary/{summary}"
            self.nbytes[id_], self.reads[id_] = at_work.nbytes, (rows,)
            self.readers[id_] = self._of_summaries[id_]

    def part(self, id_: str, attributes: tuple[Attribute, ...]) -> EntityPart:
        """A module, once all was added."""
        usage = self.usages.get(id_)
        return EntityPart(
            id_,
            attributes,
            MeasuredUsage() if usage is None else MeasuredUsage.of(usage),
            self.nbytes.get(id_, 0),
            self.readers.get(id_, 0),
            self.reads.get(id_, ()),
        )

    def index(self, index: KeyIndex) -> EntityPart:
        """As :meth:`part`."""
        id_ = self._indexes[id(index)]
        readers, reads = self.readers.get(id_, 0), (f"data-stem/{index.source}",)
        return EntityPart(id_, index.attributes(), MeasuredUsage(), index.nbytes, readers, reads)


def _operator(one: OperatorEntity, key: SetKey) -> EntityPart:
    """An operator of the graph of the queries over a set of sources."""
    node = one.node
    return EntityPart(
        one.id,
        () if node is None else node.attributes(),
        MeasuredUsage.of(one.usage),
        0 if node is None else node.nbytes,
        one.queries,
        one.reads or tuple(f"query-stem/{name}" for name in one.sources or key),
    )


def statistics(usage: MeasuredUsage, nbytes: float, readers: int, cpu_ns: float) -> dict[str, AttributeValue]:
    """What every entity tells of itself. cpu_ns: of all entities together."""
    rows_in = usage.rows_in
    return {
        "cpu_ns": round(usage.cpu_ns),
        "cpu_share": usage.cpu_ns / cpu_ns if cpu_ns else 0.0,
        "rows_in": rows_in,
        "rows_out": usage.rows_out,
        "bytes_in": usage.bytes_in,
        "bytes_out": usage.bytes_out,
        "selectivity": usage.rows_out / rows_in if rows_in else None,
        "row_cost_ns": usage.cpu_ns / rows_in if rows_in else None,
        "memory_bytes": round(nbytes),
        "queries": readers,
    }


STATISTICS_ABOUT = {
    "cpu_ns": ("computing time spent in it alone; of a query its parts of what it shares", "ns"),
    "answers_cpu_ns": ("computing time of the answers that it was asked for", "ns"),
    "cpu_share": ("of the computing time of all entities", "share"),
    "rows_in": ("rows that went into it", "rows"),
    "rows_out": ("rows that it gave", "rows"),
    "bytes_in": ("bytes of the rows that went into it, as they are held in memory", "bytes"),
    "bytes_out": ("bytes of the rows that it gave", "bytes"),
    "selectivity": ("rows out of rows in", "share"),
    "row_cost_ns": ("computing time of a row that went in", "ns"),
    "memory_bytes": ("what it holds; of a query its parts of what it shares, and its own", "bytes"),
    "queries": ("standing queries that share it", "queries"),
    "queued_rows": ("rows that wait in the queues that it shares", "rows"),
    "behind_ms": ("how far NOW of its sources is behind their newest record", "ms"),
}
"""What each statistic means, and its unit."""


def statistic_attributes(found: Mapping[str, AttributeValue]) -> tuple[Attribute, ...]:
    """Makes attributes, which can only be read, of the statistics of an entity."""
    return tuple(
        Attribute(name, value, STATISTICS_ABOUT[name][0], unit=STATISTICS_ABOUT[name][1])
        for name, value in found.items()
    )
