"""The Faust application: agents on the control topics, the registry tables, and the word to the worker.

Order of effects for a change of the registry: table entry, command to the worker (tried until answered),
``.status``, then the offset. Commands are idempotent, so being cut off anywhere and saying it all again ends
in the same state. When the worker begins a new life, or this process does, everything that stands is said
again and what the registry does not know is removed from the worker (:meth:`Control.reconcile`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import orjson
from faust import Stream
from faust.types import EventT, Message, StreamT

from broker.base import logs
from broker.base.internal import Outcome
from broker.base.settings import Settings
from broker.control.awaiting import AwaitingQueries
from broker.control.faust_app import faust_app
from broker.control.link import CallFailed, Link, Refused
from broker.control.registry import Entry, Registry, said_again
from broker.control.replies import Headers, Replies
from broker.control.settling import Settling
from broker.control.writer import Writer, WrittenTable
from engine.model.defects import refusal_of
from topics import control_records as records
from topics.admin import Admin
from topics.control_records import Command
from topics.letters import Place, letter
from tureen.errors import InternalError, NameInUse, TureenError

HELLO_S = 0.5
REQUESTS_AT_ONCE = 16
ROCKS = {
    "driver": "rocksdict",
    "write_buffer_size": 1 << 20,
    "max_write_buffer_number": 2,
    "target_file_size_base": 8 << 20,
    "block_cache_size": 1 << 20,
    "max_open_files": 64,
}
"""A table has a database for each partition: small ones."""

SOURCES_PARTITIONS = 1
"""Streams are few, and their statements stand in one order."""

PARTS = 2
"""Batches of registrations that are taken at once: one is noted while another is carried out."""
WAITING_BATCHES = 2

BROKEN = ("changes_broken", "internal_error")
"""Errors of queries that do not come back by themselves."""

OF_A_RECORD = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TureenError,
    TypeError,
    ValueError,
)
"""What one record can be the cause of: it becomes a dead letter. Errors of the disk and of Kafka are of no
record; they end the process, and the one that follows is given the record again.
"""

Noted = tuple[Command, Entry | None]
"""A command, and the entry of the registry that it came from; None for a removal."""

Hold = Literal["recovering", "whole", "shared"]
"""How much of the registry this process has: it is being read, all is its own, another has part of it."""

log = logs.get()


class Control:
    """Everything of the control process, built from settings; ``app`` is what Faust runs."""

    def __init__(self, settings: Settings, kafka: dict[str, str]) -> None:
        self.settings = settings
        names = settings.names
        self.writer = Writer(kafka, settings.record_bytes_max, (names.status, names.dead_letters))
        self.link = Link(str(settings.socket_path), settings.secret)
        self.instance: str | None = None
        self._lock = asyncio.Lock()
        self._held: Hold = "recovering"
        self._awaiting = AwaitingQueries()
        self.app = app = faust_app(settings, kafka)
        queries = app.topic(names.queries, key_type=bytes, value_type=bytes)
        sources = app.topic(names.sources, key_type=bytes, value_type=bytes)
        requests = app.topic(names.snapshot_requests, key_type=bytes, value_type=bytes)
        self.queries = Registry(self._table("registry", settings.shards), names.queries)
        self.sources = Registry(self._table("streams", SOURCES_PARTITIONS), names.sources)
        self._settling = Settling(Admin(kafka), self.writer, (self.queries, self.sources))
        self.replies = Replies(self.link, self._send, names.reply_prefix, settings.reply_chunk_bytes)
        app.agent(queries, name="queries")(self._on_queries)
        app.agent(sources, name="sources")(self._on_sources)
        app.agent(requests, name="snapshot-requests")(self._on_requests)
        app.task(self._stay_in_touch)
        app.task(self._give_signs)

    def _table(self, name: str, partitions: int) -> WrittenTable:
        table = self.app.Table(
            name, key_type=bytes, value_type=bytes, partitions=partitions, options=dict(ROCKS)
        )
        assert isinstance(table, WrittenTable)
        table.writer = self.writer
        return table

    # --- agents -----------------------------------------------------------------------------------

    async def _on_queries(self, stream: StreamT[bytes]) -> None:
        await self._each(stream, PARTS * self.settings.command_batch, self._registrations)

    async def _on_sources(self, stream: StreamT[bytes]) -> None:
        await self._each(stream, 100, self._statements)

    async def _on_requests(self, stream: StreamT[bytes]) -> None:
        await self._each(stream, REQUESTS_AT_ONCE, self._requests)

    async def _each(
        self, stream: StreamT[bytes], count_max: int, handle: Callable[[list[Message]], Awaitable[None]]
    ) -> None:
        """Handle batch after batch, while the next ones are read; what cuts one off, even a stop, ends the
        process at once.

        A batch is what has come while the one before was handled, so that it is small when little comes and
        large when much does. It is acknowledged when it is done: a process that is gone acknowledges nothing,
        so the next one is given the batch again.
        """
        waiting: asyncio.Queue[EventT[bytes]] = asyncio.Queue(WAITING_BATCHES * count_max)
        handling = asyncio.create_task(self._handle(waiting, count_max, handle))
        try:
            assert isinstance(stream, Stream)
            async for event in stream.noack().events():
                await waiting.put(event)
        except asyncio.CancelledError:
            os._exit(0)
        finally:
            handling.cancel()

    async def _handle(
        self,
        waiting: asyncio.Queue[EventT[bytes]],
        count_max: int,
        handle: Callable[[list[Message]], Awaitable[None]],
    ) -> None:
        try:
            while True:
                events = [await waiting.get()]
                while self._held != "whole":
                    await asyncio.sleep(0.02)
                while len(events) < count_max and not waiting.empty():
                    events.append(waiting.get_nowait())
                await handle([event.message for event in events])
                await self._settling.written()
                for event in events:
                    event.ack()
        except asyncio.CancelledError:
            os._exit(0)
        except Exception as failed:
            log.error("control_failed", error=repr(failed), exc_info=failed)
            os._exit(1)

    async def _registrations(self, messages: list[Message]) -> None:
        """Part after part: while the worker carries one out, the next is noted, and the outcomes of the one
        before are told.
        """
        size = self.settings.command_batch
        newest: dict[str, Entry | None] = {}
        async with self._lock:
            at_work: asyncio.Task[list[Outcome]] | None = None
            handed: list[Noted] = []
            for first in range(0, len(messages), size):
                noted = [
                    found
                    for message in messages[first : first + size]
                    if (found := self._registration(message)) is not None
                ]
                newest |= {command["name"]: entry for command, entry in noted}
                outcomes = await at_work if at_work is not None else []
                carrying_out = self.link.commands([command for command, _ in noted])
                at_work = asyncio.create_task(carrying_out)
                self._note(handed, outcomes, newest)
                handed = noted
            self._note(handed, await at_work if at_work is not None else [], newest)

    async def _statements(self, messages: list[Message]) -> None:
        async with self._lock:
            for message in messages:
                await self._source(message)

    async def _requests(self, messages: list[Message]) -> None:
        await asyncio.gather(*(self._request(message) for message in messages))

    def _registration(self, message: Message) -> Noted | None:
        """Note a registration in the table; the command for it and the entry, None where there is no id to
        answer under.
        """
        try:
            name = records.query_id_of(message.key)
        except TureenError as unnamed:
            self._dead_letter(message, unnamed)
            return None
        try:
            command = records.registration(name, message.value, self.settings.sql_bytes_max)
            return self._entered(command, message)
        except OF_A_RECORD as failed:
            refused = refusal_of(failed)
            self._dead_letter(message, refused)
            command = records.refusal(name, message.value, self.settings.sql_bytes_max, refused)
            return self._entered(command, message)

    def _entered(self, command: Command, message: Message) -> Noted:
        """Note in the table what a command says."""
        name = command["name"]
        command["origin"] = (message.partition, message.offset)
        entry: Entry | None = None
        if command["kind"] == "unregister":
            if self.queries.get(name) is not None:
                # The entry goes first: what is not in it is removed from the worker at the next start.
                self.queries.remove(name)
                self.writer.send(self.settings.names.status, name.encode(), None)
        else:
            old = self.queries.get(name) or {}
            entry = {
                "sql": command.get("sql"),
                "parameters": command.get("parameters"),
                "options": command.get("options") or {},
                "state": old.get("state"),
                "error": old.get("error"),
                "approximation": old.get("approximation", []),
                "refused": command.get("error"),
            }
            self.queries.put(name, entry, message.partition)
        return command, entry

    async def _source(self, message: Message) -> None:
        try:
            command = records.source(message.key, message.value, self.settings.sql_bytes_max)
        except OF_A_RECORD as failed:
            self._dead_letter(message, refusal_of(failed))
            return
        name = command["name"]
        command["origin"] = (message.partition, message.offset)
        (outcome,) = await self.link.commands([command])
        if outcome["state"] == "ERROR":
            self._dead_letter(message, Refused(outcome["error"] or {}))
        elif command["kind"] == "drop":
            self.sources.remove(name)
        else:
            entry = {"sql": command["sql"], "pending": outcome["state"] == "PENDING"}
            self.sources.put(name, entry, message.partition)
            if not entry["pending"]:
                await self._retry_pending()

    async def _request(self, message: Message) -> None:
        refused: TureenError | None
        try:
            refused = await self.replies.answer(message.key, message.value)
        except OF_A_RECORD as failed:
            refused = refusal_of(failed)
        if refused is not None:
            self._dead_letter(message, refused, with_value=False)

    # --- the worker -------------------------------------------------------------------------------

    def _note(
        self, noted: Sequence[Noted], outcomes: Sequence[Outcome], newest: Mapping[str, Entry | None]
    ) -> None:
        """Write ``.status`` for the states, and tags of answers, that are others than before.

        newest: the last entry of each name. One that is not the last is left alone: the command of that
        one tells.
        """
        for (command, entry), outcome in zip(noted, outcomes, strict=True):
            name = command["name"]
            state, error = outcome["state"], outcome.get("error")
            self._awaiting.note(name, outcome, stands=entry is not None)
            if entry is None:
                continue
            before = entry.get("approximation", [])
            tags = [] if state == "ERROR" else outcome.get("approximation", before)
            if (entry["state"], entry["error"], before) == (state, error, tags):
                continue
            if newest.get(name) is not entry:
                continue
            entry["state"], entry["error"], entry["approximation"] = state, error, tags
            if (error or {}).get("code") in BROKEN:
                entry["refused"] = error
            self.queries.put(name, entry)
            told: dict[str, Any] = {"state": state, "error": error, "position": outcome.get("position")}
            if outcome.get("output") is not None:
                told["output"] = outcome["output"]
            if tags:
                told["approximation"] = tags
            self.writer.send(self.settings.names.status, name.encode(), orjson.dumps(told))

    async def _say_sources(self, names: list[str]) -> None:
        """Streams and views; what waits for another of them once more, as long as fewer wait each time."""
        while names:
            waiting = []
            for name in names:
                entry = self.sources.get(name)
                if entry is None:
                    continue
                (outcome,) = await self.link.commands([{"kind": "create", "name": name, "sql": entry["sql"]}])
                pending = outcome["state"] != "RUNNING"
                if pending:
                    waiting.append(name)
                if pending != bool(entry.get("pending")):
                    self.sources.put(name, {"sql": entry["sql"], "pending": pending})
            names = waiting if len(waiting) < len(names) else []

    async def _retry_pending(self) -> None:
        names = [name for name in self.sources.names() if (self.sources.get(name) or {}).get("pending")]
        await self._say_sources(names)
        waiting = [name for name, entry in self.queries.entries() if entry["state"] == "PENDING"]
        await self._say_again(self.queries.entries(waiting))

    async def _say_again(self, entries: Iterator[tuple[str, Entry]]) -> None:
        """Batch after batch, while the next is read."""
        at_work: asyncio.Task[list[Outcome]] | None = None
        handed: list[Noted] = []
        while True:
            noted: list[Noted] = [
                (said_again(name, entry), entry)
                for name, entry in islice(entries, self.settings.command_batch)
            ]
            outcomes = await at_work if at_work is not None else []
            carrying_out = self.link.commands([command for command, _ in noted])
            at_work = asyncio.create_task(carrying_out)
            await asyncio.sleep(0)  # it is on its way
            self._note(handed, outcomes, {command["name"]: entry for command, entry in handed})
            handed = noted
            if not noted:
                await at_work
                return

    async def reconcile(self) -> None:
        """Say everything again to a worker that does not know it, and have it drop the rest."""
        async with self._lock:
            await self._say_sources(self.sources.names())
            nameless: list[str] = []
            await self._say_again(self._with_names(nameless))
            await self._say_again(self.queries.entries(nameless))
            await self._settling.written()
            await self.link.call(
                "POST",
                "/internal/reconcile",
                {"queries": self.queries.names(), "sources": self.sources.names()},
            )
        log.info("registry_told", queries=len(self.queries.names()), sources=len(self.sources.names()))

    def _with_names(self, nameless: list[str]) -> Iterator[tuple[str, Entry]]:
        """All queries but those whose names others had: these come behind, so that the others keep them."""
        for name, entry in self.queries.entries():
            if (entry["error"] or {}).get("code") == NameInUse.code:
                nameless.append(name)
            else:
                yield name, entry

    async def _say_changed(self, changed: list[str]) -> None:
        """Say again the queries whose state the worker has changed, and now and then those that wait for
        their output.
        """
        names = [*changed, *self._awaiting.due(changed)]
        if names:
            async with self._lock:
                await self._say_again(self.queries.entries(names))
                await self._settling.written()

    def _owns_all(self) -> bool:
        """Whether every partition of the registry's topics is this process's.

        For a moment they may not be: an earlier owner that died, or that is just being fenced, is still a
        member of the group. A part of the registry must not be taken for the whole.
        """
        wanted = {(self.settings.names.queries, number) for number in range(self.settings.shards)}
        wanted |= {(self.settings.names.sources, number) for number in range(SOURCES_PARTITIONS)}
        return wanted <= {(at.topic, at.partition) for at in self.app.consumer.assignment()}

    async def _stay_in_touch(self) -> None:
        while not self.app.should_stop:
            try:
                await self._touch()
            except CallFailed as failed:
                log.error("worker_fails", reason=failed.message)
            await self._awaiting.pause(HELLO_S)

    async def _touch(self) -> None:
        """Say what the worker does not know, where the whole registry is this process's."""
        if not self._owns_all():
            if self._held == "whole":
                log.info("registry_shared", hint="waiting for the other owner to leave")
                self._held, self.instance = "shared", None
            if self._held == "shared":
                # If the other one is newer it fences this worker's shards, sooner or later; they notice when
                # they write.
                await self.link.call("POST", "/internal/prove")
            return
        if self._held != "whole":
            self._held = "recovering"
            await self.app.tables.wait_until_recovery_completed()
            if not self._owns_all():
                return
            self.queries.load()
            self.sources.load()
            self._held = "whole"
            log.info(
                "registry_recovered", queries=len(self.queries.names()), sources=len(self.sources.names())
            )
        hello = await self.link.call("GET", "/internal/hello")
        if hello["instance"] != self.instance or not hello["reconciled"]:
            await self.reconcile()
            self.instance = hello["instance"]
        await self._say_changed(hello["changed"])
        await self._settling.settle()

    async def _give_signs(self) -> None:
        """Signs of life, however long the registry is being told."""
        while not self.app.should_stop:
            with contextlib.suppress(CallFailed):
                await self.link.call("POST", "/internal/alive", {"pid": os.getpid(), "told": self.instance})
            await asyncio.sleep(HELLO_S)

    # --- Kafka ------------------------------------------------------------------------------------

    async def _send(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Write a record of a reply; returns once it is written."""
        await (await self.app.producer.send(topic, key, value, None, None, headers))

    def _dead_letter(self, message: Message, refused: TureenError, with_value: bool = True) -> None:
        log.warning(
            "control_record_refused",
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            code=refused.as_dict()["code"],
            **({"trace": refused.trace} if isinstance(refused, InternalError) else {}),
        )
        value, key, headers = letter(
            message.value if with_value else None,
            message.key,
            (),
            Place(message.topic, message.partition, message.offset),
            f"{refused.as_dict()['code']}: {refused.message}",
            self.settings.record_bytes_max,
        )
        self.writer.send(self.settings.names.dead_letters, key, value, headers)
