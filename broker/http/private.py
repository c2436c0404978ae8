"""The internal API of :mod:`broker.internal`, served on a unix socket that only this user can open."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import Response

from broker.http.answers import Snapshots
from broker.http.errors import install, json
from broker.worker.node import Node
from broker.worker.status import readiness
from broker.worker.topic_admin import ensure_reply_topic
from topics.admin import Admin
from tureen.errors import TureenError


def private_api(node: Node, snapshots: Snapshots, admin: Admin) -> FastAPI:
    """The application that the control process talks to."""
    app = FastAPI(openapi_url=None)
    install(app)

    async def content(request: Request) -> Any:
        return orjson.loads(await request.body())

    @app.get("/internal/hello")
    async def hello() -> Response:
        node.control_seen()
        return json(
            {"instance": node.instance, "reconciled": node.reconciled, "changed": node.broken.changed()}
        )

    @app.post("/internal/commands")
    async def commands(request: Request) -> Response:
        return json({"outcomes": await node.apply((await content(request))["commands"])})

    @app.post("/internal/reconcile")
    async def reconcile(request: Request) -> Response:
        known = await content(request)
        await node.reconcile(known["queries"], known["sources"])
        return json({})

    @app.post("/internal/prove")
    async def prove() -> Response:
        await node.shards.prove()
        return json({})

    @app.post("/internal/snapshot")
    async def snapshot(request: Request) -> Response:
        wanted = await content(request)
        return await snapshots.response(
            wanted["query_id"], wanted["format"], wanted.get("at"), wanted.get("archive")
        )

    @app.post("/internal/reply-topic")
    async def reply_topic(request: Request) -> Response:
        name = (await content(request))["name"]
        try:
            await asyncio.to_thread(ensure_reply_topic, admin, name)
        except TureenError as refused:
            return json({"error": refused.as_dict()})
        return json({})

    @app.get("/internal/ready")
    async def ready() -> Response:
        facts = readiness(node)
        return json(facts, 200 if facts["ready"] else 503)

    return app
