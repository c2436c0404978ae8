"""CREATE and DROP of streams, tables and views, on their way to a shard.

A stream or a table lives on the shard that its name chooses. A view, or a stream derived from a query, lives
where a query over the same sources would, through however many views. A view whose stream is missing waits:
it stands as soon as the stream does, if the registry says it again.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from broker.internal import Outcome
from broker.worker.entries import SourceEntry, ViewEntry, WaitingView
from broker.worker.placement import of_view
from broker.worker.shard_command import ShardCommand
from engine.catalogue import READ_HINT
from engine.language.query import CreateDerived, CreateStream, Query
from engine.language.statements import parse
from engine.model.source import Derived, Stream
from topics.control_records import Command
from tureen.errors import NotSupported, QueryError, SourceConflict, TureenError, UnknownSource

if TYPE_CHECKING:
    from broker.worker.node import Node


class Creation:
    """Carries out commands of the kinds create and drop, one at a time."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def apply(self, command: Command) -> Outcome:
        """Idempotent: what stands already as it is told is answered and changes nothing."""
        try:
            if command["kind"] == "drop":
                return await self._drop(command["name"])
            return await self._create(command["name"], command["sql"])
        except TureenError as refused:
            waiting = self._node.waiting.get(command["name"])
            if waiting is not None:
                waiting.error = refused.as_dict()
            return {"state": "ERROR", "error": refused.as_dict()}

    def adopt(self, derived: list[tuple[Derived, int]]) -> None:
        """Learn of views that shards brought back from their stores and journals."""
        known: dict[str, Stream | Derived] = dict(self._node.catalogue)
        known.update((one.name, one) for one, _ in derived)
        for one, shard in derived:
            with contextlib.suppress(QueryError):  # a view that this version refuses is shown all the same
                query = parse(one.sql, known, self._node.limits, functions=self._node.engines.functions)
                assert isinstance(query, Query)
                if shard == self._node.home_of(query.sources):
                    self._node.views[one.name] = ViewEntry(one, shard, query.sources, query.uses)
                    continue
                several = [name for name, entry in self._node.queries.items() if entry.shard == shard]
                self._node.guests.found(shard, one.name, several)
                continue
            self._node.views[one.name] = ViewEntry(one, shard, (), ())
        for name, view in self._node.views.items():
            self._node.guests.need_more(of_view(name), view.shard, (*view.sources, *view.uses))

    async def _create(self, name: str, sql: str) -> Outcome:
        node = self._node
        others = {known: source for known, source in node.catalogue.items() if known != name}
        try:
            statement = await asyncio.to_thread(
                parse, sql, others, node.limits, functions=node.engines.functions
            )
        except UnknownSource as missing:
            if name in node.sources or name in node.views:
                raise
            node.waiting[name] = WaitingView(sql, missing.as_dict())
            return {"state": "PENDING", "error": missing.as_dict()}
        if not isinstance(statement, CreateStream | CreateDerived):
            raise NotSupported("write CREATE STREAM, CREATE TABLE or CREATE VIEW")
        made = statement.stream if isinstance(statement, CreateStream) else statement.derived
        if made.name != name:
            raise SourceConflict(
                f"the key is {name!r}, the statement makes {made.name!r}", hint="use the same name in both"
            )
        there = node.catalogue.get(name)
        if there == made:
            return {"state": "RUNNING"}
        if there is not None and not replaces(statement, there):
            raise conflict(name, there)
        outcome = await (
            self._create_stream(statement)
            if isinstance(statement, CreateStream)
            else self._create_view(statement)
        )
        if outcome["state"] == "RUNNING":
            node.waiting.pop(name, None)
            node.catalogue_changed()
        return outcome

    async def _create_stream(self, statement: CreateStream) -> Outcome:
        node, stream = self._node, statement.stream
        service_id = node.settings.service_id
        if stream.topic.startswith((f"{service_id}.", f"{service_id}-control-", "__")):
            raise NotSupported(
                f"topic {stream.topic} belongs to the broker or to Kafka; reading what is written of it "
                "would never end",
                hint="copy what you want of it to another topic and make the stream over that",
            )
        await asyncio.to_thread(
            node.admin.ensure_source_topic,
            stream.topic,
            statement.partitions,
            arrival_time=not stream.event_time,
            table=stream.is_table,
        )
        number = node.home_of([stream.name])
        (outcome,) = await node.hand_over(number, [ShardCommand.create(stream, statement.sql)])
        if outcome["state"] == "RUNNING":
            node.sources[stream.name] = SourceEntry(stream, statement.sql, number)
        return outcome

    async def _create_view(self, statement: CreateDerived) -> Outcome:
        node, derived, query = self._node, statement.derived, statement.query
        number = node.home_of(query.sources)
        there = node.views.get(derived.name)
        if there is not None and there.shard != number:
            raise SourceConflict(
                f"{derived.name} selects from another stream at present",
                hint=f"DROP VIEW {derived.name} first",
            )
        guests = node.invited(of_view(derived.name), number, query)
        *_, outcome = await node.hand_over(number, [*guests, ShardCommand.create_derived(derived)])
        if outcome["state"] == "RUNNING":
            node.views[derived.name] = ViewEntry(derived, number, query.sources, query.uses)
        elif there is None:
            node.guests.release(of_view(derived.name), number)
        await node.see_off()
        return outcome

    async def _drop(self, name: str) -> Outcome:
        node = self._node
        node.waiting.pop(name, None)
        entry = node.sources.get(name) or node.views.get(name)
        if entry is None:
            return {"state": "GONE"}
        refuse_if_read(node, name)
        (outcome,) = await node.hand_over(entry.shard, [ShardCommand.drop(name)])
        if outcome["state"] == "GONE":
            node.sources.pop(name, None)
            node.views.pop(name, None)
            node.catalogue_changed()
            node.guests.release(of_view(name), entry.shard)
            await node.see_off()
        return outcome


def replaces(statement: CreateStream | CreateDerived, there: Stream | Derived) -> bool:
    """Whether OR REPLACE puts the new one in the place of what stands."""
    return isinstance(statement, CreateDerived) and statement.replace and isinstance(there, Derived)


def conflict(name: str, there: object) -> SourceConflict:
    """The refusal of a definition under a name that stands with another."""
    what = kind_of(there)
    return SourceConflict(
        f"a {what} named {name!r} exists with another definition",
        hint=f"DROP {what.upper()} {name} first, or choose another name",
    )


def kind_of(source: object) -> str:
    """What lists call it."""
    if isinstance(source, Stream):
        return source.kind
    return "view" if isinstance(source, Derived) and not source.is_stream else "stream"


def refuse_if_read(node: Node, name: str) -> None:
    """Raise SourceConflict while a query or a view reads a stream or a view. O(queries)."""
    readers = node.readers(name)
    if readers:
        what = kind_of(node.catalogue.get(name))
        raise SourceConflict(f"{readers:,} queries read the {what} {name!r}", hint=READ_HINT)
    for other, view in node.views.items():
        if other != name and name in (*view.sources, *view.uses):
            raise SourceConflict(f"{other} reads {name!r}", hint=f"drop {other} first")
