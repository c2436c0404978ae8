"""The control's end of the unix socket. A worker that is away is waited for, as long as it takes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
import orjson

from broker.base import logs
from broker.base.internal import SECRET_HEADER, Outcome
from topics.control_records import Command
from tureen.errors import TureenError

RETRY_S = 0.2

log = logs.get()


class Refused(TureenError):
    """An error that the worker answered with, passed on as it is."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message")))
        self._error = error

    def as_dict(self) -> dict[str, Any]:
        return {"code": "error"} | self._error


class Link:
    """Calls to the worker. One event loop; closed with :meth:`close`."""

    def __init__(self, socket_path: str, secret: str) -> None:
        """secret: of the node, as its supervisor made it."""
        self._socket_path = socket_path
        self._secret = secret
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(self._socket_path),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=5.0),
                headers={"Content-Type": "application/json", SECRET_HEADER: self._secret},
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call, answered by JSON, tried until it is answered with 200."""
        data = None if body is None else orjson.dumps(body)
        told = False
        while True:
            try:
                async with self.session.request(method, f"http://worker{path}", data=data) as reply:
                    content = await reply.read()
                    if reply.status == 200:
                        return orjson.loads(content)
                    reason = f"status {reply.status}"
            except (aiohttp.ClientError, OSError) as failed:
                reason = type(failed).__name__
            if not told:
                told = True
                log.info("worker_awaited", path=path, reason=reason)
            await asyncio.sleep(RETRY_S)

    async def commands(self, commands: Sequence[Command]) -> list[Outcome]:
        """Hand over a batch; one outcome each. Safe to say again, so it is until it is answered."""
        if not commands:
            return []
        outcomes: list[Outcome] = (await self.call("POST", "/internal/commands", {"commands": commands}))[
            "outcomes"
        ]
        return outcomes

    @contextlib.asynccontextmanager
    async def snapshot(self, request: Mapping[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
        """One attempt; the answer may be an error. Raises aiohttp.ClientError when the worker is away."""
        async with self.session.post(
            "http://worker/internal/snapshot",
            data=orjson.dumps(request),
        ) as reply:
            yield reply
