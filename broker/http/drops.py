"""DROP of streams, tables and views over HTTP: to the topic first, then the outcome is awaited.

With all that reads it a drop takes as long as the last answers of what ends. It goes on when the request that
asked for it was answered or is gone; who asks again joins it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from broker.base import logs
from broker.base.settings import Settings
from broker.http.endings import Endings, readers
from broker.http.errors import status_of
from broker.http.summaries import SummaryRequests
from broker.http.writes import Answer, Writes
from broker.node.directory import Directory
from broker.node.materialized import materialized_by
from broker.node.node import Node
from engine.language.places import did_you_mean
from engine.language.query import DropStream
from engine.queries.definitions import Decision, Drop, decide, kind_of
from tureen.errors import HandleNeeded, SourceConflict, UnknownSource

ANY_KIND = "stream, table or view"
LISTS = {"stream": "STREAMS", "table": "TABLES", "view": "VIEWS", ANY_KIND: "SOURCES"}
"""What SHOW calls them."""
LOOK_S = 0.02
GIVE_UP_S = 300.0
"""A drop ends, unfinished, where nothing has gone for so long: the shard is held, or Kafka is away."""

log = logs.get()

Told = dict[str, Any]


class Drops:
    """Drops by way of the sources topic. Used by the event loop alone."""

    def __init__(
        self, settings: Settings, node: Node, writes: Writes, endings: Endings, summaries: SummaryRequests
    ) -> None:
        self._settings = settings
        self._node = node
        self._writes = writes
        self._endings = endings
        self._summaries = summaries
        self._under_way: dict[str, tuple[asyncio.Task[Answer], Told]] = {}

    async def statement(self, statement: DropStream, operator: bool) -> Answer:
        """(status, what became of it). operator: asks. Raises as :meth:`drop`."""
        name = statement.name
        said = said_of(statement)
        decision = decide(
            name, Drop(said, statement.cascade or statement.materialized), self._node.directory.definitions
        )
        if decision is Decision.ABSENT and name not in self._node.directory.waiting and statement.if_exists:
            return 200, {"name": name, "kind": said, "state": "GONE", "skipped": True}
        if statement.materialized and not statement.cascade and name in self._node.directory.views:
            return await self._drop_materialized(name, operator)
        return await self.drop(name, statement.cascade, operator, said)

    async def drop(
        self, name: str, cascade: bool = False, operator: bool = False, said: str = ANY_KIND
    ) -> Answer:
        """cascade: with what reads it. operator: asks, who alone may end queries so. said: what it is called.

        Raises UnknownSource, SourceConflict, HandleNeeded, KafkaUnavailable.
        """
        directory = self._node.directory
        absent = missing(directory, name, said)
        if absent is not None:
            raise absent
        told = self._told(name)
        if not cascade:
            return await self._drop_unread(name, told)
        ended = readers(directory, name)
        if ended and not operator:
            raise HandleNeeded(ended[0])
        decide(name, Drop(cascade=True), directory.definitions)
        return await self._joined(name, told, self._drop_with_readers(name, told))

    def _told(self, name: str) -> Told:
        return {"name": name, "kind": kind_of(self._node.directory.catalogue.get(name))}

    async def _joined(self, name: str, told: Told, work: Coroutine[Any, Any, Answer]) -> Answer:
        """What becomes of a drop that goes on by itself, or PENDING if that takes long. told: what it tells
        as it goes on. work: unused where a drop of this name is under way.
        """
        if name in self._under_way:
            work.close()
        else:
            task = asyncio.create_task(work)
            self._under_way[name] = task, told
            task.add_done_callback(lambda done: self._over(name, done))
        return await self.awaited(name, self._settings.outcome_wait_ms / 1_000)

    async def awaited(self, name: str, wait_s: float) -> Answer:
        """What becomes of a drop that is under way, or PENDING after so many seconds. Raises as
        :meth:`drop`.
        """
        task, told = self._under_way[name]
        await asyncio.wait([task], timeout=wait_s)
        return task.result() if task.done() else (202, told | {"state": "PENDING"})

    def is_under_way(self, name: str) -> bool:
        """Whether a drop of this name goes on by itself."""
        return name in self._under_way

    def _over(self, name: str, task: asyncio.Task[Answer]) -> None:
        del self._under_way[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("drop_ended", source=name, reason=str(error))

    async def _drop_materialized(self, name: str, operator: bool) -> Answer:
        """End the query that keeps a view's answer, then drop the view.

        Raises SourceConflict while another reads it; HandleNeeded where somebody else than the operator asks.
        """
        directory = self._node.directory
        query_id = materialized_by(directory, name)
        if query_id is None:
            raise SourceConflict(
                f"{name!r} is no materialized view: no query keeps its answer",
                hint=f"write DROP VIEW {name}; where the query was lost or dropped, the CREATE MATERIALIZED "
                "VIEW of the same SELECT makes it again",
            )
        others = [one for one in readers(directory, name) if one != query_id]
        if others:
            noun = "query reads" if len(others) == 1 else "queries read"
            raise SourceConflict(
                f"{len(others):,} other {noun} the view {name!r}",
                hint=f"end them first, as DROP VIEW {name} CASCADE does with all of them",
            )
        if not operator:
            raise HandleNeeded(query_id)
        told = self._told(name)
        return await self._joined(name, told, self._drop_with_its_query(name, told, query_id))

    async def _drop_with_its_query(self, name: str, told: Told, query_id: str) -> Answer:
        told["ended"] = [query_id]
        if not await self._end([query_id]):
            return 202, told | {"state": "PENDING"}
        return await self._drop_itself(name, told)

    async def _drop_with_readers(self, name: str, told: Told) -> Answer:
        """Drop it with what reads it. Queries that were on their way when it began go as well, which may take
        some rounds; those that come later are refused.

        Raises as :meth:`drop`; SourceConflict where queries keep coming by topic.
        """
        directory = self._node.directory
        told |= {"ended": [], "dropped": []}
        until_s: float | None = None
        with directory.queries.leaving(name):
            while True:
                decide(name, Drop(cascade=True), directory.definitions)
                ended = readers(directory, name)
                told["ended"] += ended
                if not await self._end(ended):
                    return 202, told | {"state": "PENDING"}
                try:
                    refused = await self._drop_what_stands_on(name, told)
                    if refused is not None:
                        return refused
                    status, answer = await self._drop_itself(name, told)
                except SourceConflict as conflict:
                    status, answer = 409, conflict.as_dict()
                if answer.get("code") != SourceConflict.code:
                    return status, answer
                until_s = until_s or time.monotonic() + self._settings.outcome_wait_ms / 1_000
                if time.monotonic() > until_s:
                    raise SourceConflict(
                        f"queries that read {name!r} keep coming; {len(told['ended']):,} were ended",
                        hint="stop what registers them by topic, and drop it again",
                    )

    async def _end(self, query_ids: list[str]) -> bool:
        """End queries; whether they are gone. Raises KafkaUnavailable."""
        left = await self._endings.end(query_ids)
        queries = self._node.directory.queries
        return await self._gone(lambda: sum(one in queries for one in left))

    async def _gone(self, left: Callable[[], int]) -> bool:
        """Wait until nothing is left, as long as it becomes less."""
        least, since_s = left(), time.monotonic()
        while now := left():
            if now < least:
                least, since_s = now, time.monotonic()
            elif time.monotonic() - since_s > GIVE_UP_S:
                return False
            await asyncio.sleep(LOOK_S)
        return True

    async def _drop_what_stands_on(self, name: str, told: Told) -> Answer | None:
        """Drop the views and summaries of what is dropped. Returns why it could not; None: they are gone."""
        directory = self._node.directory
        # What was made later reads what was made before, so it goes first.
        views = [one for one in reversed(directory.views) if name in directory.views[one].reads]
        for view in views:
            status, answer = await self._drop_itself(view, self._told(view))
            if status != 200:
                return status, told | answer
            told["dropped"].append(view)
        summaries = directory.summaries_of(name)
        for summary in summaries:
            status, answer = await self._summaries.drop(summary)
            if status != 200:
                return status, told | answer
            told["summaries"] = [*told.get("summaries", ()), summary]
        return None

    async def _drop_itself(self, name: str, told: Told) -> Answer:
        """As :meth:`_drop_unread`, once it is gone."""
        status, answer = await self._drop_unread(name, told)
        directory = self._node.directory
        if status == 202 and await self._gone(lambda: int(name in directory.catalogue)):
            return 200, answer | {"state": "GONE"}
        return status, answer

    async def _drop_unread(self, name: str, told: Told) -> Answer:
        """Raises SourceConflict while something reads it, KafkaUnavailable."""
        decide(name, Drop(), self._node.directory.definitions)
        outcome = await self._writes.written(self._settings.names.sources, name, None)
        if outcome is None:
            return 202, told | {"state": "PENDING"}
        if outcome["state"] == "ERROR":
            error = outcome.get("error") or {}
            return status_of(error), told | {"state": "ERROR"} | error
        return 200, told | {"state": "GONE"}


def said_of(statement: DropStream) -> str:
    """What a DROP calls it."""
    return "view" if statement.view else "table" if statement.table else "stream"


def missing(directory: Directory, name: str, said: str) -> UnknownSource | None:
    """The refusal to drop what is not there; None where there is such. said: what it is called."""
    known = [*directory.catalogue, *directory.waiting]
    if name in known:
        return None
    if directory.queries.names.id_of(name) is not None:
        return UnknownSource(name, kind=said, hint=f"it is the name of a query: write DROP QUERY {name}")
    alike = [one for one in known if said in (kind_of(directory.catalogue.get(one)), ANY_KIND)]
    hint = did_you_mean(name, alike) or did_you_mean(name, known) or f"SHOW {LISTS[said]} lists them"
    return UnknownSource(name, kind=said, hint=hint)
