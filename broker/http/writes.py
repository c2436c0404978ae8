"""HTTP writes: to the topic first, then the outcome is awaited, within bounds.

What can be refused on sight (a text that does not parse, a handle in use) is refused before anything is
written. What the topic holds is then carried out by whoever reads it, so an answer of 202 is no failure: the
record is there, its outcome will be.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from starlette.requests import ClientDisconnect

from broker.base import logs
from broker.base import options as query_options
from broker.base.entries import ON_ITS_WAY, QueryEntry
from broker.base.internal import Outcome
from broker.base.settings import Settings
from broker.http.bodies import Line, Part
from broker.http.connection import Connection
from broker.http.errors import Stopping, status_of
from broker.http.missing_sources import with_topic
from broker.http.noticing import notices_of
from broker.http.read_ahead import ReadAhead
from broker.http.requests import RegisterRequest, register_request
from broker.memory.levels import Level
from broker.node.admission import no_select
from broker.node.node import Node
from broker.node.waiters import Origin
from broker.runtime.publisher import Publisher
from engine.language.notices import Notice
from topics.control_records import check_size
from topics.wording import Wording
from tureen.errors import (
    BeingRegistered,
    BeingRemoved,
    BrokerUnavailable,
    HandleInUse,
    KafkaUnavailable,
    LimitExceeded,
    TureenError,
    UnknownSource,
)
from tureen.protocol import query_id

Answer = tuple[int, dict[str, Any]]

PARTS_AT_WORK = 2
PREPARED_WAIT_S = 2.0
"""What is being prepared is waited for so long: most of it takes less."""
LOOK_S = 0.02
ANSWERS_BYTES_MAX = 64 * 1024 * 1024
"""About how many bytes of answers wait until a body was read; a client that is told more reads meanwhile."""

log = logs.get()


@dataclass(frozen=True, slots=True)
class _Writing:
    """A registration to be written: under its query id, with this value. stood: it stands, with other
    options. new: nothing is known of it. answer: there is nothing to write.
    """

    request: RegisterRequest
    name: str
    value: bytes
    stood: bool
    new: bool = False
    answer: dict[str, Any] | None = None


@dataclass(slots=True)
class _Part:
    """Answers that are to be given out, and the ids of new queries among them whose handles were made here.

    answers: some lines each; what the writer of JSON gives has kilobytes of its own while it is kept. size:
    their bytes. lines: how many there were so far, given out or not.
    """

    answers: list[bytes]
    ours: list[str]
    size: int = 0
    lines: int = 0

    @classmethod
    def of(cls, answers: Sequence[Mapping[str, Any]], ours: list[str]) -> _Part:
        text = b"\n".join([*map(orjson.dumps, answers), b""])
        return cls([text], ours, len(text), len(answers))

    def take(self, part: _Part) -> None:
        self.answers += part.answers
        self.ours += part.ours
        self.size += part.size
        self.lines += part.lines

    def give(self) -> list[bytes]:
        """The answers; from then on they count as told."""
        given, self.answers, self.ours, self.size = self.answers, [], [], 0
        return given


_Begun = asyncio.Queue["asyncio.Task[_Part] | Exception | None"]
"""Parts that are worked off, in order; last comes why the body ended early, or None."""


def _worked_off(part: Part, _: asyncio.Task[_Part]) -> None:
    part.release()


class Writes:
    """Registers and unregisters by way of the topics."""

    def __init__(self, settings: Settings, node: Node, publisher: Publisher) -> None:
        self._settings = settings
        self._node = node
        self.publisher = publisher
        self._reserved = node.directory.reserved
        self._bulk: set[asyncio.Task[None]] = set()

    async def register(self, request: RegisterRequest) -> Answer:
        """(status, body). Raises QueryError, OptionRefused, LimitExceeded, HandleInUse."""

        def read() -> tuple[str | None, tuple[Notice, ...]]:
            return self._check(request), notices_of(self._node.directory, request.wording)

        missing, found = await asyncio.to_thread(read)
        writing = self._begin(request)
        if writing.answer is not None:
            return 200, writing.answer
        try:
            outcome = await self._written_registration(writing)
            await self._forget([(writing, outcome)])
            if outcome is not None:
                outcome = await with_topic(self._node, self._settings.names, missing, outcome)
        except (KafkaUnavailable, asyncio.CancelledError) as away:
            # With the handle, under which it may be registered by now.
            error = (away if isinstance(away, KafkaUnavailable) else Stopping()).as_dict()
            return 503, self._registered(request, {"state": "PENDING", "error": error}) | error
        finally:
            self._written(writing.name)
        return self._answer(writing, outcome, found)

    async def register_many(self, parts: AsyncIterator[Part], connection: Connection) -> AsyncIterator[bytes]:
        """One answer line for each line of the body, in order; a refused line spoils no other.

        The lines of a part are checked, written and waited for together; a part is checked while the one
        before is carried out. Answers are given out part by part, from when the body was read to its end:
        whoever sends it need not read at the same time, but where answers fill ANSWERS_BYTES_MAX: then they
        are given out, and no more is read until they are taken. Of a body that turns out to be too long the
        lines before that stand, and a last answer says why the others do not. Where it breaks off, or nobody
        reads the answers any more, what was not begun is dropped, and queries are taken back whose handles
        nobody can know, since they were to be told in the answer.

        connection: that counts the bytes of answers that wait. Raises ClientDisconnect: it broke off.
        LimitExceeded: it is too long, and nothing stands.
        """
        ahead = ReadAhead()
        begun: _Begun = asyncio.Queue(PARTS_AT_WORK)
        reading = self._in_background(ahead.read(parts))
        self._in_background(self._begin_parts(ahead, begun))
        told = _Part([], [])
        try:
            while isinstance(part := await begun.get(), asyncio.Task):
                done = await asyncio.shield(part)
                connection.hold(done.size)
                told.take(done)
                if ahead.is_whole or told.size > ANSWERS_BYTES_MAX:
                    connection.release(told.size)
                    for lines in told.give():
                        yield lines
        except BaseException:  # nobody reads on, or it failed
            reading.cancel()
            ahead.drop()
            self._in_background(self._take_back(told, begun))
            raise
        connection.release(told.size)
        if isinstance(part, ClientDisconnect):
            self._in_background(self._take_back(told, None))
        if isinstance(part, LimitExceeded) and told.lines:
            told.take(_Part.of([self._refused(None, part.as_dict())], []))
        elif part is not None:
            raise part
        for lines in told.give():
            yield lines

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """What goes on when nobody waits for it any more."""
        task = asyncio.create_task(work)
        self._bulk.add(task)
        task.add_done_callback(self._bulk.discard)
        return task

    async def _begin_parts(self, ahead: ReadAhead, begun: _Begun) -> None:
        """Part after part, while the ones before are carried out; last comes why the body ended early."""
        free = asyncio.Semaphore(PARTS_AT_WORK)
        while isinstance(part := await ahead.get(), Part):
            await free.acquire()
            work = asyncio.create_task(self._register_part(part.lines))
            work.add_done_callback(lambda _: free.release())
            work.add_done_callback(partial(_worked_off, part))
            await begun.put(work)
        await begun.put(part)

    async def _take_back(self, told: _Part, begun: _Begun | None) -> None:
        """End the new queries whose handles were made here, of parts that nobody was told of.

        begun: parts that are still worked off.
        """
        while begun is not None and isinstance(part := await begun.get(), asyncio.Task):
            try:
                told.take(await part)
            except Exception as failed:
                log.error("registrations_failed", error=repr(failed), exc_info=failed)
        log.warning("registrations_broken_off", lines=told.lines, taken_back=len(told.ours))
        names = self._settings.names.queries
        await self.publisher.publish_many(names, [(name, None) for name in told.ours])

    async def _register_part(self, lines: list[Line]) -> _Part:
        ours: list[str] = []
        checked = await asyncio.to_thread(lambda: [self._checked(line) for line in lines])
        answers: list[dict[str, Any]] = [{}] * len(lines)
        begun: list[tuple[int, _Writing]] = []
        again: list[tuple[int, RegisterRequest]] = []
        for place, (request, refused) in enumerate(checked):
            if request is None or refused is not None:
                answers[place] = self._refused(request, refused)
            elif query_id(request.handle) in self._reserved:
                again.append((place, request))
            else:
                try:
                    writing = self._begin(request)
                except TureenError as error:
                    answers[place] = self._refused(request, error.as_dict())
                    continue
                if writing.answer is not None:
                    answers[place] = writing.answer
                else:
                    begun.append((place, writing))
                    if writing.new and request.is_handle_ours:
                        ours.append(writing.name)
        try:
            outcomes = await self._written_registrations([writing for _, writing in begun])
            await self._forget(list(zip((writing for _, writing in begun), outcomes, strict=True)))
        finally:
            for _, writing in begun:
                self._written(writing.name)
        directory = self._node.directory
        told = await asyncio.to_thread(
            lambda: [notices_of(directory, one.request.wording) for _, one in begun]
        )
        for (place, writing), outcome, found in zip(begun, outcomes, told, strict=True):
            if isinstance(outcome, TureenError):
                answers[place] = self._refused(writing.request, outcome.as_dict())
            else:
                answers[place] = self._answer(writing, outcome, found)[1]
        for (
            place,
            request,
        ) in again:  # a handle that stands on an earlier line, or comes from elsewhere as well
            try:
                _, answers[place] = await self.register(request)
            except TureenError as error:
                answers[place] = self._refused(request, error.as_dict())
        return _Part.of(answers, ours)

    def _checked(self, line: Line) -> tuple[RegisterRequest | None, dict[str, Any] | None]:
        """A line's request, and why it is refused on sight. Any thread.

        The error as it is told, not the exception: that has the line in its traceback, and would be let go by
        the collector of cycles alone.
        """
        if isinstance(line, LimitExceeded):
            return None, line.as_dict()
        request: RegisterRequest | None = None
        try:
            request = register_request(line, self._settings.sql_bytes_max)
            self._check(request)
        except TureenError as refused:
            return request, refused.as_dict()
        return request, None

    def _check(self, request: RegisterRequest) -> str | None:
        """Raise what can be refused on sight; the source that it will wait for. Any thread."""
        wording = request.wording
        try:
            bound = self._node.directory.admitted(request.options, wording.sql, wording.parameters)
        except UnknownSource as missing:
            return missing.name
        if bound.read.template is None:
            raise no_select()
        read = bound.read.template
        self._node.directory.queries.refuse_leaving([*read.sources, *read.uses])
        return None

    def _begin(self, request: RegisterRequest) -> _Writing:
        """What is to be written for a request, under a handle that is reserved by this; or its answer, where
        it stands already. Raises HandleInUse, NameInUse, BrokerUnavailable, LimitExceeded.
        """
        node = self._node
        name = query_id(request.handle)
        said = request.wording.said
        entry = node.directory.queries.get(name)
        if entry is not None and entry.is_leaving:  # another comes behind it
            entry = None
        coming = self._reserved.get(name, entry)
        standing = coming.said if coming is not None else None
        if standing is not None:
            if standing != said:
                raise HandleInUse(name, hint="unregister it first, or leave the handle out and get a new one")
            same = entry is not None and request.options.items() <= entry.options.items()
            if entry is not None and entry.shard is not None and same:
                answer = self._registered(request, {**entry.outcome(), "output": entry.output})
                return _Writing(request, name, b"", True, answer=answer)
        elif entry is None and not node.life.reconciled:
            raise BrokerUnavailable("the registry is still being read", hint="try again in a second")
        if entry is None or entry.shard is None:
            short = node.setup.memory.refuses(Level.REFUSE, "no new query is begun")
            if short is not None:
                raise short
        options = request.options
        if entry is not None and entry.state != "ERROR":
            options = {**entry.options, **options}
        value = orjson.dumps(query_options.published(request.wording.fields() | {"options": options}))
        check_size(len(value), self._settings.sql_bytes_max)
        called = query_options.query_name(options)
        node.directory.queries.names.require(called, name)
        node.directory.queries.names.take(called, name)
        self._reserved[name] = _on_its_way(request.wording, options)
        return _Writing(request, name, value, entry is not None and entry.shard is not None, entry is None)

    def _written(self, name: str) -> None:
        """The registration under an id, reserved until now, is known by its entry, or to nobody."""
        reserved = self._reserved.pop(name, None)
        queries = self._node.directory.queries
        if reserved is not None and (name not in queries or queries[name].query_name != reserved.query_name):
            queries.names.release(reserved.query_name, name)

    async def _forget(self, written: Sequence[tuple[_Writing, Outcome | TureenError | None]]) -> None:
        """Take back what was new and is refused: whoever asked is told, and nothing stays of it."""
        refused = [
            (one.name, None)
            for one, outcome in written
            if one.new and isinstance(outcome, dict) and outcome["state"] == "ERROR"
        ]
        if refused:
            with self._node.waiters.expecting():
                places = await self.publisher.publish_many(self._settings.names.queries, refused)
                origins = [place for place in places if not isinstance(place, TureenError)]
                await self._node.waiters.outcomes(origins, self._settings.outcome_wait_ms / 1_000)

    def _answer(self, writing: _Writing, outcome: Outcome | None, notices: tuple[Notice, ...]) -> Answer:
        """What became of what was written. notices: of its text."""
        request = writing.request
        if outcome is None:
            return 202, self._registered(request, {"state": "PENDING", "error": None})
        if outcome["state"] == "ERROR":
            error = outcome.get("error") or {}
            return status_of(error), self._registered(request, outcome) | error
        code = 202 if outcome["state"] == "PENDING" else 200 if writing.stood else 201
        found = [one.as_dict() for one in notices]
        return code, self._registered(request, outcome) | ({"warnings": found} if found else {})

    def _refused(self, request: RegisterRequest | None, error: dict[str, Any] | None) -> dict[str, Any]:
        if request is None:
            return {"state": "ERROR", "error": error}
        return self._registered(request, {"state": "ERROR", "error": error})

    @staticmethod
    def _registered(request: RegisterRequest, outcome: Outcome) -> dict[str, Any]:
        told: dict[str, Any] = {"handle": request.handle, "query_id": query_id(request.handle)}
        told |= {name: outcome.get(name) for name in ("state", "error", "position")}
        return told if outcome.get("output") is None else told | {"output": outcome["output"]}

    @contextlib.contextmanager
    def reserved(self, name: str, wording: Wording) -> Iterator[None]:
        """While a text is being written under an id, no other is registered there."""
        self._reserved[name] = _on_its_way(wording, {})
        try:
            yield
        finally:
            self._reserved.pop(name, None)

    async def unregister(self, name: str) -> Answer:
        """End a query, by its id. Raises KafkaUnavailable."""
        outcome = await self.written_query(name, None)
        if outcome is None or outcome["state"] != "GONE":
            error = None if outcome is None else outcome.get("error")
            return 202, {"query_id": name, "state": "PENDING", "error": error}
        return 200, {"query_id": name, "state": "GONE"}

    async def written_query(self, name: str, value: bytes | None) -> Outcome | None:
        """Publish a registration, or its end, and wait for the outcome, which may be that it is still worked
        out; None when it takes longer.
        """
        outcome = await self.written(self._settings.names.queries, name, value)
        (told,) = await self.soon([name], [outcome])
        assert not isinstance(told, TureenError)
        return told

    async def _written_registration(self, writing: _Writing) -> Outcome | None:
        """Publish one at once, and wait for its outcome; None when it takes longer: it is listed meanwhile.
        Raises KafkaUnavailable.
        """
        waiters = self._node.waiters
        with waiters.expecting():
            origin = await self.publisher.publish(self._settings.names.queries, writing.name, writing.value)
            outcome = await waiters.outcome(origin, self._settings.outcome_wait_ms / 1_000)
            if outcome is None:
                self._list(writing.name, origin)
        (told,) = await self.soon([writing.name], [outcome])
        assert not isinstance(told, TureenError)
        return told

    async def soon(
        self, names: Sequence[str], outcomes: Sequence[Outcome | TureenError | None]
    ) -> list[Outcome | TureenError | None]:
        """The outcomes of registrations and ends, those that are being worked out once they are, or after a
        while.
        """
        told = list(outcomes)
        end_s = time.monotonic() + PREPARED_WAIT_S
        while waiting := [place for place, outcome in enumerate(told) if is_on_its_way(outcome)]:
            if time.monotonic() > end_s:
                break
            await asyncio.sleep(LOOK_S)
            for place in waiting:
                entry = self._node.directory.queries.get(names[place])
                if entry is not None:
                    told[place] = entry.outcome()
                elif _code(told[place]) == BeingRemoved.code:
                    told[place] = {"state": "GONE"}
        return told

    async def _written_registrations(
        self, writings: Sequence[_Writing]
    ) -> list[Outcome | TureenError | None]:
        """Publish registrations, and wait for their outcomes; an error for those that Kafka has not. Those
        that take longer are listed meanwhile.
        """
        topic = self._settings.names.queries
        wait_s = self._settings.outcome_wait_ms / 1_000
        waiters = self._node.waiters
        with waiters.expecting():
            places = await self.publisher.publish_many(topic, [(one.name, one.value) for one in writings])
            origins = [place for place in places if not isinstance(place, TureenError)]
            told = iter(await waiters.outcomes(origins, wait_s))
            outcomes: list[Outcome | TureenError | None] = [
                place if isinstance(place, TureenError) else next(told) for place in places
            ]
            for place, writing, outcome in zip(places, writings, outcomes, strict=True):
                if outcome is None and not isinstance(place, TureenError):
                    self._list(writing.name, place)
        return await self.soon([one.name for one in writings], outcomes)

    def _list(self, name: str, origin: Origin) -> None:
        """List a query that is not known yet until its registration, which landed there, is carried out."""
        queries, coming = self._node.directory.queries, self._reserved.get(name)
        if coming is None or name in queries:
            return

        def forget(_: Outcome) -> None:
            if queries.get(name) is coming:
                del queries[name]

        queries[name] = coming
        self._node.waiters.when_told(origin, forget)

    async def written(self, topic: str, key: str, value: bytes | None) -> Outcome | None:
        """Publish a record of a control topic and wait for its outcome; None when it takes longer."""
        with self._node.waiters.expecting():
            origin = await self.publisher.publish(topic, key, value)
            return await self._node.waiters.outcome(origin, self._settings.outcome_wait_ms / 1_000)


def is_on_its_way(outcome: Outcome | TureenError | None) -> bool:
    """Whether a registration or an end is carried out once what it needs is made, or is just being so."""
    return _code(outcome) in ON_ITS_WAY


def _code(outcome: Outcome | TureenError | None) -> str | None:
    """The code of the error of an outcome."""
    return (outcome.get("error") or {}).get("code") if isinstance(outcome, dict) else None


def _on_its_way(wording: Wording, options: Mapping[str, Any]) -> QueryEntry:
    """What is known of a query until its registration is carried out."""
    error = BeingRegistered().as_dict()
    return QueryEntry(wording.sql, "PENDING", error, options=options, parameters=wording.parameters)
