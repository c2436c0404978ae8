"""HTTP writes: to the topic first, then the outcome is awaited, within bounds.

What can be refused on sight (a text that does not parse, a handle in use) is refused before anything is
written. What the topic holds is then carried out by whoever reads it, so an answer of 202 is no failure: the
record is there, its outcome will be.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import orjson

from broker.http.errors import status_of
from broker.http.requests import RegisterRequest, body_object, register_request, sql_of
from broker.internal import Outcome
from broker.settings import Settings
from broker.worker.node import Node
from broker.worker.publisher import Publisher
from engine.language.query import CreateStream, DropStream, Query
from tureen.errors import (
    BrokerUnavailable,
    HandleInUse,
    NotSupported,
    SourceConflict,
    TureenError,
    UnknownQuery,
    UnknownSource,
)
from tureen.protocol import query_id

BULK_IN_FLIGHT = 2_000

Answer = tuple[int, dict[str, Any]]


class Writes:
    """Registers, unregisters, creates and drops by way of the topics."""

    def __init__(self, settings: Settings, node: Node, publisher: Publisher) -> None:
        self._settings = settings
        self._node = node
        self._publisher = publisher

    async def register(self, request: RegisterRequest) -> Answer:
        """(status, body). Raises QueryError, LimitExceeded, HandleInUse, KafkaUnavailable."""
        node = self._node
        name = query_id(request.handle)
        try:
            statement = await node.understand(request.sql)
            if not isinstance(statement, Query):
                raise NotSupported(
                    "only a SELECT can stand as a query", hint="send CREATE and DROP STREAM to POST /sources"
                )
        except UnknownSource:
            pass  # It waits for its stream.
        entry = node.queries.get(name)
        standing = node.reserved.get(name, entry.sql if entry is not None else None)
        if standing is not None:
            if standing != request.sql:
                raise HandleInUse(name, hint="unregister it first, or leave the handle out and get a new one")
            if entry is not None and entry.state == "RUNNING":
                return 200, self._registered(request, entry.outcome())
        elif entry is None and not node.reconciled:
            raise BrokerUnavailable("the registry is still being read", hint="say it again in a second")
        node.reserved[name] = request.sql
        try:
            value = orjson.dumps({"sql": request.sql, "options": request.options})
            outcome = await self._written(self._settings.names.queries, name, value)
        finally:
            node.reserved.pop(name, None)
        if outcome is None:
            return 202, self._registered(request, {"state": "PENDING", "error": None})
        if outcome["state"] == "ERROR":
            error = outcome.get("error") or {}
            return status_of(error), self._registered(request, outcome) | error
        return (201 if outcome["state"] == "RUNNING" else 202), self._registered(request, outcome)

    async def register_many(self, body: bytes) -> list[bytes]:
        """One answer line for each line of the body, in order; a refused line spoils no other."""
        gate = asyncio.Semaphore(BULK_IN_FLIGHT)
        lines = [line for line in body.split(b"\n") if line.strip()]
        await asyncio.to_thread(self._look_ahead, lines)

        async def one(line: bytes) -> bytes:
            async with gate:
                try:
                    request = register_request(line, self._settings.sql_bytes_max)
                except TureenError as refused:
                    return orjson.dumps({"state": "ERROR", "error": refused.as_dict()})
                try:
                    _, answer = await self.register(request)
                except TureenError as refused:
                    answer = self._registered(request, {"state": "ERROR", "error": refused.as_dict()})
                return orjson.dumps(answer)

        return await asyncio.gather(*(one(line) for line in lines))

    def _look_ahead(self, lines: list[bytes]) -> None:
        """Parse what can be parsed, at one go instead of line by line between threads."""
        for line in lines:
            with contextlib.suppress(TureenError):
                self._node.parse(register_request(line, self._settings.sql_bytes_max).sql)

    @staticmethod
    def _registered(request: RegisterRequest, outcome: Outcome) -> dict[str, Any]:
        return {
            "handle": request.handle,
            "query_id": query_id(request.handle),
            "state": outcome["state"],
            "error": outcome.get("error"),
            "position": outcome.get("position"),
        }

    async def unregister(self, handle: str) -> Answer:
        """Raises UnknownQuery, KafkaUnavailable."""
        name = query_id(handle)
        if name not in self._node.queries:
            if not self._node.reconciled:
                raise BrokerUnavailable("the registry is still being read", hint="say it again in a second")
            raise UnknownQuery()
        outcome = await self._written(self._settings.names.queries, name, None)
        return (202 if outcome is None else 200), {
            "query_id": name,
            "state": "PENDING" if outcome is None else "GONE",
        }

    async def statement(self, body: bytes) -> Answer:
        """CREATE STREAM or DROP STREAM. Raises QueryError, SourceConflict, KafkaUnavailable."""
        sql = sql_of(body_object(body), self._settings.sql_bytes_max)
        statement = await self._node.understand(sql)
        if isinstance(statement, DropStream):
            if statement.name not in self._node.sources and statement.if_exists:
                return 200, {"name": statement.name, "state": "GONE"}
            return await self.drop(statement.name)
        if not isinstance(statement, CreateStream):
            raise NotSupported(
                "this endpoint takes CREATE STREAM and DROP STREAM", hint="POST /queries takes SELECT"
            )
        name = statement.stream.name
        standing = self._node.sources.get(name)
        if standing is not None:
            if standing.stream == statement.stream or statement.if_not_exists:
                return 200, self._created(name, {"state": "RUNNING"})
            raise SourceConflict(
                f"a stream named {name!r} exists with another definition",
                hint=f"DROP STREAM {name} first, or choose another name",
            )
        if not self._node.reconciled:
            raise BrokerUnavailable("the registry is still being read", hint="say it again in a second")
        outcome = await self._written(self._settings.names.sources, name, orjson.dumps({"sql": sql}))
        if outcome is None:
            return 202, self._created(name, {"state": "PENDING"})
        if outcome["state"] == "ERROR":
            error = outcome.get("error") or {}
            return status_of(error), self._created(name, outcome) | error
        return 201, self._created(name, outcome)

    def _created(self, name: str, outcome: Outcome) -> dict[str, Any]:
        entry = self._node.sources.get(name)
        return {
            "name": name,
            "topic": entry.stream.topic if entry else None,
            "state": outcome["state"],
            "error": outcome.get("error"),
        }

    async def drop(self, name: str) -> Answer:
        """Raises UnknownSource, SourceConflict, KafkaUnavailable."""
        if name not in self._node.sources:
            raise UnknownSource(name)
        readers = self._node.readers(name)
        if readers:
            raise SourceConflict(
                f"{readers:,} queries read the stream {name!r}", hint="unregister them first"
            )
        outcome = await self._written(self._settings.names.sources, name, None)
        if outcome is None:
            return 202, {"name": name, "state": "PENDING"}
        if outcome["state"] == "ERROR":
            error = outcome.get("error") or {}
            return status_of(error), {"name": name, "state": "ERROR"} | error
        return 200, {"name": name, "state": "GONE"}

    async def _written(self, topic: str, key: str, value: bytes | None) -> Outcome | None:
        origin = await self._publisher.publish(topic, key, value)
        return await self._node.waiters.outcome(origin, self._settings.outcome_wait_ms / 1_000)
