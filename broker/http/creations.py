"""CREATE of streams, tables and views over HTTP: to the topic first, then the outcome is awaited.

What can be refused on sight is refused before anything is written.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import orjson

from broker.base.internal import Outcome
from broker.base.settings import Settings
from broker.http.created import look_before, refuse_unreadable, topic_answer
from broker.http.drops import Drops
from broker.http.errors import status_of
from broker.http.inference import Inference
from broker.http.named import require_operator
from broker.http.requests import RegisterRequest, body_object, sql_of
from broker.http.summaries import SummaryRequests
from broker.http.writes import Answer, Writes
from broker.node.materialized import kept_text, materialized_by, query_of
from broker.node.node import Node
from engine.language.query import (
    AlterSummary,
    CreateFromQuery,
    CreateFromTopic,
    CreateStream,
    CreateSummary,
    DropStream,
    DropSummary,
)
from engine.model.query_name import NAME_OPTION
from engine.model.source import Stream
from engine.queries.definitions import Decision, create_of, decide, kind_of
from topics.admin import refuse_own
from topics.formats.kernels import kernels_of
from topics.wording import Wording
from tureen.errors import (
    BrokerUnavailable,
    NotSupported,
    TureenError,
)
from tureen.protocol import new_handle

Defining = CreateStream | CreateFromTopic | CreateFromQuery | DropStream
"""Statements that are carried out here, besides those of summaries."""


class Creations:
    """Creates by way of the sources topic."""

    def __init__(
        self,
        settings: Settings,
        node: Node,
        writes: Writes,
        drops: Drops,
        summaries: SummaryRequests,
        inference: Inference,
    ) -> None:
        self._inference = inference
        self._drops = drops
        self._summaries = summaries
        self._settings = settings
        self._node = node
        self._writes = writes

    async def statement(self, body: bytes, operator: bool) -> Answer:
        """CREATE or DROP of a stream, a table, a view or a summary; ALTER of a summary. operator: asks.

        Raises QueryError, SourceConflict, SummaryConflict, KafkaUnavailable.
        """
        sql = sql_of(body_object(body), self._settings.sql_bytes_max)
        statement = await self._node.understand(sql)
        if isinstance(statement, CreateSummary | AlterSummary | DropSummary):
            return await self._summaries.make(statement)
        if not isinstance(statement, Defining):
            raise NotSupported(
                "this endpoint takes CREATE and DROP of streams, tables, views and summaries",
                hint="register a SELECT; run other statements as such",
            )
        return await self.make(statement, operator)

    async def make(self, statement: Defining, operator: bool) -> Answer:
        """(status, what became of it). operator: asks.

        Raises SourceConflict, UnknownSource, KafkaUnavailable, TopicMissing, and of FROM TOPIC as
        :meth:`broker.http.inference.Inference.meant`.

        Of a new stream or table also what is known of its topic: :func:`broker.http.created.topic_answer`.
        """
        if isinstance(statement, CreateFromTopic):
            return await self._from_topic(statement, operator)
        if isinstance(statement, DropStream):
            return await self._drops.statement(statement, operator)
        if isinstance(statement, CreateFromQuery) and statement.materialized is not None:
            return await self._materialize(statement, statement.materialized)
        made = statement.stream if isinstance(statement, CreateStream) else statement.derived
        asked = replace(
            create_of(statement, self._node.directory.catalogue), if_not_exists=statement.if_not_exists
        )
        if decide(made.name, asked, self._node.directory.definitions) is Decision.SAME:
            told = self._created(made.name, {"state": "RUNNING"})
            if not statement.if_not_exists:
                return 200, told
            is_other = self._node.directory.catalogue[made.name] != made
            return 200, told | {"skipped": True, "differs": is_other}
        if not self._node.life.reconciled:
            raise BrokerUnavailable("the registry is still being read", hint="try again in a second")
        before = None
        if isinstance(statement, CreateStream):
            refuse_own(self._settings.names, statement.stream.topic)
            refuse_unreadable(statement.stream)
            await self._readable(statement.stream)
            before = await asyncio.to_thread(look_before, self._node.setup.admin, statement)
        value = orjson.dumps({"sql": statement.sql})
        outcome = await self._writes.written(self._settings.names.sources, made.name, value)
        if outcome is None or outcome["state"] == "PENDING":
            return 202, self._created(made.name, outcome or {"state": "PENDING"})
        if outcome["state"] == "ERROR":
            error = outcome.get("error") or {}
            return status_of(error), self._created(made.name, outcome) | error
        created = self._created(made.name, outcome)
        if before is not None:
            assert isinstance(statement, CreateStream)
            created |= await asyncio.to_thread(topic_answer, self._node.setup.kafka, statement, before)
        return 201, created

    async def _readable(self, stream: Stream) -> None:
        """Return once what reads its records is compiled. Raises ReaderBeingCompiled."""
        formats = kernels_of(stream.format, has_registry=bool(self._settings.schema_registry_url))
        await self._inference.readers.ready(formats, self._settings.outcome_wait_ms / 1_000)

    async def _from_topic(self, statement: CreateFromTopic, operator: bool) -> Answer:
        """Infer the statement that is meant, once, and carry that out; it is told as ``sql``. With IF NOT
        EXISTS nothing is inferred where the name is taken.
        """
        require_operator(operator, "look at records of a topic")
        there = self._node.directory.catalogue.get(statement.name)
        if there is not None and statement.if_not_exists:
            told = self._created(statement.name, {"state": "RUNNING"})
            is_other = told["kind"] != statement.kind or told["topic"] != statement.topic
            return 200, told | {"skipped": True, "differs": is_other}
        found = await self._inference.meant(statement)
        create = await self._node.understand(found["sql"])
        assert isinstance(create, CreateStream)
        status, made = await self.make(create, operator)
        guesses = {one["code"] for one in found["warnings"]}
        others = [one for one in made.get("warnings", ()) if one["code"] not in guesses]
        return status, made | {"sql": create.sql, "warnings": [*found["warnings"], *others]}

    async def _materialize(self, statement: CreateFromQuery, emits: str) -> Answer:
        """A view, and the query of its name that keeps its answer; neither where one of them is refused."""
        name, directory = statement.derived.name, self._node.directory
        there = materialized_by(directory, name)
        is_same = directory.catalogue.get(name) == statement.derived
        if there is not None and (statement.if_not_exists or is_same):
            told = self._created(name, {"state": "RUNNING"}) | {"query_id": there}
            skipped = {"skipped": True, "differs": not is_same} if statement.if_not_exists else {}
            return 200, told | skipped
        there = None if emits else query_of(directory, name, statement.derived.sql)
        if there is not None:
            status, made = await self.make(replace(statement, sql=statement.plain, materialized=None), False)
            return status, made | {"query_id": there}
        directory.queries.names.require(name, "")
        status, made = await self.make(replace(statement, sql=statement.plain, materialized=None), False)
        if status >= 300:
            return status, made
        options = {NAME_OPTION: name, "maintenance": "eager"}
        request = RegisterRequest(Wording(kept_text(name, emits)), new_handle(), options, is_handle_ours=True)
        try:
            kept, told = await self._writes.register(request)
        except TureenError:
            await self._undo(name, status)
            raise
        if kept not in (200, 201, 202):
            await self._undo(name, status)
            return kept, told
        return max(status, kept), made | told

    async def _undo(self, name: str, status: int) -> None:
        """Drop a view that was just made and whose query was refused. status: of its making; 200: it stood
        before.
        """
        if status != 200:
            with contextlib.suppress(TureenError):
                await self._drops.drop(name)

    def _created(self, name: str, outcome: Outcome) -> dict[str, Any]:
        there = self._node.directory.catalogue.get(name)
        return {
            "name": name,
            "kind": kind_of(there),
            "topic": there.topic if isinstance(there, Stream) else None,
            "state": outcome["state"],
            "error": outcome.get("error"),
        }
