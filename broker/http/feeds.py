"""``GET /queries/{handle}/changes``: the answer of a query, then whatever changes in it.

Plain ASGI ahead of the rest of the API, since an open feed is held for hours and ten thousand at once: one
coroutine with a position, a third of the memory that it would take behind the framework. It has no queue.
It sleeps until something changed in its query, reads that from the hub, and writes when its connection has
room; a reader that takes nothing for ``feed_write_timeout_ms`` is cut off. One that is merely slow falls
behind what is remembered and goes on with what can be worked out again, or ends with ``must_refetch``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from itertools import takewhile

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.base import logs
from broker.base.counts import FEED_SECONDS, FeedCounts
from broker.base.cursor import ALTERED_HINT, Cursor
from broker.base.settings import Settings
from broker.feeds.follows import Follows, Watcher
from broker.feeds.hub import Hub
from broker.feeds.lines import (
    CONTENT_TYPES,
    RETRY,
    changes_within,
    end_object,
    framed,
    progress_line,
    remarks_text,
    snapshot_line,
    tags_text,
)
from broker.feeds.memory import FeedEnd, RecentChanges
from broker.feeds.reader import ChangeLines, Reader, line_starts
from broker.http.answers import Snapshots
from broker.http.asking import REPLACED_WAIT_S, asked
from broker.http.connection import Connection, connection_of
from broker.http.errors import answer, defect, plain
from broker.http.feed_requests import FeedRequest, feed_handle, feed_request
from broker.http.named import opened
from broker.node.node import Node
from tureen.errors import (
    BrokerUnavailable,
    LimitExceeded,
    MustRefetch,
    TooManyFeeds,
    TureenError,
)

SOCKET_BYTES = 128 * 1024
PIECE_BYTES = 32 * 1024
"""Written at once. So a connection whose reader stands still holds some hundred KiB at most."""

POLL_BYTES = 1024 * 1024
"""A poll is answered with about so much at most."""

TICK_S = 0.5
STOP_S = 1.5
"""Feeds whose readers do not take the end line are cut off so long after it."""

HEADERS = [(b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]

log = logs.get()


class _Gone(Exception):
    """The reader has gone, or was cut off."""


class Feeds:
    """All feeds of the worker, and the application that serves them. Runs on the event loop."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        node: Node,
        hub: Hub,
        follows: Follows,
        snapshots: Snapshots,
        counts: FeedCounts,
    ) -> None:
        """app: what serves everything else."""
        self.app = app
        self.settings = settings
        self.node = node
        self.hub = hub
        self.follows = follows
        self.snapshots = snapshots
        self.counts = counts
        self.is_stopping = False
        self._quiet: dict[Feed, float] = {}
        self._progress_s = settings.feed_progress_ms / 1_000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle = feed_handle(scope)
        if handle is None:
            await self.app(scope, receive, send)
            return
        refusal = await self._served(scope, handle, send)
        if refusal is not None:
            await refusal(scope, receive, send)

    async def _served(self, scope: Scope, handle: str, send: Send) -> Response | None:
        """Serve a feed to its end; what to answer where nothing of it was written."""
        if scope["method"] != "GET":
            return plain(405, "method_not_allowed", "Method Not Allowed", {"Allow": "GET"})
        feed: Feed | None = None
        try:
            request = feed_request(scope, opened(self.node, handle))
            feed = Feed(self, request, connection_of(scope), send)
            self.enter()
            self._quiet[feed] = feed.loop.time()
            await feed.serve()
        except _Gone:
            pass
        except TureenError as refused:
            self.counts.must_refetch += isinstance(refused, MustRefetch)
            return answer(refused)
        except Exception as error:  # noqa: BLE001  (it is told and logged)
            failure = defect("/queries/{handle}/changes", "GET", error)
            if feed is None or not feed.has_begun:
                return failure
            feed.connection.abort()  # a cut, not an end: the reader comes again
        finally:
            if feed is not None and self._quiet.pop(feed, None) is not None:
                self.leave()
                feed.close()
        return None

    def enter(self) -> None:
        """Count one who follows a query. Raises BrokerUnavailable, TooManyFeeds."""
        if self.is_stopping:
            raise BrokerUnavailable("the broker is stopping", hint="try again in a second")
        if self.counts.open >= self.settings.feeds_max:
            raise TooManyFeeds(self.settings.feeds_max)
        self.counts.open += 1

    def leave(self) -> None:
        """One that was counted follows no more."""
        self.counts.open -= 1

    async def reader(self, query_id: str, watcher: Watcher) -> Reader:
        """Have a query followed; ``watcher`` is woken where there is something new, until it leaves
        :attr:`follows`.

        Raises UnknownQuery, QueryNotRunning, BrokerUnavailable.
        """
        wait_s = self.settings.outcome_wait_ms / 1_000
        memory = await asked(
            self.node, query_id, wait_s, lambda shard: self.follows.follow(query_id, shard, watcher)
        )
        assert memory.birth is not None
        history = self.node.shards[memory.birth.shard].ingestion.history.last
        return Reader(self.hub, memory, self.snapshots.pool, self.settings.snapshot_rows_max, history)

    async def why(self, query_id: str, end: FeedEnd) -> FeedEnd:
        """Why a feed really ends. A query that left its shard is gone, or was altered to a text that another
        shard answers; the directory knows a moment later.
        """
        if end.reason != "unregistered":
            return end
        deadline_s = time.monotonic() + REPLACED_WAIT_S
        entry = left = self.node.directory.queries.get(query_id)
        while entry is not None and entry is left and time.monotonic() < deadline_s:
            await asyncio.sleep(0.01)
            entry = self.node.directory.queries.get(query_id)
        if entry is None:
            return end
        return FeedEnd("must_refetch", MustRefetch(hint=ALTERED_HINT))

    # --- life -------------------------------------------------------------------------------------

    def wrote(self, feed: Feed) -> None:
        """A feed has written, or was told to; the next time is so long from now."""
        self._quiet.pop(feed, None)
        self._quiet[feed] = feed.loop.time()

    async def tick(self) -> None:
        """Wake feeds that were quiet for long, and let go of what nobody reads; until cancelled."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while True:
            await asyncio.sleep(min(TICK_S, self._progress_s / 4))
            self._remind(loop.time() - self._progress_s)
            if loop.time() - began_s > TICK_S:
                began_s = loop.time()
                self.follows.sweep()

    def _remind(self, due_s: float) -> None:
        """Wake those that have written nothing since then; they stand in the order in which they wrote."""
        due = list(takewhile(lambda feed: self._quiet[feed] <= due_s, self._quiet))
        for feed in due:
            self.wrote(feed)
            feed.is_due = True
        self.follows.rouse(due)

    def stop(self) -> None:
        """End every feed; those that do not take it are cut off."""
        self.is_stopping = True
        for feed in list(self._quiet):
            feed.wake()
        asyncio.get_running_loop().call_later(STOP_S, self._cut)

    def _cut(self) -> None:
        for feed in list(self._quiet):
            feed.connection.abort()


class Feed:
    """One feed, or one poll."""

    __slots__ = (
        "_began_s",
        "_feeds",
        "_memory",
        "_request",
        "_send",
        "_sleep",
        "_woken",
        "connection",
        "has_begun",
        "is_due",
        "loop",
    )

    def __init__(self, feeds: Feeds, request: FeedRequest, connection: Connection, send: Send) -> None:
        self.connection = connection
        self.loop = asyncio.get_running_loop()
        self.is_due = False
        self.has_begun = False
        self._began_s = time.monotonic()
        self._feeds = feeds
        self._request = request
        self._send = send
        self._memory: RecentChanges | None = None
        self._sleep: asyncio.Future[None] | None = None
        self._woken = False

    def wake(self) -> None:
        """There is something to do."""
        self._woken = True
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)

    def close(self) -> None:
        self.connection.tell_loss(None)
        if self._memory is not None:
            self._feeds.follows.leave(self._memory, self)

    async def serve(self) -> None:
        """Answer the request. Raises TureenError while nothing is written, _Gone when the reader has gone."""
        self.connection.tell_loss(self.wake)
        reader = await self._reader()
        if self._request.mode == "poll":
            await self._poll(reader)
        else:
            await self._feed(reader)

    async def _reader(self) -> Reader:
        """Have the query followed. Raises UnknownQuery, QueryNotRunning, BrokerUnavailable."""
        reader = await self._feeds.reader(self._request.query_id, self)
        self._memory = reader.memory
        return reader

    async def _sleeping(self) -> None:
        """Until woken."""
        if not self._woken:
            self._sleep = self.loop.create_future()
            try:
                await self._sleep
            finally:
                self._sleep = None
        self._woken = False
        if self.connection.is_lost:
            raise _Gone

    # --- a feed -----------------------------------------------------------------------------------

    async def _feed(self, reader: Reader) -> None:
        since = self._request.since
        if since is None:
            # What is refused is refused before anything is written.
            answered = await reader.snapshot()
            rows = reader.rows(answered)
            await self._start(CONTENT_TYPES[self._request.form])
            starts = line_starts(rows.num_rows)
            for start in starts:
                part, more = rows.slice(start, starts.step), start != starts[-1]
                head = reader.head if start == 0 else b""
                from_ms, cursor = answered.complete_from_ms, reader.cursor
                tags = answered.approximation if start == 0 else ()
                told = remarks_text(answered) if start == 0 else b""
                line = await reader.run(partial(snapshot_line, part, cursor, head, from_ms, more, tags, told))
                await self._tell("snapshot", [line], None if more else cursor)
            del answered, rows
        else:
            reader.resume(since)
            first, pieces = reader.cursor, await reader.more()
            await self._start(CONTENT_TYPES[self._request.form])
            await self._tell("progress", [progress_line(first, reader.head, reader.tags)], first)
            await self._pass_on(pieces)
        try:
            end = await self._live(reader)
        except MustRefetch as gone:
            end = FeedEnd("must_refetch", gone)
            self._feeds.counts.must_refetch += 1
        end = await self._feeds.why(self._request.query_id, end)
        self._feeds.counts.ended[end.reason] += 1
        line = end_object(end.reason, reader.cursor, end.error) + b"\n"
        await self._tell("end", [line], reader.cursor)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _live(self, reader: Reader) -> FeedEnd:
        """Pass on what changes, until there is a reason to end. Raises MustRefetch."""
        while True:
            pieces = await reader.more()
            if pieces:
                await self._pass_on(pieces)
                continue
            if reader.end is not None:
                return reader.end
            if self._feeds.is_stopping:
                return FeedEnd("stopping")
            if self._request.mode == "once":
                reader.progress()
                return FeedEnd("caught_up")
            if self.is_due:
                cursor = reader.progress()
                await self._tell("progress", [progress_line(cursor, tags=reader.tags)], cursor)
            await self._sleeping()

    async def _pass_on(self, pieces: Sequence[ChangeLines]) -> None:
        form, counts = self._request.form, self._feeds.counts
        if not pieces:
            return
        await self._write(b"".join(framed("changes", piece.lines, piece.cursor, form) for piece in pieces))
        counts.changes += sum(piece.rows for piece in pieces)
        told_s = pieces[-1].told_s
        if told_s is not None and told_s > self._began_s:
            FEED_SECONDS.observe(time.monotonic() - told_s)

    async def _tell(self, kind: str, lines: Sequence[bytes], cursor: Cursor | None) -> None:
        await self._write(framed(kind, lines, cursor, self._request.form))

    async def _start(self, content_type: str) -> None:
        self.connection.hold_less(SOCKET_BYTES)
        headers = [(b"content-type", content_type.encode()), *HEADERS]
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        if self._request.form == "sse":
            await self._write(RETRY)

    async def _write(self, data: bytes) -> None:
        """Write as the reader takes it. Raises _Gone: it has gone, or took nothing for too long."""
        settings = self._feeds.settings
        for start in range(0, len(data), PIECE_BYTES):
            try:
                await self.connection.room(settings.feed_write_timeout_ms / 1_000)
            except TimeoutError:
                self._feeds.counts.cut += 1
                log.info("feed_cut", timeout_ms=settings.feed_write_timeout_ms)
                self.connection.abort()
                raise _Gone from None
            if self.connection.is_lost:
                raise _Gone
            piece = data[start : start + PIECE_BYTES] if len(data) > PIECE_BYTES else data
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        self._feeds.counts.bytes += len(data)
        self.is_due = False
        self._feeds.wrote(self)

    # --- a poll -----------------------------------------------------------------------------------

    async def _poll(self, reader: Reader) -> None:
        since = self._request.since
        if since is None:
            answered = await reader.snapshot()
            rows, limit = reader.rows(answered), self._feeds.settings.snapshot_bytes_max
            if rows.nbytes > limit:
                raise LimitExceeded("snapshot_bytes_max", limit, rows.nbytes)
            cursor, head = reader.cursor, reader.head
            from_ms, tags = answered.complete_from_ms, answered.approximation
            told = remarks_text(answered)
            body = await reader.run(partial(snapshot_line, rows, cursor, head, from_ms, False, tags, told))
            body = body[:-2] + b',"end":null}'
        else:
            reader.resume(since)
            body = await self._changed(reader)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *HEADERS,
        ]
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._write(body)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _changed(self, reader: Reader) -> bytes:
        """What a poll is answered with, as soon as there is something or the wait is over."""
        is_over = self.loop.time() + self._request.wait_ms / 1_000
        alarm = self.loop.call_at(is_over, self.wake)
        pieces: list[ChangeLines] = []
        size = 0
        try:
            while size < POLL_BYTES:
                found = await reader.more()
                pieces += found
                size += sum(len(line) for piece in found for line in piece.lines)
                if found:
                    continue
                over = self._feeds.is_stopping or self.loop.time() >= is_over
                if pieces or reader.end is not None or over:
                    break
                await self._sleeping()
            if reader.end is not None:
                reader.end = await self._feeds.why(self._request.query_id, reader.end)
        finally:
            alarm.cancel()
        self._feeds.counts.changes += sum(piece.rows for piece in pieces)
        cursor = reader.cursor if pieces or reader.end is not None else reader.progress()
        changes = b",".join(changes_within(line) for piece in pieces for line in piece.lines)
        end = b"null" if reader.end is None else end_object(reader.end.reason, cursor, reader.end.error)
        position = orjson.dumps({"position": str(cursor), "now_ms": cursor.now_ms})[1:-1]
        return b'{"type":"changes",%b%b%b,"changes":[%b],"more":false,"end":%b}' % (
            position,
            reader.head,
            tags_text(reader.tags),
            changes,
            end,
        )
