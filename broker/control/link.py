"""The control's end of the unix socket. A worker that is away is waited for, as long as it takes.

One that answers, and fails at a call each time, is not: the call is given up. Commands of a batch are then
said one by one, so that the one at which the worker fails is refused and holds up no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
import orjson

from broker.base import logs
from broker.base.internal import SECRET_HEADER, Outcome
from engine.model.defects import internal
from topics.control_records import Command
from tureen.errors import TureenError

RETRY_S = 0.2
FAILURES_MAX = 5
"""A call at which the worker fails so often in succession is given up."""
TOLD_AGAIN_S = 30.0
"""How often it is logged that a worker is waited for."""

log = logs.get()


class Refused(TureenError):
    """An error that the worker answered with, passed on as it is."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message")))
        self._error = error

    def as_dict(self) -> dict[str, Any]:
        return {"code": "error"} | self._error


class CallFailed(TureenError):
    """The worker fails at a call each time that it is made."""

    def __init__(self, path: str, status: int) -> None:
        super().__init__(f"the worker fails at {path}: status {status}", hint="see the log of the broker")


class CommandFailed(TureenError):
    """A defect of the broker: it cannot carry out one command.

    incident: under which the broker's log has it.
    """

    code = "command_failed"

    def __init__(self, incident: str) -> None:
        super().__init__(
            f"a defect of the broker: it cannot carry this out, incident {incident}",
            hint=f"look for {incident} in the log of the broker, and report what it says; it is tried again "
            "after a while",
        )


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
        """One call, answered by JSON, tried until it is answered with 200; while the worker is away, or says
        that it cannot do it yet (503), as long as it takes.

        Raises CallFailed: the worker fails at it. TypeError: ``body`` is no JSON.
        """
        data = None if body is None else orjson.dumps(body)
        failures, told_s = 0, -TOLD_AGAIN_S
        while True:
            try:
                async with self.session.request(method, f"http://worker{path}", data=data) as reply:
                    content = await reply.read()
                    if reply.status == 200:
                        return orjson.loads(content)
                    reason = f"status {reply.status}"
                    failures = failures + 1 if reply.status == 500 else 0
                    if failures == FAILURES_MAX:
                        raise CallFailed(path, reply.status)
            except (aiohttp.ClientError, OSError) as failed:
                reason, failures = type(failed).__name__, 0
            if time.monotonic() - told_s >= TOLD_AGAIN_S:
                told_s = time.monotonic()
                log.info("worker_awaited", path=path, reason=reason)
            await asyncio.sleep(RETRY_S)

    async def commands(self, commands: Sequence[Command]) -> list[Outcome]:
        """Hand over a batch; one outcome each. Safe to say again, so it is until it is answered.

        Where it cannot be carried out, its commands are handed over one by one. The one that is the cause has
        an error as its outcome; where it is a registration, the worker is told that it is refused.
        """
        if not commands:
            return []
        try:
            reply = await self.call("POST", "/internal/commands", {"commands": commands})
        except (CallFailed, TypeError) as failed:
            if len(commands) > 1:
                return [outcome for one in commands for outcome in await self.commands([one])]
            return [await self._failed(commands[0], failed)]
        outcomes: list[Outcome] = reply["outcomes"]
        return outcomes

    async def _failed(self, command: Command, failure: CallFailed | TypeError) -> Outcome:
        """The outcome of a command that cannot be carried out."""
        defect = internal(failure)
        log.error(
            "command_failed",
            kind=command["kind"],
            incident=defect.incident,
            reason=str(failure),
            trace=defect.trace,
        )
        error = CommandFailed(defect.incident).as_dict()
        if command["kind"] == "register":
            refusal: Command = {"kind": "refuse", "name": command["name"], "error": error}
            if "origin" in command:
                refusal["origin"] = command["origin"]
            (outcome,) = await self.commands([refusal])
            return outcome
        return {"state": "ERROR", "error": error, "position": None}

    @contextlib.asynccontextmanager
    async def snapshot(self, request: Mapping[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
        """One attempt; the answer may be an error. Raises aiohttp.ClientError when the worker is away."""
        async with self.session.post(
            "http://worker/internal/snapshot",
            data=orjson.dumps(request),
        ) as reply:
            yield reply
