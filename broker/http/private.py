"""The internal API of :mod:`broker.base.internal`, served on a unix socket that only this user can open."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import socket
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.base.internal import SECRET_HEADER
from broker.base.settings import Settings
from broker.http.answers import Snapshots
from broker.http.errors import install, json, plain
from broker.http.requests import at_of
from broker.node.node import Node
from broker.observe.status import readiness
from broker.runtime.topic_admin import ensure_reply_topic
from topics.admin import Admin
from tureen.errors import TureenError

_SECRET = SECRET_HEADER.lower().encode()


class Secret:
    """Lets calls with the node's secret through, and no others. Plain ASGI.

    The socket is this user's alone. The secret also keeps out other programs of this user, and what a
    forwarded socket or a directory that was opened later would let in.
    """

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app = app
        self._expected = secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope["headers"]).get(_SECRET, b"")
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
        else:
            await plain(401, "unauthorized", "this is the broker's own socket")(scope, receive, send)


def private_socket(path: Path) -> socket.socket:
    """A listening socket that only this user can connect to, in the place of one that was left there.

    Made by us: uvicorn would open its own to everybody.
    """
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # there is no moment at which others could connect
    try:
        made.bind(str(path))
    finally:
        os.umask(before)
    return made


def private_api(settings: Settings, node: Node, snapshots: Snapshots, admin: Admin) -> ASGIApp:
    """The application that the control process talks to."""
    app = FastAPI(openapi_url=None)  # so without pages, too
    install(app)

    async def content(request: Request) -> Any:
        return orjson.loads(await request.body())

    @app.get("/internal/hello")
    async def hello() -> Response:
        return json(
            {"instance": node.life.instance, "reconciled": node.life.reconciled, "changed": node.changed()}
        )

    @app.post("/internal/alive")
    async def alive(request: Request) -> Response:
        given = await content(request)
        node.life.control_lives(given["pid"], given["told"])
        return json({})

    @app.post("/internal/commands")
    async def commands(request: Request) -> Response:
        return json({"outcomes": await node.commands.apply((await content(request))["commands"])})

    @app.post("/internal/reconcile")
    async def reconcile(request: Request) -> Response:
        known = await content(request)
        await node.life.reconcile(known["queries"], known["sources"])
        return json({})

    @app.post("/internal/prove")
    async def prove() -> Response:
        await node.shards.prove()
        return json({})

    @app.post("/internal/snapshot")
    async def snapshot(request: Request) -> Response:
        wanted = await content(request)
        return await snapshots.response(
            wanted["query_id"], wanted["format"], at_of(wanted.get("at")), wanted.get("archive")
        )

    @app.post("/internal/reply-topic")
    async def reply_topic(request: Request) -> Response:
        name = (await content(request))["name"]
        try:
            await asyncio.to_thread(ensure_reply_topic, admin, settings, name)
        except TureenError as refused:
            return json({"error": refused.as_dict()})
        return json({})

    @app.get("/internal/ready")
    async def ready() -> Response:
        facts = readiness(node)
        return json(facts, 200 if facts["ready"] else 503)

    return Secret(app, settings.secret)
