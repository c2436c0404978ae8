"""The connections to a broker over HTTP: one that blocks, one for asyncio.

What is said over them, and what is said again when they break, is that of :mod:`tureen.calls` and
:mod:`tureen.exchange`; here is only who sends and who waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, TypeVar

import httpx

from tureen import calls
from tureen.answers import Dropped
from tureen.exchange import Heard, Pause, Request, Talk, settings, steps
from tureen.facts import QueryStatus, Source
from tureen.period import Period
from tureen.protocol import SnapshotFormat
from tureen.settling import dropped, registered
from tureen.snapshot import Reply
from tureen.transport import Progress, Publication

Result = TypeVar("Result")


class HttpTransport:
    """Implements :class:`tureen.transport.Transport`; one connection pool, safe to share among threads."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self.url = url.rstrip("/")
        self.connections = httpx.Client(**settings(self.url, token, timeout_s))

    def run(self, talk: Talk[Result]) -> Result:
        """Carry a talk out. Raises the TureenError that the broker answered with, BrokerUnavailable."""
        doing = steps(talk, self.url)
        try:
            step = next(doing)
            while True:
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    step = doing.send(None)
                    continue
                try:
                    response = self._answer(step)
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    step = doing.throw(error)
                else:
                    step = doing.send(response)
        except StopIteration as done:
            result: Result = done.value
            return result

    def _answer(self, step: Request[Any]) -> httpx.Response:
        if step.heard is None:
            return self.connections.request(step.method, step.path, **step.arguments())
        with self.connections.stream(step.method, step.path, **step.arguments()) as reply:
            heard = Heard(reply, step.heard)
            for piece in reply.iter_bytes():
                heard.take(piece)
        return heard.response()

    def create(self, sql: str, wait_s: float) -> Source:
        return self.run(calls.create(sql, wait_s))

    def drop(self, name: str, cascade: bool, wait_s: float) -> Dropped:
        return self.run(dropped(name, cascade, wait_s))

    def register(
        self, publications: Sequence[Publication], wait_s: float, progress: Progress | None = None
    ) -> list[QueryStatus]:
        return self.run(registered(publications, wait_s, progress))

    def status(self, handle: str) -> QueryStatus:
        return self.run(calls.status(handle))

    def queries(self) -> list[QueryStatus]:
        return self.run(calls.queries())

    def alter(self, publication: Publication, wait_s: float) -> QueryStatus:
        return self.run(calls.alter(publication, wait_s))

    def unregister(self, handle: str) -> None:
        self.run(calls.unregister(handle))

    def snapshot(
        self, handle: str, form: SnapshotFormat, at: int | Period | None, archive: bool | None = None
    ) -> Reply:
        return self.run(calls.snapshot(handle, form, at, archive))

    def close(self) -> None:
        self.connections.close()


class AsyncHttp:
    """Talks to a broker over HTTP from asyncio; one connection pool, which tasks of one event loop share."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self.url = url.rstrip("/")
        self.connections = httpx.AsyncClient(**settings(self.url, token, timeout_s))

    async def run(self, talk: Talk[Result]) -> Result:
        """Carry a talk out. Raises the TureenError that the broker answered with, BrokerUnavailable."""
        doing = steps(talk, self.url)
        try:
            step = next(doing)
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = doing.send(None)
                    continue
                try:
                    response = await self._answer(step)
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    step = doing.throw(error)
                else:
                    step = doing.send(response)
        except StopIteration as done:
            result: Result = done.value
            return result

    async def _answer(self, step: Request[Any]) -> httpx.Response:
        if step.heard is None:
            return await self.connections.request(step.method, step.path, **step.arguments())
        async with self.connections.stream(step.method, step.path, **step.arguments()) as reply:
            heard = Heard(reply, step.heard)
            async for piece in reply.aiter_bytes():
                heard.take(piece)
        return heard.response()

    async def close(self) -> None:
        await self.connections.aclose()
