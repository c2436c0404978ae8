"""The entities of a node: those of all its engines, and the queries, with what they use and what can be set.

Ids: ``3/query-stem/orders`` is the Query SteM of the stream orders on shard 3, ``query/<query id>`` a query,
``state-buffers`` the settings that all engines of the process share.

Engines are asked between two steps (:class:`engine.queries.entities.Report`); what queries pay is worked out
from that in other threads. Edits are made between two steps too, with the version of what they change
compared there, so that of two that meet the second is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from broker.base import logs
from broker.base.entries import QueryEntry
from broker.node.node import Node
from broker.observe.allotments import allotment_attributes, edited, precision_attributes
from broker.observe.entity_reading import QUERY, EntityReading, page_of, part_id, query_statistics
from broker.observe.query_attributes import query_attributes
from broker.shard.shard import MODULE as SHARD
from broker.shard.shard import Shard
from broker.shard.shard_command import ShardCommand
from engine.dataflow.buffers import settings as buffers
from engine.engine import Engine
from engine.model.allotment import Allotment
from engine.model.attributes import Attribute, AttributeValue, edits, version_of
from engine.model.source import SourceName
from engine.queries.allotting import GivenLess
from engine.queries.entities import (
    EntityPart,
    MeasuredUsage,
    Report,
    statistic_attributes,
    statistics,
)
from engine.queries.kept_rows import KeptRows
from engine.standing.queries import ShownQueries
from engine.standing.query import StandingQuery
from tureen.errors import (
    AllotmentRefused,
    BrokerUnavailable,
    EditConflict,
    TureenError,
    UnknownEntity,
    UnknownQuery,
)

FRESH_S = 0.25
"""A report is taken again after so long at the earliest, however many ask."""

log = logs.get()


@dataclass(frozen=True, slots=True)
class Entity:
    """One as the API tells of it. version: of what of it can be set. reads: entities it takes rows from; of a
    query those that it shares.
    """

    id: str
    kind: str
    shard: int | None
    attributes: tuple[Attribute, ...]
    version: int
    reads: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "shard": self.shard,
            "version": self.version,
            "reads": list(self.reads),
            "attributes": [attribute.as_dict() for attribute in self.attributes],
        }


class Entities:
    """Used on the event loop."""

    def __init__(self, node: Node, changeable: Collection[str]) -> None:
        """changeable: the options of a registration that can be changed while the query runs."""
        self._node = node
        self._changeable = changeable
        self._readings: dict[bool, EntityReading] = {}
        """The last with queries (True) and without."""
        self._taking: dict[bool, asyncio.Task[EntityReading]] = {}
        self._allotting = asyncio.Lock()
        """Edits of what queries are given, one after another."""

    async def read(self, fresh_s: float = FRESH_S, *, queries: bool = True) -> EntityReading:
        """Ask all shards that are live. Many who ask at once are answered together. queries: False leaves
        them out, and what it costs to tell of each.
        """
        known = self._readings.get(queries)
        if known is not None and time.monotonic() - known.at_s < fresh_s:
            return known
        taking = self._taking.get(queries)
        if taking is None or taking.done():
            taking = self._taking[queries] = asyncio.create_task(self._take(queries))
        return await asyncio.shield(taking)

    def last(self) -> EntityReading | None:
        """The latest reading, with queries or without; None before the first. Nobody is asked."""
        return max(self._readings.values(), key=lambda one: one.at_s, default=None)

    async def _take(self, queries: bool) -> EntityReading:
        live = [shard for shard in self._node.shards if shard.state == "live"]
        found = await asyncio.gather(*(self._report(shard, queries) for shard in live))
        reports: dict[int, Report] = {}
        spent: dict[int, float] = {}
        standing: dict[int, ShownQueries] = {}
        answers: dict[int, Mapping[str, float]] = {}
        for shard, one in zip(live, found, strict=True):
            if one is None:
                continue
            number = shard.number
            reports[number], shown = one
            if queries:
                standing[number], answers[number] = shown, shard.asked.spent_ns(shown)
                spent[number] = sum(answers[number].values())
            else:
                spent[number] = shard.asked.total_ns
        reading = self._readings[queries] = EntityReading(time.monotonic(), reports, spent, standing, answers)
        return reading

    async def _report(self, shard: Shard, queries: bool) -> tuple[Report, ShownQueries] | None:
        """Read what a shard reports, and its standing queries; None: the shard waits, and is left out."""

        def take(engine: Engine) -> tuple[Report, ShownQueries]:
            return engine.entities(queries=queries), engine.view().standing

        with contextlib.suppress(BrokerUnavailable):
            report, standing = await self._node.shards.ask(shard.number, take)
            return replace(report, parts=(*report.parts, *_parts_of(shard))), standing
        return None

    # --- lists ------------------------------------------------------------------------------------

    async def listed(
        self, kind: str | None, query: str | None, after: str, limit: int, *, queries: bool = True
    ) -> dict[str, Any]:
        """A page of all entities by their ids. kind, query: only those of a kind, or that a query shares, by
        its id. queries: False leaves queries out. Raises UnknownQuery.
        """
        reading = await self.read(queries=queries or query is not None)
        return await asyncio.to_thread(page_of, reading, kind, query, after, limit, queries=queries)

    async def stands(self, id_: str) -> bool:
        """Whether there is an entity of this id that is no query; of a shard that does not tell: no."""
        if id_.startswith(QUERY):
            return False
        with contextlib.suppress(UnknownEntity, BrokerUnavailable):
            await self.one(id_)
            return True
        return False

    async def one(self, id_: str) -> Entity:
        """An entity with all its attributes. Raises UnknownEntity, BrokerUnavailable."""
        reading = await self.read()
        if id_.startswith(QUERY):
            name = id_.removeprefix(QUERY)
            entry = self._node.directory.queries.get(name)
            if entry is not None and self._standing(name, entry) and reading.shared_by(name) is None:
                reading = await self.read(0.0)  # it came after the last one was taken
            query = self._query(name, reading)
            return replace(query, attributes=(*query.attributes, *await self._precision(name, entry)))
        number, name = self._place(id_)
        report = reading.reports.get(number)
        part = None if report is None else report.part(name)
        if report is None or part is None:
            raise self._absent(number, id_, told=report is not None)
        found = statistics(part.usage, part.nbytes, part.readers, reading.cpu_ns)
        return Entity(
            id_,
            part.kind,
            None if name == buffers.MODULE else number,
            (*part.attributes, *_but(statistic_attributes(found), part.attributes)),
            version_of(part.attributes),
            tuple(part_id(number, each) for each in part.reads),
        )

    async def _precision(self, name: str, entry: QueryEntry | None) -> tuple[Attribute, ...]:
        """Measure the precision of a query that is given less, or lacks rows that were shed; other queries
        have none.
        """
        if entry is None or entry.shard is None or entry.shard not in self._live():
            return ()
        try:
            if not self._node.shards[entry.shard].view().approximation(name):
                return ()
            told = await self._node.shards.ask(entry.shard, lambda engine: engine.measured(name))
        except UnknownQuery:  # it waits for its stream, or went
            return ()
        return () if told is None else precision_attributes(*told)

    def _query(self, name: str, reading: EntityReading) -> Entity:
        entry = self._node.directory.queries.get(name)
        if entry is None:
            raise UnknownEntity(QUERY + name)
        standing = self._standing(name, entry)
        shared: tuple[str, ...] = ()
        number = entry.shard
        if number is None or number not in reading.reports:
            own = query_attributes(entry, None, self._changeable)
        else:
            report, query = reading.reports[number], reading.standing[number].get(name)
            own = query_attributes(entry, query, self._changeable)
            if standing is not None:
                own += allotment_attributes(standing, self._node.directory.streams())
            if query is not None:
                answers_ns = reading.answers_ns[number].get(name, 0.0)
                found = query_statistics(report, query, reading.cpu_ns, answers_ns)
                own = (
                    *own,
                    Attribute("maintained", query.maintenance, "how the answer is maintained now"),
                    *statistic_attributes(found),
                )
                shared = tuple(part_id(number, each) for each in report.entities_of(query))
        return Entity(QUERY + name, "query", number, own, query_version(entry, standing), shared)

    def _standing(self, name: str, entry: QueryEntry) -> StandingQuery | None:
        """A query as it stands now; None: it does not."""
        return None if entry.shard is None else self._node.shards[entry.shard].view().standing.get(name)

    def _place(self, id_: str) -> tuple[int, str]:
        """Shard and id there. Raises UnknownEntity."""
        if id_ == buffers.MODULE:
            return next((shard.number for shard in self._node.shards if shard.state == "live"), 0), id_
        number, _, name = id_.partition("/")
        if not (number.isascii() and number.isdecimal()) or not name or name == buffers.MODULE:
            raise UnknownEntity(id_)
        return int(number), name

    def _absent(self, number: int, id_: str, told: bool) -> TureenError:
        """Why there is no such entity. told: its shard told what it has; else it may be coming."""
        if told or all(shard.number != number for shard in self._node.shards):
            return UnknownEntity(id_)
        return BrokerUnavailable(
            f"shard {number} is not ready", hint="try again in a second, or see /readycheck"
        )

    def _live(self) -> list[int]:
        return [shard.number for shard in self._node.shards if shard.state == "live"]

    def _live_place(self, id_: str) -> tuple[int, str]:
        """As :meth:`_place`, of a shard that is live."""
        number, name = self._place(id_)
        if number not in self._live():
            raise self._absent(number, id_, told=False)
        return number, name

    # --- edits ------------------------------------------------------------------------------------

    def outdate(self) -> None:
        """Something was set: who asks next is told of it."""
        self._readings.clear()

    async def checked(
        self, id_: str, values: Mapping[str, AttributeValue], version: int | None
    ) -> tuple[tuple[Attribute, ...], dict[str, AttributeValue]]:
        """The attributes of an entity that is no query, and the values that :meth:`set` would give; nothing
        is set. Raises as that.
        """

        def check(engine: Engine) -> tuple[tuple[Attribute, ...], dict[str, AttributeValue]]:
            if name != SHARD:
                return engine.checked(name, values, version)
            attributes = self._node.shards[number].attributes()
            return attributes, edits(id_, attributes, values, version)

        number, name = self._live_place(id_)
        with _named(id_):
            return await self._node.shards.ask(number, check)

    async def set(self, id_: str, values: Mapping[str, AttributeValue], version: int | None) -> None:
        """Set attributes of an entity that is no query: all, or none. version: that it must still have.

        Raises UnknownEntity, AttributeRefused, EditConflict, BrokerUnavailable.
        """
        number, name = self._live_place(id_)

        def edit(engine: Engine) -> None:
            if name == SHARD:
                self._node.shards[number].edit(values, version)
            else:
                engine.edit(name, values, version)

        with _named(id_):
            await self._node.shards.ask(number, edit)
        if name == buffers.MODULE:
            for other in self._live():
                if other != number:  # what they keep is made anew as the settings say
                    await self._node.shards.ask(other, lambda engine: engine.edit(name, values, None))
        self._readings.clear()
        log.info("entity_edited", entity=id_, attributes=sorted(values))

    async def allot(self, name: str, values: Mapping[str, AttributeValue], version: int | None) -> None:
        """Give a query other shares of what it asks for, by a journalled step. version: that it must still
        have.

        Raises UnknownQuery, QueryNotRunning, AttributeRefused, AllotmentRefused, EditConflict,
        BrokerUnavailable.
        """
        async with self._allotting:
            number, _, wanted = self._allotment(name, values, version)
            shards = self._node.shards
            less = await shards.ask(number, lambda engine: engine.less(name, wanted))
            expected = await self._node.work.do(less.expecting)
            (outcome,) = await shards.hand_over(number, [ShardCommand.allocate(name, expected)])
        self._readings.clear()
        error = outcome["error"]
        if error is not None:
            raise AllotmentRefused(error["message"], hint=error.get("hint"))
        log.info("query_allotted", query=name, allotment=expected.as_dict())

    async def expecting(
        self, name: str, values: Mapping[str, AttributeValue], version: int | None
    ) -> tuple[StandingQuery, Allotment, dict[SourceName, KeptRows]]:
        """What :meth:`allot` would give a query, with the precision that its answer may then expect, and what
        the rows of its shard's streams take; nothing changes. Raises as that.
        """
        number, standing, wanted = self._allotment(name, values, version)

        def look(engine: Engine) -> tuple[GivenLess, dict[SourceName, KeptRows]]:
            return engine.less(name, wanted), engine.kept_rows()

        less, kept = await self._node.shards.ask(number, look)
        return standing, await self._node.work.do(less.expecting), kept

    def _allotment(
        self, name: str, values: Mapping[str, AttributeValue], version: int | None
    ) -> tuple[int, StandingQuery, Allotment]:
        """The shard of a query, how it stands, and what it would be given."""
        entry = self._node.directory.queries.get(name)
        standing = None if entry is None else self._standing(name, entry)
        if entry is None or entry.shard is None or standing is None:
            raise UnknownQuery()
        self.require(QUERY + name, entry, version)
        wanted = edited(QUERY + name, standing, self._node.directory.streams(), values)
        return entry.shard, standing, wanted

    def require(self, id_: str, entry: QueryEntry, version: int | None) -> None:
        """Raises EditConflict where a query is not of this version any more."""
        now = query_version(entry, self._standing(id_.removeprefix(QUERY), entry))
        if version is not None and version != now:
            raise EditConflict(id_, now)


@contextlib.contextmanager
def _named(id_: str) -> Iterator[None]:
    """Refusals of an engine name the entity as the API does."""
    try:
        yield
    except UnknownEntity:
        raise UnknownEntity(id_) from None
    except EditConflict as conflict:
        raise EditConflict(id_, conflict.version) from None


def query_version(entry: QueryEntry, standing: StandingQuery | None) -> int:
    """The version of a query, which changes with its text, its options and what it is given."""
    given = None if standing is None or standing.allotted is None else standing.allotted.allotment.as_dict()
    return zlib.crc32(orjson.dumps([entry.said, dict(entry.options), given], option=orjson.OPT_SORT_KEYS))


def _parts_of(shard: Shard) -> tuple[EntityPart, ...]:
    """What a shard has besides its engine."""
    return (
        EntityPart(
            SHARD,
            shard.attributes(),
            MeasuredUsage(),
            0,
            0,
        ),
        EntityPart(
            "queue/changes",
            (Attribute("queued_rows", shard.waiting(), "changes still to be written to result topics"),),
            MeasuredUsage(),
            0,
            0,
            ("engine",),
        ),
    )


def _but(attributes: tuple[Attribute, ...], known: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    names = {attribute.name for attribute in known}
    return tuple(attribute for attribute in attributes if attribute.name not in names)
