"""Snapshots by topic: a request comes, the answer goes to the topic it names, in chunks.

A request's key is the query id, its value ``{"handle", "format", "at", "reply_to", "correlation_id"}``. The
handle must hash to the key. ``reply_to`` must start with the reply prefix of the service, so that a request
cannot write into other topics; it is created when missing. Chunks carry the headers of
:mod:`tureen.protocol`, share the correlation id as their key and so arrive in order on one partition.

A request that says where to reply gets its error there; another goes to the dead letters, without its value,
which holds the handle. So does one whose reply cannot be written there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import orjson
from aiokafka.errors import KafkaError
from faust.exceptions import ProducerSendError

from broker.base import logs
from broker.control.link import Link, Refused
from topics.control_records import MalformedRecord, query_id_of
from topics.json_object import json_object
from tureen.errors import BrokerUnavailable, TureenError, UnknownQuery
from tureen.protocol import (
    HEADER_CHUNK,
    HEADER_CHUNKS,
    HEADER_CORRELATION_ID,
    HEADER_FORMAT,
    HEADER_STATUS,
    query_id,
)

FORMATS = ("json", "ndjson", "csv", "arrow")
REQUEST_BYTES_MAX = 16 * 1024
CORRELATION_CHARACTERS_MAX = 200
ATTEMPTS = 50
ATTEMPT_WAIT_S = 0.2

Headers = list[tuple[str, bytes]]
Send = Callable[[str, bytes, bytes, Headers], Awaitable[None]]

log = logs.get()


class Replies:
    """Answers requests. ``send(topic, key, value, headers)`` returns once the record is written."""

    def __init__(self, link: Link, send: Send, reply_prefix: str, chunk_bytes: int) -> None:
        self._link = link
        self._send = send
        self._prefix = reply_prefix
        self._chunk_bytes = chunk_bytes
        self._topics: set[str] = set()

    async def answer(self, key: bytes | None, value: bytes | None) -> MalformedRecord | None:
        """Reply to one request; returns why, when there is nowhere to reply to."""
        try:
            request = self._request(value)
        except MalformedRecord as refused:
            return refused
        reply_to, correlation = request["reply_to"], request["correlation_id"]
        try:
            await self._topic(reply_to)
        except TureenError as refused:
            return MalformedRecord(f"reply_to cannot be used: {refused.message}")
        try:
            try:
                await self._reply(query_id_of(key), request)
            except TureenError as refused:
                body = orjson.dumps(refused.as_dict())
                await self._chunk(reply_to, correlation, body, 0, 1, [(HEADER_STATUS, b"error")])
        except (KafkaError, ProducerSendError) as refused:
            self._topics.discard(reply_to)  # it may be another one by now
            log.error("reply_lost", topic=reply_to, reason=repr(refused))
            return MalformedRecord(f"the reply could not be written to {reply_to}: {refused!r}")
        return None

    def _request(self, value: bytes | None) -> dict[str, str]:
        """The fields that say where to reply, checked; the others as they came."""
        if value is None or len(value) > REQUEST_BYTES_MAX:
            raise MalformedRecord(f"a request has 1 to {REQUEST_BYTES_MAX} bytes")
        fields = json_object(value, "the value", MalformedRecord)
        reply_to, correlation = fields.get("reply_to"), fields.get("correlation_id")
        if not isinstance(reply_to, str) or not re.fullmatch(
            rf"{re.escape(self._prefix)}[A-Za-z0-9._-]{{1,150}}", reply_to
        ):
            raise MalformedRecord(f"reply_to must be a topic name that starts with {self._prefix}")
        if not isinstance(correlation, str) or not 0 < len(correlation) <= CORRELATION_CHARACTERS_MAX:
            raise MalformedRecord(f"correlation_id must be 1 to {CORRELATION_CHARACTERS_MAX} characters")
        return fields

    async def _topic(self, name: str) -> None:
        if name not in self._topics:
            made = await self._link.call("POST", "/internal/reply-topic", {"name": name})
            if made.get("error"):
                raise BrokerUnavailable(made["error"]["message"])
            self._topics.add(name)

    async def _reply(self, wanted: str, request: dict[str, Any]) -> None:
        handle, form, at = request.get("handle"), request.get("format") or "arrow", request.get("at")
        if not isinstance(handle, str) or query_id(handle) != wanted:
            raise UnknownQuery()
        if form not in FORMATS:
            raise MalformedRecord("there is no format of that name", hint=f"use one of {', '.join(FORMATS)}")
        if at is not None and not isinstance(at, (int, str, dict)):
            raise MalformedRecord(
                "at is an instant, ms since 1970 or ISO 8601, or a period: an object with from and to"
            )
        archive = request.get("archive")
        if archive is not None and not isinstance(archive, bool):
            raise MalformedRecord("archive is true, false or left out")
        asked = {"query_id": wanted, "format": form, "at": at, "archive": archive}
        for _ in range(ATTEMPTS):
            try:
                async with self._link.snapshot(asked) as reply:
                    if reply.status != 200:
                        raise Refused(orjson.loads(await reply.read()))
                    return await self._chunks(reply, form, request)
            except (aiohttp.ClientError, OSError):
                await asyncio.sleep(ATTEMPT_WAIT_S)
        raise BrokerUnavailable("the worker does not answer")

    async def _chunks(self, reply: aiohttp.ClientResponse, form: str, request: dict[str, Any]) -> None:
        size = int(reply.headers["Content-Length"])
        chunks = max(1, -(-size // self._chunk_bytes))
        headers: Headers = [
            (HEADER_STATUS, b"ok"),
            (HEADER_FORMAT, form.encode()),
        ]
        # What the answer says of itself: position, NOW, complete or from when, approximate, errors.
        told = [(name.lower(), value) for name, value in reply.headers.items()]
        headers += [(name, value.encode()) for name, value in told if name.startswith("tureen-")]
        for chunk in range(chunks):
            wanted = min(self._chunk_bytes, size - chunk * self._chunk_bytes)
            body = await reply.content.readexactly(wanted) if wanted else b""
            await self._chunk(request["reply_to"], request["correlation_id"], body, chunk, chunks, headers)

    async def _chunk(
        self, topic: str, correlation: str, body: bytes, chunk: int, chunks: int, headers: Headers
    ) -> None:
        key = correlation.encode()
        own: Headers = [
            (HEADER_CORRELATION_ID, key),
            (HEADER_CHUNK, str(chunk).encode()),
            (HEADER_CHUNKS, str(chunks).encode()),
        ]
        await self._send(topic, key, body, own + headers)
