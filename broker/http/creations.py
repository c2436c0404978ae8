"""CREATE and DROP of streams, tables and views over HTTP: to the topic first, then the outcome is awaited.

What can be refused on sight is refused before anything is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from typing import Any

import orjson

from broker.base.internal import Outcome
from broker.base.settings import Settings
from broker.http.created import look_before, refuse_unreadable, topic_answer
from broker.http.endings import Endings, readers
from broker.http.errors import status_of
from broker.http.inference import Inference
from broker.http.named import require_operator
from broker.http.requests import RegisterRequest, body_object, sql_of
from broker.http.summaries import SummaryRequests
from broker.http.writes import Answer, Writes
from broker.node.directory import Directory
from broker.node.materialized import kept_text, materialized_by, query_of
from broker.node.node import Node
from engine.language.places import did_you_mean
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
from engine.queries.definitions import Decision, Drop, create_of, decide, kind_of
from topics.admin import refuse_own
from topics.formats.kernels import kernels_of
from topics.wording import Wording
from tureen.errors import (
    BrokerUnavailable,
    HandleNeeded,
    NotSupported,
    SourceConflict,
    TureenError,
    UnknownSource,
)
from tureen.protocol import new_handle

Defining = CreateStream | CreateFromTopic | CreateFromQuery | DropStream
"""Statements that are carried out here, besides those of summaries."""
ANY_KIND = "stream, table or view"
LISTS = {"stream": "STREAMS", "table": "TABLES", "view": "VIEWS", ANY_KIND: "SOURCES"}
"""What SHOW calls them."""


class Creations:
    """Creates and drops by way of the sources topic."""

    def __init__(
        self,
        settings: Settings,
        node: Node,
        writes: Writes,
        endings: Endings,
        summaries: SummaryRequests,
        inference: Inference,
    ) -> None:
        self._inference = inference
        self._endings = endings
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
            return await self._drop(statement, operator)
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
                await self.drop(name)

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
        if await self._endings.end([query_id]):
            return 202, {"name": name, "kind": "view", "state": "PENDING", "ended": [query_id]}
        status, told = await self.drop(name)
        return status, told | {"ended": [query_id]}

    def _created(self, name: str, outcome: Outcome) -> dict[str, Any]:
        there = self._node.directory.catalogue.get(name)
        return {
            "name": name,
            "kind": kind_of(there),
            "topic": there.topic if isinstance(there, Stream) else None,
            "state": outcome["state"],
            "error": outcome.get("error"),
        }

    async def _drop(self, statement: DropStream, operator: bool) -> Answer:
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
        there = directory.catalogue.get(name)
        absent = missing(directory, name, said)
        if absent is not None:
            raise absent
        told: dict[str, Any] = {"name": name, "kind": kind_of(there)}
        if not cascade:
            return await self._drop_unread(name, told)
        with directory.queries.leaving(name):
            return await self._drop_with_readers(name, told, operator)

    async def _drop_with_readers(self, name: str, told: dict[str, Any], operator: bool) -> Answer:
        """Drop it with what reads it. Queries that were on their way when it began go as well, which may take
        some rounds; those that come later are refused.

        Raises as :meth:`drop`; SourceConflict where queries keep coming by topic.
        """
        directory = self._node.directory
        until_s = time.monotonic() + self._settings.outcome_wait_ms / 1_000
        told |= {"ended": [], "dropped": []}
        while True:
            decide(name, Drop(cascade=True), directory.definitions)
            ended = readers(directory, name)
            if ended and not operator:
                raise HandleNeeded(ended[0])
            told["ended"] += ended
            if await self._endings.end(ended):
                return 202, told | {"state": "PENDING"}
            try:
                refused = await self._drop_what_stands_on(name, told)
                if refused is not None:
                    return refused
                status, answer = await self._drop_unread(name, told)
            except SourceConflict as conflict:
                status, answer = 409, conflict.as_dict()
            if answer.get("code") != SourceConflict.code:
                return status, answer
            if time.monotonic() > until_s:
                raise SourceConflict(
                    f"queries that read {name!r} keep coming; {len(told['ended']):,} were ended",
                    hint="stop what registers them by topic, and drop it again",
                )

    async def _drop_what_stands_on(self, name: str, told: dict[str, Any]) -> Answer | None:
        """Drop the views and summaries of what is dropped. Returns why it could not; None: they are gone."""
        directory = self._node.directory
        # What was made later reads what was made before, so it goes first.
        views = [one for one in reversed(directory.views) if name in directory.views[one].reads]
        for view in views:
            status, answer = await self.drop(view)
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

    async def _drop_unread(self, name: str, told: dict[str, Any]) -> Answer:
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
