"""``/entities``: what the engines are made of, what it uses, who pays for it, and what of it can be set.

Everybody who may call the broker may read: nothing here is of a row, but for the sampled rows of events,
which take the handle that opens the answer. An entity that several queries share is edited by the operator
alone; a query by whoever has its handle, and by the operator by its id. What changes answers is an option of
a registration, published to the queries' topic, or an allotment of a query that tolerates it, and so a
journalled step.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from broker.http.asking import shard_of
from broker.http.described import listed
from broker.http.dry_runs import DryRuns
from broker.http.entity_events import EntityEvents, stream
from broker.http.errors import BadRequest
from broker.http.event_hub import EventHub, EventStream
from broker.http.named import known, require_operator
from broker.http.options import ChangeRequest, QueryChanges, change_request
from broker.http.requests import body_object
from broker.http.summaries import ENTITY, SummaryRequests
from broker.node.node import Node
from broker.observe.allotments import is_allotment
from broker.observe.entities import Entities, Entity
from broker.observe.entity_readers import reached_from, readers_of
from broker.observe.entity_reading import QUERY, EntityReading
from engine.model.attributes import AttributeValue
from engine.queries.entities import KINDS_KNOWN

HINT = 'for example {"policy": "tickets"}, or {"weight": 2, "if_version": 123} with the version that was read'
EVERY_MS_MIN, EVERY_MS_MAX, EVERY_MS = 100, 60_000, 1_000


class EntityRequests:
    """Reads and edits entities."""

    def __init__(
        self,
        node: Node,
        changes: QueryChanges,
        summaries: SummaryRequests,
        entities: Entities,
        hub: EventHub,
        sql_bytes_max: int,
        snapshot_bytes_max: int,
    ) -> None:
        """hub: of streams of events."""
        self._node = node
        self._snapshot_bytes_max = snapshot_bytes_max
        self._entities = entities
        self._hub = hub
        self._changes = changes
        self.dry_runs = DryRuns(node, self._entities, changes)
        self._summaries = summaries
        self._sql_bytes_max = sql_bytes_max

    async def read(self, fresh_s: float) -> EntityReading:
        """A report of all shards that is at most so many seconds old."""
        return await self._entities.read(fresh_s)

    async def listed(
        self, kind: str | None, query: str | None, after: str, limit: int, *, queries: bool = True
    ) -> dict[str, Any]:
        """A page. query: a handle, or an id. queries: False leaves queries out. Raises UnknownQuery;
        BadRequest: there is no such kind.
        """
        name = None if query is None else known(self._node, query, operator=True)
        found = await self._entities.listed(kind, name, after, limit, queries=queries)
        if kind is not None and not found["entities"] and kind not in KINDS_KNOWN:
            raise BadRequest(f"there is no kind {kind!r}", hint=f"one of {', '.join(sorted(KINDS_KNOWN))}")
        return found

    async def one(self, id_: str) -> dict[str, Any]:
        """With all attributes. Raises UnknownEntity, HandleNeeded."""
        return (await self._found(id_)).as_dict()

    async def readers(self, id_: str, after: str, limit: int) -> dict[str, Any]:
        """A page of the queries that share an entity, as lists show them. Raises UnknownEntity."""
        await self._entities.one(id_)
        reading = await self._entities.read()
        ids = await asyncio.to_thread(readers_of, reading, id_)
        first = bisect_right(ids, after)
        page, entries = ids[first : first + limit], self._node.directory.queries
        return {
            "queries": [listed(self._node, name, entries[name]) for name in page if name in entries],
            "total": len(ids),
            "next": page[-1] if first + limit < len(ids) else None,
        }

    async def behind(self, names: Iterable[str], source: str) -> set[str]:
        """The ids of the entities that any of these queries shares, and that rows of a source come to; of
        queries that do not stand none.
        """
        reading = await self._entities.read()
        found: set[str] = set()
        for name in names:
            found |= reading.shared_by(name) or set()
        return await asyncio.to_thread(reached_from, reading, source, found)

    async def _found(self, id_: str) -> Entity:
        if id_.startswith(QUERY):
            id_ = QUERY + known(self._node, id_.removeprefix(QUERY), operator=True)
        return await self._entities.one(id_)

    async def edit(self, id_: str, body: bytes, operator: bool) -> tuple[int, dict[str, Any]]:
        """Set attributes, all or none; the status and the entity as it is then.

        Raises BadRequest, UnknownEntity, UnknownQuery, HandleNeeded, NotAllowed, AttributeRefused,
        OptionRefused, AllotmentRefused, QueryNotRunning, EditConflict, KafkaUnavailable.
        """
        values, version = _edit(body)
        if id_.startswith(QUERY):
            return await self._edit_query(id_.removeprefix(QUERY), values, version, operator)
        require_operator(operator)
        if _is_summary(id_):
            status = await self._summaries.set(self._entities, id_, _plain(values), version)
            return status, await self.one(id_)
        await self._entities.set(id_, _plain(values), version)
        return 200, await self.one(id_)

    async def _edit_query(
        self, given: str, values: dict[str, Any], version: int | None, operator: bool
    ) -> tuple[int, dict[str, Any]]:
        name = known(self._node, given, operator)
        wanted = self._wanted(values)
        if not isinstance(wanted, ChangeRequest):
            shard_of(self._node, name)
            await self._entities.allot(name, wanted, version)
            return 200, await self.one(QUERY + name)
        status, told = await self._changes.change(
            name, wanted, lambda entry: self._entities.require(QUERY + name, entry, version)
        )
        if status >= 400:
            return status, told
        return status, await self.one(QUERY + name)

    async def dry_run(self, id_: str, body: bytes, operator: bool) -> dict[str, Any]:
        """What :meth:`edit` would set, and what that would do; nothing is done. Raises as that."""
        values, version = _edit(body)
        if not id_.startswith(QUERY):
            require_operator(operator)
            return await self.dry_runs.of_shared(id_, _plain(values), version, _is_summary(id_))
        name = known(self._node, id_.removeprefix(QUERY), operator)
        wanted = self._wanted(values)
        if isinstance(wanted, ChangeRequest):
            return await self.dry_runs.of_query(
                name, wanted, lambda entry: self._entities.require(QUERY + name, entry, version)
            )
        shard_of(self._node, name)
        return await self.dry_runs.of_allotment(name, wanted, version)

    def _wanted(self, values: dict[str, Any]) -> ChangeRequest | dict[str, AttributeValue]:
        """What is set of a query: options, or what it is given. Raises BadRequest, OptionRefused."""
        allotted = {name: value for name, value in values.items() if is_allotment(name)}
        if allotted and len(allotted) < len(values):
            raise BadRequest("what a query is given is set apart from its options", hint="send two requests")
        if allotted:
            return _plain(allotted)
        wanted = change_request(orjson.dumps(values), self._sql_bytes_max)
        if wanted.wording is not None:
            raise BadRequest("a text is no attribute", hint="PATCH /queries/{handle} changes it")
        return wanted

    # --- events -----------------------------------------------------------------------------------

    async def events(
        self, kind: str | None, query: str | None, every_ms: int, as_sse: bool, rows: int, *, queries: bool
    ) -> EventStream:
        """What moved in each interval, an object a line, or an SSE event: the entities of which a count or a
        size changed. rows: so many of the query's answer besides, for whoever has its handle.

        Raises UnknownQuery, HandleNeeded, BadRequest, TooManyFeeds, BrokerUnavailable.
        """
        if rows and query is None:
            raise BadRequest("rows are those of one query's answer", hint="give its handle as query")
        name = None if query is None else known(self._node, query, operator=not rows)
        if kind is not None:
            await self.listed(kind, None, "", 1)
        wanted = EntityEvents(kind, name, queries, every_ms, rows)
        return stream(self._hub, self._node, self._entities, wanted, as_sse, self._snapshot_bytes_max)


def _edit(body: bytes) -> tuple[dict[str, Any], int | None]:
    """The values that a body sets, and the version that they are for. Raises BadRequest."""
    values = body_object(body, hint=HINT)
    version = values.pop("if_version", None)
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise BadRequest("if_version is the number that `version` was", hint=HINT)
    if not values:
        raise BadRequest("there is nothing to set", hint=HINT)
    return values, version


def _is_summary(id_: str) -> bool:
    return id_.partition("/")[2].startswith(ENTITY)


def _plain(values: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Raises BadRequest where a value is a list or an object."""
    for name, value in values.items():
        if isinstance(value, list | dict):
            raise BadRequest(f"{name} cannot be a list or an object", hint=HINT)
    return dict(values)
